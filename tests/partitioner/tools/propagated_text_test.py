#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stages can be replayed from text: for every HLO file at hand, `partition` of the
file and `partition --no-propagate` of what `propagate` prints write the same bytes
(or fail with the same diagnostic), and printing printed text changes nothing."""

import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402


def first_difference(a, b):
    for number, (x, y) in enumerate(zip(a.splitlines(), b.splitlines()), 1):
        if x != y:
            return f'line {number}\n  {x[:300]}\n  {y[:300]}'
    return f'{len(a)} and {len(b)} bytes'


def examine(path):
    """What is wrong with one file; ''."""
    flags = command.device_flags(path)
    whole = command.run(['partition', path, *flags])
    propagated = command.run(['propagate', path, *flags])
    printed = command.run(['print', path])
    again = command.run(['print', '-'], stdin=printed.out.encode())
    for result in (whole, propagated, printed, again):
        if result.fault:
            return result.fault
    if printed.code or again.out != printed.out:
        return 'printed again: ' + first_difference(printed.out, again.out)
    if propagated.code:
        return f'not propagated: {propagated.err[:300]}'
    replayed = command.run(['partition', '-', '--no-propagate', *flags],
                           stdin=propagated.out.encode())
    if (whole.code, whole.diagnostic) != (replayed.code, replayed.diagnostic):
        return f'exit {whole.code} {whole.diagnostic}, then {replayed.code}: {replayed.err[:300]}'
    if whole.out != replayed.out:
        return 'partitioned: ' + first_difference(whole.out, replayed.out)
    return ''


def main():
    files = [f for f in command.hlo_files()
             if not sys.argv[1:] or any(part in f for part in sys.argv[1:])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [(f, text) for f, text in zip(files, pool.map(examine, files)) if text]
    for path, text in wrong:
        print(f'{os.path.basename(path)}: {text}')
    print(f'{len(files)} files, {len(wrong)} failures')
    return 1 if wrong or not files else 0


if __name__ == '__main__':
    sys.exit(main())
