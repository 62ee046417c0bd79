#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything in Release, runs all tests.
#   bash tests/run.sh            all tests
#   bash tests/run.sh -R reshard those whose name matches (arguments go to ctest)
# SHARDCALL_CORPUS=DIR adds the full corpus of HLO programs.
source "$(dirname "$0")/../cmake/setup.sh"

# Before the build: its tests compile against the headers that come with jaxlib.
install_packages
# python_packages MODULE PACKAGE ...: installs the packages, unless the module is there.
python_packages() {
  local module=$1
  shift
  python3 -c "import $module" 2>/dev/null || install_python_packages "$module" "$@"
}
install_python_packages() {
  local module=$1
  shift
  python3 -m pip install -q --break-system-packages "$@" 2>/dev/null ||
    python3 -m pip install -q "$@" ||
    echo "tests/run.sh: $module could not be installed; the tests with it are skipped" >&2
}
python_packages jaxlib jax==0.10.2 jaxlib==0.10.2 ml_dtypes optax
python_packages nanobind nanobind
python3 "$SHARDCALL_ROOT/tests/kernels/fetch_ffi_headers.py" --out="$SHARDCALL_BUILD/ffi_headers" \
  0.5.3 0.8.2 0.10.2 0.11.2 0.12.0 || echo "tests/run.sh: tests against those headers are skipped" >&2
# The second leg, beside JAX 0.10.2: the live tests with the newest JAX.
newest_python=$(bash "$SHARDCALL_ROOT/tests/support/newest_jax.sh" "$SHARDCALL_BUILD/newest_jax") ||
  newest_python=
SHARDCALL_CMAKE_OPTIONS=("-DSHARDCALL_NEWEST_PYTHON=$newest_python")

# fetch_plugin VARIABLE PLATFORM FOLDER: writes the path of XLA's plugin to a file named VARIABLE.
fetched=$SHARDCALL_BUILD/.fetched
fetch_plugin() {
  rm -f "$fetched/$1"
  [ -z "${!1:-}" ] || return 0
  python3 "$SHARDCALL_ROOT/tests/support/fetch_pjrt_plugin.py" "$2" --out="$SHARDCALL_BUILD/$3" \
    >"$fetched/$1" || echo "tests/run.sh: tests with XLA's plugin for $2 are skipped" >&2
}
# What only the tests need comes while the build runs.
fetch_for_tests() {
  fetch_plugin SHARDCALL_PJRT_PLUGIN cuda pjrt
  fetch_plugin SHARDCALL_PJRT_NEWEST_PLUGIN newest_cuda pjrt
  fetch_plugin SHARDCALL_PJRT_CPU_PLUGIN cpu pjrt_cpu
  # With another version the check of the layout would be skipped.
  local clang_format
  clang_format=$(sed -n "s/^VERSION = '\(.*\)'/\1/p" "$SHARDCALL_ROOT/tests/structure/format.py")
  python3 -c "import importlib.metadata as m; assert m.version('clang-format') == '$clang_format'" \
    2>/dev/null || install_python_packages clang-format "clang-format==$clang_format"
  python_packages pytest pytest absl-py hypothesis
  python_packages flax jax==0.10.2 flax optax
  # A browser for the test of the page that explain writes; skipped without.
  command -v chromium >/dev/null || (SHARDCALL_PACKAGES=chromium install_packages) ||
    echo "tests/run.sh: chromium could not be installed; the test with it is skipped" >&2
}
mkdir -p "$fetched"
fetch_for_tests &
build_shardcall
wait
for path in "$fetched"/*; do
  [ ! -s "$path" ] || export "$(basename "$path")=$(cat "$path")"
done
cd "$SHARDCALL_BUILD"
# One more than there are cores, since some tests mostly wait.
ctest --output-on-failure --no-tests=error -j "$(($(nproc) + 1))" "$@" | tee .tests.log
# `sort` is read to its end: under pipefail a reader that stops early fails the run.
awk '/ sec$/ && / Test +#/ { print $(NF - 1), $0 }' .tests.log | sort -rn |
  sed -nE '1,10s/^[0-9.]+ +[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) .* ([0-9.]+) sec$/\2 s \1/p' |
  { echo "The ten slowest tests:"; cat; }
