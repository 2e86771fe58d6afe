#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How the binaries beside this file were made. They are committed and not built again: a rebuilt binary
# proves nothing about the binaries that users have. Usage: build.sh FOLDER
set -eu
here=$(dirname "$0")
out=${1:?give the folder to write to}
make_one() {
  name=$1
  shift
  ${CC:-cc} -std=c99 -O1 -fPIC -shared -s -fvisibility=hidden -Wall -Wextra -Werror \
    -Wl,--build-id=none -Wl,-z,noseparate-code "$@" "$here/frozen_plugin.c" -o "$out/$name.so"
}
make_one old -DFROZEN_OLD
make_one new_zero -DFROZEN_NEW
make_one new_data -DFROZEN_NEW -DFROZEN_TAIL=77
make_one major2 -DFROZEN_NEW -DFROZEN_MAJOR=2
