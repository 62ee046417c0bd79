#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The newest JAX of PyPI, on the newest CPython of version 3.12 or later that the machine has, in
# the path or in pyenv:
#
#   bash tests/support/newest_jax.sh FOLDER
#
# makes or updates the environment FOLDER and prints the path of its Python. Where there is no such
# Python with its headers, or JAX cannot be had, it says so in one line; exit status 1.
set -euo pipefail
folder=$1

left_out() {
  echo "tests/run.sh: the tests with the newest JAX are left out: $1" >&2
  exit 1
}

# Prints the version of a Python that will do.
version_of() {
  "$1" -c 'import os, sys, sysconfig
headers = os.path.join(sysconfig.get_path("include"), "Python.h")
if (sys.implementation.name != "cpython" or sys.version_info < (3, 12) or sys.version_info[3] != "final"
        or sysconfig.get_config_var("Py_GIL_DISABLED") or not os.path.exists(headers)):
    sys.exit(1)
print(*sys.version_info[:3], sep=".")' 2>/dev/null
}

newest=$(
  for python in $(compgen -c python3 | grep -x 'python3\(\.[0-9]*\)\?' | sort -u) \
                "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
    path=$(type -P "$python") && version=$(version_of "$path") || continue
    echo "$version $path"
  done | sort -V | tail -1
)
[ -n "$newest" ] || left_out 'there is no CPython 3.12 or later with its headers'
version=${newest%% *} python=${newest#* }

if [ "$(version_of "$folder/bin/python" || true)" != "$version" ]; then
  "$python" -m venv --clear "$folder" 2>/dev/null ||
    left_out "$python makes no virtual environment"
fi
# What is there will do if the network does not.
"$folder/bin/python" -m pip install -q --disable-pip-version-check --upgrade \
    jax ml_dtypes optax pytest absl-py hypothesis 2>/dev/null || true
jax=$("$folder/bin/python" -c 'import jax, optax, pytest; print(jax.__version__)' 2>/dev/null) ||
  left_out 'JAX could not be installed'
echo "tests/run.sh: the newest JAX is $jax, on CPython $version" >&2
echo "$folder/bin/python"
