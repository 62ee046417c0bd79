#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every step of kernels/ffi/README.md.

    run_ffi_readme.py --root=. --command=build/bin/shardcall --include=FFI_HEADERS

A block with file=NAME is written to that file; a block of sh is run, and must
print what the next block of text says. `sh if=PROGRAM`: only where it is found.
Exit status 77 without the headers.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCK = re.compile(r'^```(\w+)([^\n]*)\n(.*?)^```$', re.M | re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--root', required=True)
    parser.add_argument('--command', required=True)
    parser.add_argument('--headers', required=True, help="the folder of ours")
    parser.add_argument('--include', default='')
    args = parser.parse_args()
    if not os.path.exists(os.path.join(args.include, 'xla/ffi/api/ffi.h')):
        print("SKIPPED: no jaxlib with XLA's FFI headers is found")
        return 77
    with open(os.path.join(args.root, 'kernels/ffi/README.md'), encoding='utf-8') as f:
        blocks = BLOCK.findall(f.read())
    env = dict(os.environ, XLA_FFI_INCLUDE=os.path.abspath(args.include),
               SHARDCALL_INCLUDE=os.path.abspath(args.headers),
               PATH=os.path.dirname(os.path.abspath(args.command)) + os.pathsep + os.environ['PATH'],
               OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
               OMPI_MCA_rmaps_base_oversubscribe='1', OMPI_MCA_mpi_yield_when_idle='1')
    steps = 0
    with tempfile.TemporaryDirectory() as directory:
        for k, (language, info, text) in enumerate(blocks):
            name = re.search(r'file=(\S+)', info)
            if name:
                with open(os.path.join(directory, name.group(1)), 'w', encoding='utf-8') as f:
                    f.write(text)
            if language != 'sh':
                continue
            needs = re.search(r'if=(\S+)', info)
            if needs and not shutil.which(needs.group(1)):
                continue
            run = subprocess.run(['bash', '-ec', text], cwd=directory, env=env, timeout=200,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 check=False)
            following = blocks[k + 1] if k + 1 < len(blocks) else ('', '', '')
            expected = following[2] if following[0] == 'text' else ''
            if run.returncode != 0 or run.stdout != expected:
                print(f'{text}exit status {run.returncode}\n{run.stdout}{run.stderr}')
                print(f'expected:\n{expected}')
                return 1
            steps += 1
    print(f'{steps} steps do what the page says')
    return 0 if steps else 1


if __name__ == '__main__':
    sys.exit(main())
