// SPDX-License-Identifier: Apache-2.0
// Wrong lists, answers and protocol of kernels. Wrong results: values.cpp, kernel_writes.cpp.
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mutant.hpp"

namespace chipdock::mutants {
namespace {

using Kernels = std::vector<const chipdock_kernel*>;

bool absent() { return base().kernel.list == nullptr; }
bool is(const chipdock_kernel* kernel, const char* op) {
  return kernel != nullptr && std::strcmp(kernel->op, op) == 0;
}

/// The base's list with the descriptors of one operator changed. Descriptors carry the base's
/// `state`, which is all it looks at.
template <void (*kChange)(chipdock_kernel&)>
void descriptors(Tables& tables) {
  if (absent()) return;
  tables.kernel.list = [](chipdock_device* device, const chipdock_kernel* const** out,
                          uint64_t* out_count, chipdock_error* error) {
    static std::mutex mutex;
    static auto& known = *new std::map<Kernels, Kernels>;
    const chipdock_status status = base().kernel.list(device, out, out_count, error);
    if (status != CHIPDOCK_OK) return status;
    const std::lock_guard lock(mutex);
    // By what the base lists: an instance that ended took its descriptors with it.
    Kernels listed(*out, *out + *out_count);
    Kernels& shown = known[listed];
    if (shown.empty()) {
      shown = listed;
      for (const chipdock_kernel*& kernel : shown) {
        if (!is(kernel, "Relu")) continue;
        auto* changed = new chipdock_kernel(*kernel);
        kChange(*changed);
        kernel = changed;
      }
    }
    *out = shown.data();
    return status;
  };
}

void null_name(chipdock_kernel& kernel) { kernel.name = nullptr; }
void versions_crossed(chipdock_kernel& kernel) {
  kernel.until_version = 6;
  kernel.since_version = 14;
}
void unknown_flag(chipdock_kernel& kernel) { kernel.flags |= 1u << 30; }
void rules_missing(chipdock_kernel& kernel) {
  kernel.dtype_rule_count = 2;
  kernel.dtype_rules = nullptr;
}
void alias_of_nothing(chipdock_kernel& kernel) {
  static constexpr chipdock_alias kAlias = {sizeof(chipdock_alias), 7, 0};
  static constexpr const chipdock_alias* kAliases[] = {&kAlias};
  kernel.alias_count = 1;
  kernel.aliases = kAliases;
}
void size_zero(chipdock_kernel& kernel) { kernel.struct_size = 0; }

void list_changes(Tables& tables) {
  if (absent()) return;
  tables.kernel.list = [](chipdock_device* device, const chipdock_kernel* const** out,
                          uint64_t* out_count, chipdock_error* error) {
    static std::atomic<unsigned> calls{0};
    const chipdock_status status = base().kernel.list(device, out, out_count, error);
    if (status == CHIPDOCK_OK && *out_count > 1) *out_count -= calls.fetch_add(1) % 2;
    return status;
  };
}

void listed_refuses(Tables& tables) {
  if (absent()) return;
  tables.kernel.create = [](chipdock_device* device, const chipdock_kernel* kernel,
                            const chipdock_node* node, chipdock_kernel_instance** out,
                            chipdock_error* error) {
    if (is(kernel, "Relu")) {
      return chipdock_fail(error, CHIPDOCK_UNSUPPORTED, "UNSUPPORTED: Relu comes later");
    }
    return base().kernel.create(device, kernel, node, out, error);
  };
}

void supports_alternates(Tables& tables) {
  if (absent()) return;
  tables.kernel.supports = [](chipdock_device* device, const chipdock_kernel* kernel,
                              const chipdock_node* node, int32_t* out, chipdock_error* error) {
    static std::atomic<unsigned> calls{0};
    const chipdock_status status = base().kernel.supports(device, kernel, node, out, error);
    if (status == CHIPDOCK_OK && calls.fetch_add(1) % 2 == 1) {
      *out = CHIPDOCK_SUPPORTS_NO;
    }
    return status;
  };
}

void supports_unknown(Tables& tables) {
  if (absent()) return;
  tables.kernel.supports = [](chipdock_device* device, const chipdock_kernel* kernel,
                              const chipdock_node* node, int32_t* out, chipdock_error* error) {
    const chipdock_status status = base().kernel.supports(device, kernel, node, out, error);
    if (status == CHIPDOCK_OK && *out == CHIPDOCK_SUPPORTS_YES) *out = 9;
    return status;
  };
}

void score_drifts(Tables& tables) {
  if (base().kernel.score == nullptr) return;
  tables.kernel.score = [](chipdock_device* device, const chipdock_kernel* kernel,
                           const chipdock_node* node, double* out, chipdock_error* error) {
    static std::atomic<unsigned> calls{0};
    const chipdock_status status = base().kernel.score(device, kernel, node, out, error);
    if (status == CHIPDOCK_OK) *out += calls.fetch_add(1);
    return status;
  };
}

using Desc = chipdock_launch_desc;

/// A launch whose desc is changed first.
template <void (*kEdit)(Desc&)>
void launch(Tables& tables) {
  if (absent()) return;
  tables.kernel.launch = [](chipdock_kernel_instance* instance, const Desc* given,
                            chipdock_error* error) {
    Desc room{};
    return base().kernel.launch(instance, edited(given, room, kEdit), error);
  };
}
void inline_always(Desc& desc) { desc.stream = nullptr; }
void packed_ignored(Desc& desc) { desc.packed = nullptr; }
void seed_ignored(Desc& desc) { desc.seed = desc.seed_offset = 0; }

void empty_refused(Tables& tables) {
  if (absent()) return;
  tables.kernel.launch = [](chipdock_kernel_instance* instance, const Desc* desc,
                            chipdock_error* error) {
    if (desc != nullptr && desc->struct_size == sizeof(*desc)) {
      for (uint32_t i = 0; i < desc->output_count; ++i) {
        const chipdock_tensor* output = desc->outputs[i];
        for (int32_t k = 0; output != nullptr && k < output->rank; ++k) {
          if (output->shape[k] != 0) continue;
          return chipdock_fail(error, CHIPDOCK_INVALID_ARGUMENT,
                               "INVALID_ARGUMENT: a tensor without elements");
        }
      }
    }
    return base().kernel.launch(instance, desc, error);
  };
}

/// Too many inputs are cut off in place of refused.
void counts_unchecked(Tables& tables) {
  if (absent()) return;
  tables.kernel.launch = [](chipdock_kernel_instance* instance, const Desc* desc,
                            chipdock_error* error) {
    if (instance == nullptr || desc == nullptr) {
      return base().kernel.launch(instance, desc, error);
    }
    return forgiving(CHIPDOCK_INVALID_ARGUMENT, error, [&](chipdock_error* own) {
      return base().kernel.launch(instance, desc, own);
    });
  };
}

/// Packing needs more than prepack_size said.
void prepack_size_short(Tables& tables) {
  if (base().kernel.prepack == nullptr) return;
  tables.kernel.prepack_size = [](chipdock_kernel_instance* instance, uint32_t input,
                                  const chipdock_value* value, chipdock_prepack_info* out,
                                  chipdock_error* error) {
    const chipdock_status status = base().kernel.prepack_size(instance, input, value, out, error);
    if (status == CHIPDOCK_OK && out->size > 64) out->size -= 64;
    return status;
  };
}

/// The layout's name is not closed with 0.
void prepack_layout_open(Tables& tables) {
  if (base().kernel.prepack == nullptr) return;
  tables.kernel.prepack_size = [](chipdock_kernel_instance* instance, uint32_t input,
                                  const chipdock_value* value, chipdock_prepack_info* out,
                                  chipdock_error* error) {
    const chipdock_status status = base().kernel.prepack_size(instance, input, value, out, error);
    if (status == CHIPDOCK_OK && out->size > 0) std::memset(out->layout, 'x', sizeof(out->layout));
    return status;
  };
}

void workspace_short(Tables& tables) {
  if (base().kernel.workspace_size == nullptr) return;
  tables.kernel.workspace_size = [](chipdock_kernel_instance* instance, const Desc* desc,
                                    uint64_t* out, chipdock_error* error) {
    const chipdock_status status = base().kernel.workspace_size(instance, desc, out, error);
    if (status == CHIPDOCK_OK) *out /= 4;
    return status;
  };
}

void instance_leaks(Tables& tables) {
  if (absent()) return;
  tables.kernel.destroy = [](chipdock_kernel_instance* instance, chipdock_error* error) {
    if (instance == nullptr) return base().kernel.destroy(instance, error);
    return CHIPDOCK_OK + 0;
  };
}

constexpr Mutant kMutants[] = {
    {"list_null_name", &descriptors<&null_name>},
    {"list_versions_crossed", &descriptors<&versions_crossed>},
    {"list_unknown_flag", &descriptors<&unknown_flag>},
    {"list_rules_missing", &descriptors<&rules_missing>},
    {"list_alias_of_nothing", &descriptors<&alias_of_nothing>},
    {"list_size_zero", &descriptors<&size_zero>},
    {"list_changes", &list_changes},
    {"listed_refuses", &listed_refuses},
    {"supports_alternates", &supports_alternates},
    {"supports_unknown", &supports_unknown},
    {"score_drifts", &score_drifts},
    {"launch_out_of_order", &launch<&inline_always>},
    {"launch_packed_ignored", &launch<&packed_ignored>},
    {"launch_seed_ignored", &launch<&seed_ignored>},
    {"launch_empty_refused", &empty_refused},
    {"launch_unchecked", &counts_unchecked},
    {"prepack_size_short", &prepack_size_short},
    {"prepack_layout_open", &prepack_layout_open},
    {"workspace_size_short", &workspace_short},
    {"instance_leaks", &instance_leaks},
};

}  // namespace

MutantSpan kernel_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
