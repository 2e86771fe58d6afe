// SPDX-License-Identifier: Apache-2.0
// The C and C++ compiler of the host: found in PATH, run as a process, its output loaded as a
// library.
#ifndef CHIPDOCK_PLUGIN_CPU_COMPILER_HPP_
#define CHIPDOCK_PLUGIN_CPU_COMPILER_HPP_

#include <string>
#include <vector>

namespace chipdock::plugin::cpu {

enum class Language { kC, kCxx };

/// Path of the compiler: $CC or $CXX, else cc, gcc, clang or c++, g++, clang++; "" if there is
/// none.
std::string find_compiler(Language language);

struct Compiled {
  void* library = nullptr;  ///< From dlopen; NULL if the text did not compile.
  std::string log;          ///< What the compiler and the loader said.
};

/// Compiles `text` with extra `flags`. Leaves no file behind. Throws kit::Failure if the compiler
/// cannot be run or there is no room for its files.
Compiled compile_text(Language language, const std::string& compiler, const std::string& text,
                      const std::vector<std::string>& flags);

}  // namespace chipdock::plugin::cpu

#endif  // CHIPDOCK_PLUGIN_CPU_COMPILER_HPP_
