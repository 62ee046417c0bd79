#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel shardcall-pjrt:

    python3 build_wheel.py [--build=build-wheel] [--library=FILE] --out=dist

Builds the library without CUDA, NCCL and MPI, so that it loads wherever JAX does, or takes
the one that is named. The libraries that it needs beyond those of every Linux (Abseil,
protobuf, OpenBLAS) are put beside it under names of their own, by auditwheel, and the symbols
of the first two get names of their own, too. Prints the wheel's path. Needs nm, pip and the
network.
"""
import argparse
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '../../../..')
sys.path.insert(0, os.path.join(ROOT, 'cmake'))
from self_contained_wheel import build, run, tools


def build_library(folder):
    """The path of a library that needs neither CUDA nor NCCL nor MPI."""
    switches = [f'-DSHARDCALL_{part}=OFF' for part in (
        'CUDA', 'MPI', 'BUILD_TESTS', 'BUILD_BENCHMARKS', 'BUILD_EXAMPLES')]
    run('cmake', '-G', 'Ninja', '-S', ROOT, '-B', folder, '-DCMAKE_BUILD_TYPE=Release', *switches)
    run('cmake', '--build', folder, '--target', 'shardcall_pjrt_whole')
    return os.path.join(folder, 'lib', 'libshardcall_pjrt_whole.so')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build-wheel', help='the folder to build in')
    parser.add_argument('--library', help='in place of one that is built')
    parser.add_argument('--out', default='dist')
    options = parser.parse_args()
    library = options.library or build_library(options.build)
    with tempfile.TemporaryDirectory(prefix='shardcall_wheel.') as scratch:
        python = tools(scratch, 'setuptools>=70.1')
        source = os.path.join(scratch, 'source')
        shutil.copytree(HERE, source, ignore=shutil.ignore_patterns('__pycache__', 'build'))
        shutil.copy(library, os.path.join(source, 'shardcall_pjrt', 'libshardcall_pjrt.so'))
        print(build(python, source, scratch, options.out, '--no-build-isolation'))
    return 0


if __name__ == '__main__':
    sys.exit(main())
