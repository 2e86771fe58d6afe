# SPDX-License-Identifier: Apache-2.0
# What `find_package(chipdock PATHS $(chipdock cmake-dir))` gives other projects. A plugin takes the
# headers as target chipdock::abi and the function chipdock_add_plugin; it has nothing to link. A
# framework that embeds the host links chipdock::host: libchipdock.so and the same headers.

get_filename_component(_chipdock_root "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
if(NOT TARGET chipdock::abi)
  add_library(chipdock::abi INTERFACE IMPORTED)
  set_target_properties(chipdock::abi PROPERTIES
                        INTERFACE_INCLUDE_DIRECTORIES "${_chipdock_root}/include")
endif()
if(NOT TARGET chipdock::host AND EXISTS "${_chipdock_root}/lib/libchipdock.so")
  add_library(chipdock::host SHARED IMPORTED)
  set_target_properties(chipdock::host PROPERTIES
                        IMPORTED_LOCATION "${_chipdock_root}/lib/libchipdock.so"
                        IMPORTED_SONAME libchipdock.so
                        INTERFACE_LINK_LIBRARIES chipdock::abi)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/plugin.cmake")
