# SPDX-License-Identifier: Apache-2.0
# What `find_package(chipdock PATHS $(chipdock cmake-dir))` gives a plugin project of its own: the
# headers as target chipdock::abi and the function chipdock_add_plugin. There is nothing to link.

get_filename_component(_chipdock_root "${CMAKE_CURRENT_LIST_DIR}" DIRECTORY)
if(NOT TARGET chipdock::abi)
  add_library(chipdock::abi INTERFACE IMPORTED)
  set_target_properties(chipdock::abi PROPERTIES
                        INTERFACE_INCLUDE_DIRECTORIES "${_chipdock_root}/include")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/plugin.cmake")
