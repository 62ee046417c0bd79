#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each installed header compiles by itself, with a user's warnings.

    headers_alone.py --cxx=c++ --cc=cc --include=PREFIX/include

A header whose includes are all among those of another one, directly or through
others, adds nothing that the other one does not include before it needs it. So
the two are compiled as one file, the smaller one first, and the larger one still
stands by itself: most of the time goes into headers that they share.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)', re.MULTILINE)


def installed_headers(include):
    """The headers below `include`/shardcall, by the names under which they are included."""
    root = os.path.join(include, 'shardcall')
    return sorted(os.path.relpath(os.path.join(folder, name), include)
                  for folder, _, names in os.walk(root) for name in names if name.endswith('.h'))


def closures(include, headers):
    """For each header the set of all that it includes; others' headers are not looked into."""
    known = set(headers)
    found = {}

    def closure(header):
        if header not in found:
            found[header] = {header}
            if header in known:
                with open(os.path.join(include, header), encoding='utf-8') as file:
                    for name in INCLUDE.findall(file.read()):
                        found[header] |= closure(name)
        return found[header]

    return {header: closure(header) for header in headers}


def chains(included):
    """Lists of headers, each of which includes all that the one before it includes."""
    lists = []
    for header in sorted(included, key=lambda name: (len(included[name]), name)):
        without = included[header] - {header}
        fitting = [chain for chain in lists if included[chain[-1]] <= without]
        if fitting:
            max(fitting, key=lambda chain: len(included[chain[-1]])).append(header)
        else:
            lists.append([header])
    return lists


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--cxx', default='c++')
    parser.add_argument('--cc', default='cc')
    parser.add_argument('--include', required=True)
    options = parser.parse_args()
    headers = installed_headers(options.include)
    # Headers for C say so by their names; a C++ program may include them, too. What they include
    # depends on the language, so in C each is compiled by itself.
    in_c = [header for header in headers if os.path.basename(header).startswith('shardcall_')]
    files = [(options.cxx, '-xc++', '-std=c++20', chain)
             for chain in chains(closures(options.include, headers))]
    files += [(options.cc, '-xc', '-std=c11', [header]) for header in in_c]

    def compiles(file):
        compiler, language, standard, chain = file
        done = subprocess.run(
            [compiler, language, standard, '-fsyntax-only', '-Wall', '-Wextra', '-Werror',
             f'-I{options.include}', '-'],
            input=''.join(f'#include "{header}"\n' for header in chain),
            capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ''
        return f'included one after the other by {compiler}, one of {" ".join(chain)} ' \
               f'does not compile by itself:\n{done.stderr[:2000]}'

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(compiles, files) if text]
    print('\n'.join([*wrong, f'{len(headers)} headers in {len(files)} files, {len(wrong)} of them '
                              'do not compile']))
    return 1 if wrong or len(headers) < 50 else 0


if __name__ == '__main__':
    sys.exit(main())
