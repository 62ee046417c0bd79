#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each installed header by itself, with a user's warnings.

    headers_alone.py --cxx=c++ --cc=cc --include=PREFIX/include
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cxx', default='c++')
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--include', required=True)
    options = parser.parse_args()
    root = os.path.join(options.include, 'shardcall')
    headers = sorted(os.path.relpath(os.path.join(folder, name), options.include)
                     for folder, _, names in os.walk(root) for name in names
                     if name.endswith('.h'))

    def compiles(header):
        # Headers for C say so by their names; a C++ program may include them, too.
        in_c = os.path.basename(header).startswith('shardcall_')
        kinds = [(options.cxx, '-xc++', '-std=c++20')] + ([(options.cc, '-xc', '-std=c11')] if in_c
                                                           else [])
        for compiler, language, standard in kinds:
            done = subprocess.run(
                [compiler, language, standard, '-fsyntax-only', '-Wall', '-Wextra', '-Werror',
                 f'-I{options.include}', '-'],
                input=f'#include "{header}"\n', capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f'{header} does not compile by itself ({compiler}):\n{done.stderr[:2000]}'
        return ''

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(compiles, headers) if text]
    print('\n'.join([*wrong, f'{len(headers)} headers, {len(wrong)} do not compile by themselves']))
    return 1 if wrong or len(headers) < 50 else 0


if __name__ == '__main__':
    sys.exit(main())
