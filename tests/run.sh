#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds everything in Release, runs all tests.
#   bash tests/run.sh            all tests
#   bash tests/run.sh -R reshard those whose name matches (arguments go to ctest)
# SHARDCALL_CORPUS=DIR adds the full corpus of HLO programs.
source "$(dirname "$0")/../cmake/setup.sh"

build_shardcall
if ! python3 -c 'import jaxlib' 2>/dev/null; then
  python3 -m pip install -q --break-system-packages jax==0.10.2 jaxlib==0.10.2 ml_dtypes 2>/dev/null ||
    python3 -m pip install -q jax==0.10.2 jaxlib==0.10.2 ml_dtypes ||
    echo "tests/run.sh: jaxlib could not be installed; the tests against it are skipped" >&2
fi
cd "$SHARDCALL_BUILD"
ctest --output-on-failure --no-tests=error -j "$(nproc)" "$@"
