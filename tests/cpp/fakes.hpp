// SPDX-License-Identifier: Apache-2.0
// Loading of the pretended plugins of tests/fakes, and reading of failure texts, for C++ tests.
#ifndef CHIPDOCK_TESTS_CPP_FAKES_HPP_
#define CHIPDOCK_TESTS_CPP_FAKES_HPP_

#include <cstdlib>
#include <memory>
#include <string>

#include "plugin.hpp"

namespace chipdock::check {

inline std::string fake_path(const std::string& name) {
  const char* folder = std::getenv("CHIPDOCK_TEST_LIBDIR");
  return std::string(folder == nullptr ? "." : folder) + "/lib" + name + ".so";
}

inline std::shared_ptr<runtime::Plugin> load_fake(const std::string& name,
                                                  const std::string& layers = "none",
                                                  const runtime::Options& options = {}) {
  return runtime::Plugin::load(fake_path(name), {layers, options});
}

/// The text of the Error that `body` throws, or "" if it throws none.
template <class Body>
std::string failure_of(Body&& body) {
  try {
    body();
  } catch (const runtime::Error& error) {
    return error.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace chipdock::check

/// CHECK(has(text, part)) that shows the text.
#define CHECK_HAS(text, part)                                                                 \
  do {                                                                                        \
    const std::string shown_ = (text);                                                        \
    if (!::chipdock::check::has(shown_, (part)))                                              \
      ::chipdock::check::fail(__FILE__, __LINE__, "'" + shown_ + "' lacks '" + (part) + "'"); \
  } while (false)

#endif  // CHIPDOCK_TESTS_CPP_FAKES_HPP_
