// SPDX-License-Identifier: Apache-2.0
// The host's one exception type, and the way from a plugin's status to it.
#ifndef CHIPDOCK_RUNTIME_ERROR_HPP_
#define CHIPDOCK_RUNTIME_ERROR_HPP_

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>

#include "chipdock/plugin_kit.hpp"

namespace chipdock::runtime {

/// Text starts with the code's name: "OUT_OF_MEMORY: alloc of …".
class Error : public std::runtime_error {
 public:
  Error(chipdock_status code, const std::string& text, int64_t vendor_code = 0,
        int32_t scope = CHIPDOCK_SCOPE_CALL, uint64_t correlation_id = 0)
      : std::runtime_error(text),
        code_(code),
        vendor_code_(vendor_code),
        scope_(scope),
        correlation_id_(correlation_id) {}
  chipdock_status code() const { return code_; }
  int64_t vendor_code() const { return vendor_code_; }
  int32_t scope() const { return scope_; }
  uint64_t correlation_id() const { return correlation_id_; }

 private:
  chipdock_status code_;
  int64_t vendor_code_;
  int32_t scope_;
  uint64_t correlation_id_;
};

/// Throws Error "CODE: parts…".
template <class... Parts>
[[noreturn]] void raise(chipdock_status code, const Parts&... parts) {
  std::ostringstream text;
  text << kit::status_name(code) << ": ";
  (text << ... << parts);
  throw Error(code, text.str());
}

/// An error record ready to be passed to a slot. One is made for every call, so the text is not zeroed: it
/// starts empty, and nothing behind its closing 0 is ever read.
struct ErrorRecord : chipdock_error {
  ErrorRecord() {  // NOLINT(cppcoreguidelines-pro-type-member-init)
    struct_size = sizeof(chipdock_error);
    code = CHIPDOCK_OK;
    vendor_code = 0;
    scope = CHIPDOCK_SCOPE_CALL;
    text_size = 0;
    correlation_id = 0;
    text[0] = '\0';
  }
};

/// Throws Error unless `status` is OK. `what` names the call: "acme:0 memory.alloc".
/// An unknown status becomes INTERNAL; an empty text becomes one that names the call. [BASE-7]
void check(chipdock_status status, const chipdock_error& error, const std::string& what);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_ERROR_HPP_
