#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The lines of a computation may stand in any order in which operands come first: the per-device
program has the same ops, in the order of the text.

The files of tests/data/hlo are written in other orders. With SHARDCALL_CORPUS also every third file
of that folder."""
import concurrent.futures
import glob
import os
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN = re.compile(r'(ENTRY )?%?[\w.\-]+.*\{$')
NAME = re.compile(r'%([\w.\-]+)')
# Names and channels are numbered as they come. What several ops share has the metadata of one.
NUMBERED = re.compile(
    r'%[\w.\-]+|[\w.\-]+(?=: )|channel_id=\d+|, metadata=\{(?:[^"}]|"[^"]*")*\}')
MOST = 300000  # characters of a file
# The order of ops with effects is part of what a program says.
OTHERS = ('side_effects', 'callbacks')


def read(line):
    """(the name of an instruction of canonical text, the names that it reads)."""
    name, rest = line.strip().removeprefix('ROOT ').split(' = ', 1)
    return name.removeprefix('%'), set(NAME.findall(rest))


def reordered(text, seed):
    """The text with the lines of each computation in an order of their own."""
    draw = random.Random(seed)
    out, block = [], None
    for line in text.split('\n'):
        if block is None:
            out.append(line)
            if BEGIN.match(line) and not line.startswith('HloModule'):
                block = []
        elif line == '}':
            out += [*in_any_order(block, draw), line]
            block = None
        else:
            block.append(line)
    return '\n'.join(out)


def in_any_order(lines, draw):
    needs = dict(map(read, lines))
    line_of = {read(line)[0]: line for line in lines}
    waiting = {name: (reads & needs.keys()) - {name} for name, reads in needs.items()}
    while waiting:
        ready = sorted(name for name, left in waiting.items() if not left)
        name = draw.choice(ready)
        del waiting[name]
        for left in waiting.values():
            left.discard(name)
        yield line_of[name]


def partitioned(path, text):
    result = command.run(['partition', '-', '--allow-replicate=all', *command.device_flags(path)],
                         stdin=text.encode())
    assert not result.fault, f'{path}: {result.fault}'
    if result.code:
        return [f'status {result.code}: {result.diagnostic}']
    return sorted(NUMBERED.sub('', line) for line in result.out.splitlines())


def differs(path):
    """None, or what is wrong."""
    printed = command.run(['print', path])
    if printed.code or len(printed.out) > MOST or 'is_scheduled=true' in printed.out[:2000]:
        return None
    wanted = partitioned(path, printed.out)
    for seed in range(2):
        other = reordered(printed.out, seed)
        assert sorted(other.split('\n')) == sorted(printed.out.split('\n')), path
        made = partitioned(path, other)
        if made != wanted:
            return f'{os.path.basename(path)} in order {seed}: {first_difference(wanted, made)}'
    return None


def first_difference(a, b):
    for one, other in zip(a, b):
        if one != other:
            return f'{one[:200]}\n  became\n{other[:200]}'
    return 'one is longer'


def main():
    files = sorted(glob.glob(os.path.join(HERE, '../../data/hlo/*.hlo')))
    corpus = os.environ.get('SHARDCALL_CORPUS')
    if corpus:
        files += sorted(glob.glob(os.path.join(corpus, '*.hlo')))[::3]
    files = [f for f in files if not any(o in f for o in OTHERS) and '.local.' not in f]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [w for w in pool.map(differs, files) if w]
    print(*wrong, sep='\n')
    print(f'{len(files)} files, {len(wrong)} of them depend on the order of their lines')
    return 1 if wrong or len(files) < 50 else 0


if __name__ == '__main__':
    sys.exit(main())
