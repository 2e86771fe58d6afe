// SPDX-License-Identifier: Apache-2.0
// Turns a plugin's status and error record into the host's exception. The texts are made here once,
// so that every failure of every slot reads the same way.
#include "error.hpp"

#include <cstring>

namespace chipdock::runtime {
namespace {

/// The record's text without trusting it to be closed, and without the code's name in front.
std::string text_of(const chipdock_error& error, const char* code_name) {
  std::string text(error.text, strnlen(error.text, sizeof(error.text)));
  const std::string prefix = std::string(code_name) + ": ";
  if (text.compare(0, prefix.size(), prefix) == 0) text.erase(0, prefix.size());
  return text;
}

}  // namespace

void check(chipdock_status status, const chipdock_error& error, const std::string& what) {
  if (status == CHIPDOCK_OK) return;
  const bool known = status > CHIPDOCK_OK && status <= CHIPDOCK_INTERNAL;
  const chipdock_status code = known ? status : CHIPDOCK_INTERNAL;
  const char* name = kit::status_name(code);
  // A record that was not filled for this failure tells nothing about it.
  const bool filled = error.code == status;
  std::string text = filled ? text_of(error, name) : std::string();
  if (!known) {
    text = "returned status " + std::to_string(status) + ", which this host does not know" +
           (text.empty() ? std::string() : " (" + text + ")") + " [BASE-7]";
    throw Error(code, std::string(name) + ": " + what + " " + text);
  }
  if (text.empty()) text = "failed and gave no reason";
  throw Error(code, std::string(name) + ": " + what + ": " + text, filled ? error.vendor_code : 0,
              filled ? error.scope : static_cast<int32_t>(CHIPDOCK_SCOPE_CALL),
              filled ? error.correlation_id : 0);
}

}  // namespace chipdock::runtime
