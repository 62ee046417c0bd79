#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs (Debian packages, and for the differential tests
# jaxlib), configures and builds. Sourced by examples/run.sh and tests/run.sh;
# `build_shardcall [target ...]` leaves the binaries in build/bin.
set -euo pipefail

SHARDCALL_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SHARDCALL_BUILD=${SHARDCALL_BUILD:-$SHARDCALL_ROOT/build}
SHARDCALL_CMAKE_OPTIONS=()
# zipcmp, zipmerge and ziptool: Debian's CMake files of libzip name their programs.
SHARDCALL_PACKAGES="g++ cmake ninja-build libabsl-dev libgtest-dev libgmock-dev
  libopenblas-dev nlohmann-json3-dev protobuf-compiler libprotobuf-dev libzip-dev zipcmp zipmerge ziptool
  openmpi-bin libopenmpi-dev python3 python3-pip"

# Several ranks a core, as root in a container: what Open MPI needs for that.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
# One device is one thread; BLAS must not start threads of its own.
export OPENBLAS_NUM_THREADS=1

install_packages() {
  local missing=() p
  for p in $SHARDCALL_PACKAGES; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || {
    echo "shardcall: no apt-get here; what Debian calls ${missing[*]} must be installed" >&2
    return 0
  }
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# A linker that is faster than the default one, where the compiler has it: the tests are some 300
# programs.
fast_linker() {
  local linker probe
  probe=$(mktemp)
  for linker in lld gold; do
    if echo 'int main() {}' | ${CXX:-c++} -x c++ -fuse-ld=$linker -o "$probe" - 2>/dev/null; then
      echo "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=$linker"
      break
    fi
  done
  rm -f "$probe"
}

configure_shardcall() {
  local log=$SHARDCALL_ROOT/.build.log
  cmake -G Ninja -S "$SHARDCALL_ROOT" -B "$SHARDCALL_BUILD" -DCMAKE_BUILD_TYPE=Release \
    $(fast_linker) "${SHARDCALL_CMAKE_OPTIONS[@]}" "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

build_shardcall() {
  install_packages
  # A build from nothing compiles files of a folder as one, which takes half the time. If that
  # fails, because they do not go together, each is compiled by itself.
  local unity=()
  [ -e "$SHARDCALL_BUILD/CMakeCache.txt" ] || unity=(-DSHARDCALL_UNITY=ON)
  configure_shardcall "${unity[@]}"
  ninja -C "$SHARDCALL_BUILD" "$@" || {
    [ ${#unity[@]} -gt 0 ] || return 1
    echo "shardcall: does not build with SHARDCALL_UNITY; each file is compiled by itself" >&2
    configure_shardcall -DSHARDCALL_UNITY=OFF
    ninja -C "$SHARDCALL_BUILD" "$@"
  }
}
