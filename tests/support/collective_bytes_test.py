#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of small modules, counted by hand; and a command that runs into its limit."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import collective_bytes  # noqa: E402
import command  # noqa: E402

MODULE = '''HloModule m, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(%a, %b)
}}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %p = (s32[], f32[8]{{0}}) parameter(0)
  %v = f32[8]{{0}} get-tuple-element(%p), index=1
  %ar = f32[8]{{0}} all-reduce(%v), channel_id=9, replica_groups=[1,4]<=[4], to_apply=%add
  ROOT %t = (s32[], f32[8]{{0}}) tuple(%i, %ar)
}}

%condition (p: (s32[], f32[8])) -> pred[] {{
  %p = (s32[], f32[8]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant(5)
  %c = s32[] copy(%n)
  ROOT %less = pred[] compare(%i, %c), direction=LT
}}

ENTRY %main (x: f32[8], y: bf16[2,3]) -> f32[8] {{
  %x = f32[8]{{0}} parameter(0)
  %y = bf16[2,3]{{1,0}} parameter(1)
  {line}
}}
'''


def total(line):
    return collective_bytes.total(MODULE.format(line=line))


class Bytes(unittest.TestCase):
    def test_of_each_collective(self):
        group = 'channel_id=1, replica_groups={{0,1},{2,3}}'
        self.assertEqual(total(f'%r = f32[16] all-gather(%x), {group}, dimensions={{0}}'), 32)
        self.assertEqual(total(f'%r = f32[8] all-reduce(%x), {group}, to_apply=%add'), 32)
        self.assertEqual(total(f'%r = f32[4] reduce-scatter(%x), {group}, to_apply=%add'), 16)
        self.assertEqual(total(f'%r = bf16[2,3] all-to-all(%y), {group}, dimensions={{0}}'), 6)
        self.assertEqual(total('%r = f32[8] collective-permute(%x), channel_id=1, '
                               'source_target_pairs={{0,1},{1,1},{2,3}}'), 16)

    def test_of_groups_in_other_forms(self):
        self.assertEqual(total('%r = f32[32] all-gather(%x), replica_groups={}, dimensions={0}'), 96)
        self.assertEqual(total("%r = f32[16] all-gather(%x), replica_groups=mesh['a'=2,'b'=2] {'b'}, "
                               'dimensions={0}'), 32)

    def test_of_elements_of_tuples(self):
        tuples = '%t = (s8[3], (f32[2,8]{1,0}, /*index=1*/f32[8])) custom-call(%x)\n  '
        group = 'replica_groups=[2,2]<=[4], to_apply=%add'
        self.assertEqual(total(tuples + f'%r = f32[8] all-reduce(%t#1#1), {group}'), 32)
        self.assertEqual(total(tuples + f'%r = f32[2,8] all-reduce(%t#1#0), {group}'), 64)
        self.assertEqual(total(tuples + f'%r = s8[3] all-reduce(%t#0), {group}'), 3)

    def test_an_operand_without_a_type_is_no_count(self):
        with self.assertRaises(KeyError):
            total('%r = f32[8] all-reduce(%z), replica_groups={}, to_apply=%add')

    def test_a_loop_counts_as_often_as_it_runs(self):
        loop = '%w = (s32[], f32[8]) while(%t), condition=%condition, body=%body'
        self.assertEqual(total(loop), 5 * 48)
        known = ', backend_config={"known_trip_count":{"n":"3"}}'
        self.assertEqual(total(loop + known), 3 * 48)

    def test_started_ones_count_once(self):
        self.assertEqual(total('%s = (f32[8], f32[16]) all-gather-start(%x), '
                               'replica_groups=[2,2]<=[4], dimensions={0}\n'
                               '  %d = f32[16] all-gather-done(%s)'), 32)


class Command(unittest.TestCase):
    def test_one_that_is_run_again_says_so(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'slow')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(f'#!/bin/sh\n[ -e {directory}/ran ] && exit 0\ntouch {directory}/ran\nsleep 30\n')
            os.chmod(path, 0o755)
            before = os.environ.get('SHARDCALL_COMMAND')
            os.environ['SHARDCALL_COMMAND'] = path
            try:
                result = command.run(['verb'], timeout=1)
                again = command.run(['verb'], timeout=10)
            finally:
                os.environ.pop('SHARDCALL_COMMAND')
                if before:
                    os.environ['SHARDCALL_COMMAND'] = before
            self.assertEqual((result.code, result.retried, again.retried), (0, True, False))
            self.assertEqual(command.RETRIED, [['verb']])


if __name__ == '__main__':
    unittest.main()
