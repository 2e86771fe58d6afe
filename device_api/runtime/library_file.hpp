// SPDX-License-Identifier: Apache-2.0
// A look at a shared library's file before the dynamic linker maps it.
#ifndef CHIPDOCK_RUNTIME_LIBRARY_FILE_HPP_
#define CHIPDOCK_RUNTIME_LIBRARY_FILE_HPP_

#include <string>

namespace chipdock::runtime {

/// Throws UNAVAILABLE if `path` is an ELF file that ends before one of its loadable segments does:
/// touching the missing pages would end the process with SIGBUS inside dlopen. Anything else is
/// left to dlopen, whose own text is better.
void check_library_file(const std::string& path);

}  // namespace chipdock::runtime

#endif  // CHIPDOCK_RUNTIME_LIBRARY_FILE_HPP_
