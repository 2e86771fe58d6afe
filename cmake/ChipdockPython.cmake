# SPDX-License-Identifier: Apache-2.0
# Finds the Python whose packages the build uses: the one that runs pip, else the active or
# repository virtual environment. Without CHIPDOCK_WITH_PYTHON only the interpreter is wanted.

set(Python_FIND_VIRTUALENV FIRST)
if(NOT Python_EXECUTABLE AND NOT DEFINED ENV{VIRTUAL_ENV}
   AND EXISTS "${PROJECT_SOURCE_DIR}/.venv/bin/python")
  set(Python_EXECUTABLE "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
if(CHIPDOCK_WITH_PYTHON)
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  if(NOT pybind11_DIR)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m pybind11 --cmakedir
                    OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 3.0 CONFIG REQUIRED)
else()
  find_package(Python 3.11 COMPONENTS Interpreter)
endif()
