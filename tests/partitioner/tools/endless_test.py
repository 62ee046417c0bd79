#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that would not end: --deadline ends them, and the error says where they are.

usage: endless_test.py"""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402
from endless_programs import loop, product  # noqa: E402


def nested(depth):
    """A program that calls its innermost computation 2 ** depth times."""
    text = ['HloModule nested, num_partitions=2',
            'level_0 {\n  x = f32[8] parameter(0)\n  ROOT y = f32[8] sine(x)\n}']
    for k in range(1, depth + 1):
        text.append(f'level_{k} {{\n  x = f32[8] parameter(0)\n'
                    f'  a = f32[8] call(x), to_apply=level_{k - 1}\n'
                    f'  ROOT y = f32[8] call(a), to_apply=level_{k - 1}\n}}')
    text.append('ENTRY e {\n  x = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n'
                f'  ROOT outer = f32[8] call(x), to_apply=level_{depth}\n}}\n')
    return '\n'.join(text).encode()


class Endless(unittest.TestCase):

    def ends(self, args, stdin, *texts, prefix=()):
        start = time.monotonic()
        r = command.run(args, stdin=stdin, timeout=30, prefix=prefix)
        self.assertEqual(r.fault, '', r.err)
        self.assertEqual(r.code, 1, r.out + r.err)
        self.assertLess(time.monotonic() - start, 20)
        for text in texts:
            self.assertIn(text, r.err)

    def test_a_loop_that_never_ends_is_stopped_on_one_and_on_two_devices(self):
        for devices in (1, 2):
            for verb in ('run', 'verify'):
                self.ends([verb, '-', f'--num-partitions={devices}', '--deadline=0.5'], loop().encode(),
                          'E346', 'of %loop on device 0')

    def test_calls_of_calls_are_stopped(self):
        for verb in ('run', 'verify'):
            self.ends([verb, '-', '--deadline=0.5'], nested(40), 'E346', 'on device')

    def test_a_program_that_ends_in_time_is_not_stopped(self):
        r = command.run(['run', '-', '--deadline=20'], stdin=nested(3), timeout=30)
        self.assertEqual(r.code, 0, r.err)

    def test_a_wait_alone_does_not_end_what_computes(self):
        # 2 ** 23 calls take longer than that. On one device nobody waits, however slow it is.
        one = ['run', '-', '--num-partitions=1']
        r = command.run(one + ['--wait=0.02'], stdin=nested(23), timeout=60)
        self.assertEqual(r.code, 0, r.err)
        self.ends(one + ['--deadline=0.05'], nested(23), 'E346')

    def test_a_lack_of_memory_is_said_to_be_one(self):
        # BLAS waits for its memory without an end, and a thread's stack needs some, too.
        text = product(512, devices=8).encode()
        told = []
        for megabytes in range(350, 650, 50):
            limited = ('bash', '-c', f'ulimit -v {megabytes << 10}; exec "$0" "$@"')
            start = time.monotonic()
            r = command.run(['run', '-', '--deadline=2'], stdin=text, timeout=20, prefix=limited)
            self.assertEqual(r.fault, '', r.err)
            if r.code == 1:  # 0 where it is enough, 127 where the program cannot even be loaded
                told.append(r.err)
                self.assertIn('memory', r.err)
            self.assertLess(time.monotonic() - start, 20)
        self.assertTrue(told)


if __name__ == '__main__':
    unittest.main()
