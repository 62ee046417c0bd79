#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The steps of README.md that need no GPU, with what each prints:
#   bash steps.sh SHARDCALL XLA_FFI_INCLUDE
# SHARDCALL is the command, XLA_FFI_INCLUDE the folder of XLA's headers. Works in a
# folder of its own.
set -euo pipefail
shardcall=$(realpath "$1")
headers=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/row_softmax.* "$here/CMakeLists.txt" "$work"
cd "$work"

step() {
  local status=0
  echo "\$ $*"
  "${@/#shardcall/$shardcall}" 2>&1 || status=$?
  [ "$status" -eq 0 ] || { echo "ended with $status"; exit 1; }
}

echo "\$ cmake -S . -B build && cmake --build build"
{ cmake -S . -B build -DXLA_FFI_INCLUDE="$headers" && cmake --build build; } > log 2>&1 ||
  { cat log; exit 1; }
step shardcall targets --plugin=build/row_softmax.json |
  grep -E '^\$|^row_softmax' | sed -E 's/  +/  /g'
step shardcall check-rule --target=row_softmax --plugin=build/row_softmax.json row_softmax.hlo |
  grep -E '^\$|^  "(verdict|factor|suggestion)"'
step shardcall verify row_softmax.hlo --plugin=build/row_softmax.json | grep -E '^\$|"status"'
step shardcall partition row_softmax.hlo --plugin=build/row_softmax.json
