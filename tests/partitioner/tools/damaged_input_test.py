#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damaged HLO text is refused or understood, never a crash or a hang.

Every file is cut at many places, and has bytes replaced, removed, doubled and
inserted at random (the seeds are fixed), and digits changed. Whatever comes of it,
`partition` and `verify` (of what still is a program) exit with 0 or 1 within the
time limit, and 1 comes with a diagnostic that has a code. So a changed program that
is valid computes the same on its devices as on one.
"""

import concurrent.futures
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

FILES = ['mlp_uneven_b10_d4m2.sdy.hlo', 'shard_map_nested_d4m2.gspmd.hlo',
         'shard_map_partial_d4m2.v3.hlo']
CUT_EVERY = 97
MUTATIONS_A_FILE = 100
SECONDS = 5  # of a loaded machine; a run takes about 20 ms
# What tends to matter in HLO text.
TOKENS = [b'{', b'}', b'(', b')', b'[', b']', b',', b'=', b'"', b'->', b'%', b'-', b'0', b'1',
          b'99999999999999999999', b'-1', b'f32', b'\x00', b'\xff', b'/*', b'\n', b'tuple(', b' ROOT ']


def read(name):
    with open(os.path.join(command.DATA, 'hlo', name), 'rb') as f:
        return f.read()


def mutated(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del data[at:at + rng.choice((1, 2, 5, 40))]
        elif kind == 3:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 4:
            data[at:at + 1] = rng.choice(TOKENS)
        else:
            other = rng.randrange(len(data))
            size = rng.choice((3, 10, 60))
            data[at:at] = data[other:other + size]
    return bytes(data)


def digit_changed(data, rng):
    """A number of the program becomes another: still mostly well-formed."""
    digits = [k for k, c in enumerate(data) if 48 <= c <= 57]
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        data[rng.choice(digits)] = rng.choice(b'0123456789')
    return bytes(data)


def faults(cases):
    """[text] of each case (name, verb, bytes) that ends in another way than allowed."""
    def one(case):
        name, verb, data = case
        result = command.run([verb, '-', *(['-o', '/dev/null'] if verb != 'verify' else [])],
                             stdin=data, timeout=SECONDS)
        if result.fault:
            return f'{verb} {name}: {result.fault}: {result.err[-400:]}'
        if result.code not in (0, 1):
            return f'{verb} {name}: exit {result.code}: {result.err[-400:]}'
        if result.code == 1 and not result.diagnostic and 'unsupported' not in result.out:
            return f'{verb} {name}: no diagnostic: {result.err[-400:]!r}'
        return None

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [x for x in pool.map(one, cases) if x]


class DamagedInput(unittest.TestCase):

    def test_every_prefix_is_refused_or_understood(self):
        for name in FILES:
            data = read(name)
            with self.subTest(name):
                self.assertEqual([], faults([(f'{name}[:{n}]', 'partition', data[:n])
                                             for n in range(0, len(data), CUT_EVERY)]))

    def test_random_bytes_are_refused_or_understood(self):
        for name in FILES:
            data, rng = read(name), random.Random(name)
            with self.subTest(name):
                self.assertEqual([], faults([(f'{name} mutation {k}', 'partition',
                                              mutated(data, rng))
                                             for k in range(MUTATIONS_A_FILE)]))

    def test_changed_numbers_are_refused_or_executed(self):
        for name in FILES:
            data, rng = read(name), random.Random(name)
            with self.subTest(name):
                self.assertEqual([], faults([(f'{name} digit {k}', 'verify',
                                              digit_changed(data, rng))
                                             for k in range(MUTATIONS_A_FILE)]))


if __name__ == '__main__':
    unittest.main()
