// SPDX-License-Identifier: Apache-2.0
// Wrong caps, logs and launches of compiled source.
#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Source = chipdock_source_desc;
using Launch = chipdock_function_launch_desc;

bool absent() { return base().compile.compile_source == nullptr; }

template <void (*kChange)(chipdock_compile_caps&)>
void caps(Tables& tables) {
  if (absent()) return;
  tables.compile.caps = [](chipdock_device* device, chipdock_compile_caps* out,
                           chipdock_error* error) {
    const chipdock_status status = base().compile.caps(device, out, error);
    if (status == CHIPDOCK_OK && out->struct_size >= sizeof(*out)) kChange(*out);
    return status;
  };
}
void claims_graphs(chipdock_compile_caps& caps) { caps.flags |= CHIPDOCK_COMPILE_GRAPH; }
void changes(chipdock_compile_caps& caps) {
  static std::atomic<uint32_t> calls{0};
  caps.max_block_threads += calls.fetch_add(1);
}

template <void (*kEdit)(Source&)>
void source(Tables& tables) {
  if (absent()) return;
  tables.compile.compile_source = [](chipdock_device* device, const Source* given,
                                     chipdock_module** out, chipdock_error* error) {
    Source room{};
    return base().compile.compile_source(device, edited(given, room, kEdit), out, error);
  };
}
void no_log(Source& desc) { desc.log = nullptr, desc.log_size = 0; }
void no_prelude(Source& desc) { desc.prelude = nullptr; }
void no_options(Source& desc) { desc.option_count = 0; }

template <void (*kEdit)(Launch&)>
void launch(Tables& tables) {
  if (absent()) return;
  tables.compile.launch_function = [](chipdock_function* function, const Launch* given,
                                      chipdock_error* error) {
    Launch room{};
    return base().compile.launch_function(function, edited(given, room, kEdit), error);
  };
}
void one_block_less(Launch& desc) { desc.grid[0] -= desc.grid[0] > 1 ? 1 : 0; }
void inline_always(Launch& desc) { desc.stream = nullptr; }

/// What the base refuses is taken and not run.
void arguments_unchecked(Tables& tables) {
  if (absent()) return;
  tables.compile.launch_function = [](chipdock_function* function, const Launch* desc,
                                      chipdock_error* error) {
    if (function == nullptr || desc == nullptr) {
      return base().compile.launch_function(function, desc, error);
    }
    return forgiving(CHIPDOCK_INVALID_ARGUMENT, error, [&](chipdock_error* own) {
      return base().compile.launch_function(function, desc, own);
    });
  };
}

void module_leaks(Tables& tables) {
  if (absent()) return;
  tables.compile.destroy_module = [](chipdock_module* module, chipdock_error* error) {
    return module == nullptr ? base().compile.destroy_module(module, error) : CHIPDOCK_OK + 0;
  };
}

constexpr Mutant kMutants[] = {
    {"compile_claims_graphs", &caps<&claims_graphs>},
    {"compile_caps_change", &caps<&changes>},
    {"compile_no_log", &source<&no_log>},
    {"compile_no_prelude", &source<&no_prelude>},
    {"compile_options_ignored", &source<&no_options>},
    {"function_block_less", &launch<&one_block_less>},
    {"function_out_of_order", &launch<&inline_always>},
    {"function_arguments_unchecked", &arguments_unchecked},
    {"module_leaks", &module_leaks},
};

}  // namespace

MutantSpan compile_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
