// SPDX-License-Identifier: Apache-2.0
#include "library_file.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "error.hpp"

namespace chipdock::runtime {

void check_library_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return;
  const auto size = static_cast<uint64_t>(file.tellg());
  Elf64_Ehdr header{};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return;
  const bool is_elf64 = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                        header.e_ident[EI_CLASS] == ELFCLASS64 &&
                        header.e_phentsize == sizeof(Elf64_Phdr);
  if (!is_elf64) return;
  uint64_t end = header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment))) break;
    if (segment.p_type == PT_LOAD)
      end = std::max<uint64_t>(end, segment.p_offset + segment.p_filesz);
  }
  if (size < end) {
    raise(CHIPDOCK_UNAVAILABLE, "plugin ", path,
          " cannot be loaded: the file is truncated, it has ", size,
          " bytes and its segments end at ", end, "; install the plugin again");
  }
}

}  // namespace chipdock::runtime
