#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shardings decide where a program computes, never what.

GSPMD programs get random shardings in place of theirs, and more of them on other
instructions, over 2 to 8 devices: tilings that divide no dimension, permuted
device orders, replicated rest. `verify` must find the partitioned program equal to
the unpartitioned one. Programs with manual regions are left out, as their meshes
stand in their shapes.

  SHARDCALL_COMMAND=build/bin/shardcall random_shardings.py [--rounds=N] [--seed=S]
      [--keep=DIR] [NAME_PART...]
"""

import argparse
import concurrent.futures
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402

MESHES = {2: [[2]], 3: [[3]], 4: [[4], [2, 2]], 5: [[5]], 6: [[6], [2, 3], [3, 2]],
          8: [[8], [2, 4], [4, 2], [2, 2, 2]]}
ARRAY = re.compile(r'\s*(?:ROOT )?%?[\w.\-]+ = \w+\[([\d,]*)\]')
MANUAL = re.compile(r'ShardShape|FullShape|manual|xla\.sdy')
# Longer runs than a test has time for.
LARGE = 400_000


def sharding(rank, devices, rng):
    """A random V2 sharding of an array over `devices` devices, as text."""
    if rank == 0 or rng.random() < 0.15:
        return '{replicated}'
    axes = list(rng.choice(MESHES[devices]))
    order = list(range(len(axes)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    permuted = [axes[k] for k in order]
    # Each axis goes to a dimension or, last, to none; in rising order, as tiles are.
    places = sorted(rng.randrange(rank + (rng.random() < 0.6)) for _ in permuted)
    tiles, rest = [1] * rank, 1
    for place, size in zip(places, permuted):
        if place == rank:
            rest *= size
        else:
            tiles[place] *= size
    text = '{devices=[' + ','.join(map(str, tiles + [rest] * (rest > 1))) + ']<='
    if order == sorted(order):
        text += f'[{devices}]'
    else:
        text += '[' + ','.join(map(str, axes)) + ']T(' + ','.join(map(str, order)) + ')'
    return text + (' last_tile_dim_replicate}' if rest > 1 else '}')


def resharded(text, rng):
    devices = rng.choice(sorted(MESHES))
    out = []
    entry = False
    for line in text.split('\n'):
        found = ARRAY.match(line)
        entry = line.startswith('ENTRY') or entry and line != '}'
        if 'ROOT' in line and not entry:  # must agree with the caller's and its other branches'
            line = re.sub(r', sharding=\{[^{}]*\}', '', line)
            found = None
        if line.startswith('HloModule'):
            line = re.sub(r'num_partitions=\d+', f'num_partitions={devices}', line)
        elif found and 'sharding={' in line:
            rank = len(found.group(1).split(',')) if found.group(1) else 0
            new = 'sharding=' + sharding(rank, devices, rng)
            line = re.sub(r'sharding=\{[^{}]*\}', lambda _, new=new: new, line, count=1)
        elif found and ', metadata=' in line and found.group(1) and rng.random() < 0.15:
            new = ', sharding=' + sharding(len(found.group(1).split(',')), devices, rng)
            line = line.replace(', metadata=', new + ', metadata=', 1)
        elif 'sharding={' in line:  # of a tuple
            line = re.sub(r', sharding=\{(?:[^{}]|\{[^{}]*\})*\}', '', line)
        out.append(line)
    return '\n'.join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=12)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--keep', help='folder for the programs that fail')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    programs = {}
    for path in command.hlo_files():
        name = os.path.basename(path)
        if (path.endswith('.gspmd.hlo') and command.numerics(path, 'inputs')
                and (not args.names or any(part in name for part in args.names))):
            with open(path, encoding='utf-8', newline='') as f:
                text = f.read()
            if not MANUAL.search(text) and 'custom_call_target="' not in text.replace(
                    'custom_call_target="Sharding"', '') and len(text) < LARGE:
                programs[name] = text

    def examine(case):
        name, number = case
        text = resharded(programs[name], random.Random(f'{name} {number} {args.seed}'))
        result = command.run(['verify', '-'], stdin=text.encode(), timeout=60)
        if result.code == 0:
            return None
        if args.keep:
            with open(os.path.join(args.keep, f'{name}.{args.seed}.{number}.hlo'), 'w',
                      encoding='utf-8', newline='') as f:
                f.write(text)
        reason = re.search(r'"reason": ".*"', result.out)
        return (f'{name} round {number}: {result.fault or result.code} '
                f'{result.err[:300]}{reason.group(0) if reason else ""}')

    cases = [(name, number) for name in programs for number in range(args.rounds)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [x for x in pool.map(examine, cases) if x]
    print('\n'.join(wrong))
    print(f'{len(programs)} programs, {len(cases)} sets of shardings, {len(wrong)} failures')
    return 1 if wrong or not cases else 0


if __name__ == '__main__':
    sys.exit(main())
