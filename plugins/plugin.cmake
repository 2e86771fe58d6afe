# SPDX-License-Identifier: Apache-2.0
# chipdock_add_plugin(NAME SOURCE...) makes libchipdock_<NAME>.so, a module that links nothing of
# chipdock and exports one symbol, and installs it beside its plugin.toml. Used in this repository
# and, installed with the headers, by plugin projects elsewhere.

function(chipdock_add_plugin name)
  set(target chipdock_${name})
  add_library(${target} MODULE ${ARGN})
  if(TARGET chipdock_abi)
    target_link_libraries(${target} PRIVATE chipdock_abi chipdock_options)
  else()
    target_link_libraries(${target} PRIVATE chipdock::abi)
  endif()
  # A plugin is loaded beside others that may hold the same C++ code in another version, so even
  # libstdc++'s inline functions stay local to it.
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${script}" CONTENT
       "{\n  global:\n    chipdock_plugin_query;\n  local:\n    *;\n};\n" @ONLY)
  target_link_options(${target} PRIVATE "-Wl,--version-script=${script}")
  if(NOT CHIPDOCK_SANITIZE)  # A sanitizer's symbols come from the executable.
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${script}" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}")
  # The folder in the build tree is a loadable plugin too: manifest and library side by side.
  configure_file(plugin.toml "${CMAKE_CURRENT_BINARY_DIR}/plugin.toml" COPYONLY)
  install(TARGETS ${target} LIBRARY DESTINATION chipdock/plugins/${name})
  install(FILES plugin.toml DESTINATION chipdock/plugins/${name})
endfunction()
