# SPDX-License-Identifier: Apache-2.0
# Flags that every native target shares, as two interface targets: chipdock_abi (the C headers)
# and chipdock_options (language level, warnings, sanitizers). Per-ISA flags are plugins/cpu's.

set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
# -O3 is kept for plugins/cpu/simd, where it pays; elsewhere it only makes code larger.
foreach(lang C CXX)
  set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -ftree-vectorize -DNDEBUG")
  set(CMAKE_${lang}_FLAGS_RELWITHDEBINFO "-O1 -g1")  # The sanitizer presets; assertions stay.
endforeach()

find_program(CHIPDOCK_CCACHE ccache)
mark_as_advanced(CHIPDOCK_CCACHE)
if(CHIPDOCK_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CHIPDOCK_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CHIPDOCK_CCACHE}")
endif()

find_package(Threads REQUIRED)

add_library(chipdock_abi INTERFACE)
target_include_directories(chipdock_abi INTERFACE "${PROJECT_SOURCE_DIR}/device_api/include")

add_library(chipdock_options INTERFACE)
target_compile_options(chipdock_options INTERFACE -Wall -Wextra -pedantic)
if(CHIPDOCK_WERROR)
  target_compile_options(chipdock_options INTERFACE -Werror)
endif()
if(CHIPDOCK_SANITIZE)
  # A UBSan finding must end the test; -fno-sanitize-recover does what abort_on_error does for ASan.
  # vptr checks need one typeinfo for each class across libraries, which hidden symbols forbid.
  target_compile_options(chipdock_options INTERFACE -fsanitize=${CHIPDOCK_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all -fno-sanitize=vptr)
  # With a sanitizer's checks in between, GCC loses sight of initialisation in the standard library.
  target_compile_options(chipdock_options INTERFACE -Wno-maybe-uninitialized)
  target_link_options(chipdock_options INTERFACE -fsanitize=${CHIPDOCK_SANITIZE})
endif()
target_link_options(chipdock_options INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)

# Writes a linker version script that exports the given symbols (globs allowed) and hides the rest,
# libstdc++'s instantiations too: two modules of one process must never share those.
function(chipdock_export_only target)
  list(JOIN ARGN ";\n    " symbols)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${script}" CONTENT
       "{\n  global:\n    ${symbols};\n  local:\n    *;\n};\n" @ONLY)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${script}")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()

# Writes generated/families.inc, or the list named by LIST, with a line FAMILY(<stem>) for each given
# source and lets the target include it: a file in ops/ is entered by its name, and adding an operator
# family edits no list.
function(chipdock_families target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LIST" "")
  if(NOT arg_LIST)
    set(arg_LIST families.inc)
  endif()
  set(lines "")
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    get_filename_component(stem "${source}" NAME_WE)
    string(APPEND lines "FAMILY(${stem})\n")
  endforeach()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
  file(CONFIGURE OUTPUT "${generated}/${arg_LIST}" CONTENT "${lines}" @ONLY)
  target_include_directories(${target} PRIVATE "${generated}")
endfunction()
