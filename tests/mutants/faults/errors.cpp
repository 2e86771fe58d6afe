// SPDX-License-Identifier: Apache-2.0
// Wrong statuses and error records, in the slots that most work goes through.
#include <cstring>

#include "around.hpp"

namespace chipdock::mutants {
namespace {

bool whole(const chipdock_error* error) {
  return error != nullptr && error->struct_size >= sizeof(chipdock_error);
}

struct NotFilled {
  template <class Call>
  static chipdock_status run(Call call, chipdock_error*) {
    return call(nullptr);
  }
};

/// After a failure the record is changed.
template <void (*kSpoil)(chipdock_error&)>
struct Spoiled {
  template <class Call>
  static chipdock_status run(Call call, chipdock_error* error) {
    const chipdock_status status = call(error);
    if (status != CHIPDOCK_OK && whole(error)) kSpoil(*error);
    return status;
  }
};

void unterminated(chipdock_error& error) {
  std::memset(error.text + error.text_size, '#', sizeof(error.text) - error.text_size);
}
void other_code(chipdock_error& error) { error.code = CHIPDOCK_INTERNAL; }
void unknown_scope(chipdock_error& error) { error.scope = 9; }
void empty_text(chipdock_error& error) { error.text[0] = '\0', error.text_size = 0; }
void long_text_size(chipdock_error& error) { error.text_size = sizeof(error.text); }

struct FilledOnSuccess {
  template <class Call>
  static chipdock_status run(Call call, chipdock_error* error) {
    const chipdock_status status = call(error);
    if (status == CHIPDOCK_OK) chipdock_fail(error, CHIPDOCK_INTERNAL, "INTERNAL: all is well");
    return status;
  }
};

struct PastItsSize {
  template <class Call>
  static chipdock_status run(Call call, chipdock_error* error) {
    const chipdock_status status = call(error);
    if (status != CHIPDOCK_OK && error != nullptr && error->struct_size < sizeof(*error)) {
      std::memset(reinterpret_cast<char*>(error) + error->struct_size, '#',
                  sizeof(*error) - error->struct_size);
    }
    return status;
  }
};

/// One status becomes another, and the record with it.
template <chipdock_status kFrom, chipdock_status kTo>
struct Turned {
  template <class Call>
  static chipdock_status run(Call call, chipdock_error* error) {
    if (kTo == CHIPDOCK_OK) return forgiving(kFrom, error, call);
    const chipdock_status status = call(error);
    if (status != kFrom) return status;
    if (whole(error)) error->code = kTo;
    return kTo;
  }
};

constexpr Mutant kMutants[] = {
    {"error_not_filled", &around_common<NotFilled>},
    {"error_not_terminated", &around_common<Spoiled<&unterminated>>},
    {"error_other_code", &around_common<Spoiled<&other_code>>},
    {"error_unknown_scope", &around_common<Spoiled<&unknown_scope>>},
    {"error_empty_text", &around_common<Spoiled<&empty_text>>},
    {"error_text_size", &around_common<Spoiled<&long_text_size>>},
    {"error_on_success", &around_common<FilledOnSuccess>},
    {"error_past_size", &around_common<PastItsSize>},
    {"status_unknown", &around_common<Turned<CHIPDOCK_INVALID_ARGUMENT, 77>>},
    {"status_swallowed", &around_common<Turned<CHIPDOCK_INVALID_ARGUMENT, CHIPDOCK_OK>>},
    {"status_unsupported_is_invalid",
     &around_common<Turned<CHIPDOCK_UNSUPPORTED, CHIPDOCK_INVALID_ARGUMENT>>},
    {"status_oom_is_internal", &around_common<Turned<CHIPDOCK_OUT_OF_MEMORY, CHIPDOCK_INTERNAL>>},
};

}  // namespace

MutantSpan errors_mutants() { return span_of(kMutants); }

}  // namespace chipdock::mutants
