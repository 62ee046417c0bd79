#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds C, C++ and CUDA sources against .clang-format, by one version of clang-format.

    pip install clang-format==20.1.8
    format.py ROOT [--write]

Exit status 77 without that version. The tables (.inc) are laid out by hand.
"""
import argparse
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = '20.1.8'
SUFFIXES = ('.h', '.cc', '.c', '.cu')
FILES_A_RUN = 100


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('root', type=pathlib.Path)
    parser.add_argument('--write', action='store_true')
    options = parser.parse_args()
    tool = shutil.which('clang-format')
    said = subprocess.run([tool, '--version'], capture_output=True, text=True,
                          check=False).stdout if tool else ''
    if VERSION not in said:
        print(f'SKIPPED: clang-format {VERSION} is not here, but {said.strip() or "none"}; '
              f'pip install clang-format=={VERSION}')
        return 77
    files = [str(path) for top in ('sharding', 'collectives', 'kernels', 'partitioner', 'tests',
                                   'examples')
             for path in sorted((options.root / top).rglob('*')) if path.suffix in SUFFIXES]
    wrong = []
    for k in range(0, len(files), FILES_A_RUN):
        how = ['-i'] if options.write else ['--dry-run']
        done = subprocess.run([tool, *how, *files[k:k + FILES_A_RUN]], capture_output=True, text=True,
                              check=False)
        wrong += sorted(set(re.findall(r'^(.+?):\d+:\d+: ', done.stderr, re.M)))
    print('\n'.join([*(f'{name} is not formatted' for name in wrong),
                     f'{len(files)} files, {len(wrong)} not formatted'
                     + ('; run tests/structure/format.py . --write' if wrong else '')]))
    return 1 if wrong or not files else 0


if __name__ == '__main__':
    sys.exit(main())
