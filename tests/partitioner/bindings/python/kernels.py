# SPDX-License-Identifier: Apache-2.0
"""The library of kernels.cc, compiled against the headers of this process's jaxlib."""
import ctypes
import os
import shutil
import subprocess
import sys

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'kernels.cc')


def library(folder):
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
    path = os.path.join(folder, 'libkernels.so')
    subprocess.run([compiler, '-std=c++17', '-O1', '-w', '-fPIC', '-shared', '-isystem', jax.ffi.include_dir(),
                    '-o', path, SOURCE], check=True)
    return ctypes.CDLL(path)
