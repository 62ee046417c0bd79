# SPDX-License-Identifier: Apache-2.0
"""The library of kernels.cc, or of another file here, compiled against the headers of this
process's jaxlib."""
import ctypes
import os
import shutil
import subprocess
import sys

SOURCES = os.path.dirname(os.path.abspath(__file__))


def library(folder, source='kernels.cc'):
    """The ctypes library, which is compiled into `folder`. Ends the process with status 77
    where there is no compiler, or no jaxlib."""
    try:
        import jax
    except ImportError as e:
        print(f'SKIPPED: {e}')
        sys.exit(77)
    compiler = shutil.which('g++') or shutil.which('c++')
    if compiler is None:
        print('SKIPPED: no C++ compiler')
        sys.exit(77)
    path = os.path.join(folder, f'lib{source}.so')
    subprocess.run([compiler, '-std=c++17', '-O1', '-w', '-fPIC', '-shared', '-isystem', jax.ffi.include_dir(),
                    '-o', path, os.path.join(SOURCES, source)], check=True)
    return ctypes.CDLL(path)
