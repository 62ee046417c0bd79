#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The differential of propagation itself: marks are found again, and verdicts are right."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import marks
    import verdict
except ImportError as e:  # jaxlib, which reads shardings
    print(f'SKIPPED: {e}')
    sys.exit(77)

TEXT = '''HloModule m, num_partitions=4

ENTRY main {
  x = f32[8,4]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}, metadata={op_name="a" source_line=3}
  t = (f32[8,4]{1,0}, s32[]) custom-call(x), custom_call_target="f", backend_config="{, metadata={}}"
  ROOT y = f32[8,4]{1,0} get-tuple-element(t), index=0
}
'''
EIGHT = '{devices=[8]<=[8]}'
FOUR = '{devices=[4,2]<=[8] last_tile_dim_replicate}'
FOUR_OTHERS = '{devices=[4,2]<=[2,4]T(1,0) last_tile_dim_replicate}'


class MarksTest(unittest.TestCase):
    def test_every_instruction_has_its_own_in_place_of_its_metadata(self):
        text, opcodes = marks.marked(TEXT)
        self.assertEqual(opcodes, {0: 'parameter', 1: 'custom-call', 2: 'get-tuple-element'})
        self.assertNotIn('op_name="a"', text)
        self.assertIn('backend_config="{, metadata={}}"', text)
        self.assertEqual(text.count('op_name="mark_'), 3)

    def test_values_are_those_that_are_still_what_they_were(self):
        text, opcodes = marks.marked(TEXT)
        found = marks.values(text.replace('get-tuple-element(', 'copy('), opcodes)
        self.assertEqual(found[0], ('f32[8,4]{1,0}', '{devices=[4,1]<=[4]}', 'x'))
        self.assertEqual(set(found), {0, 1})
        twice = text + text[text.index('  x = '):text.index('  t = ')]
        self.assertNotIn(0, marks.values(twice, opcodes))

    def test_leaves_of_tuples_have_their_shardings(self):
        self.assertEqual(
            marks.leaves('(f32[8,4]{1,0}, (s32[], pred[2]))',
                         '{{devices=[4,1]<=[4]}, {replicated}, {devices=[2,2]<=[4]}}'),
            [('f32', [8, 4], '{devices=[4,1]<=[4]}'), ('s32', [], '{replicated}'),
             ('pred', [2], '{devices=[2,2]<=[4]}')])
        self.assertEqual(marks.leaves('f32[8]', ''), [('f32', [8], '')])
        named = "{mesh['a'=4], [{'a'}]}"
        self.assertEqual(marks.leaves('f32[8]', named), [('f32', [8], named)])
        self.assertEqual(marks.leaves('(f32[8], s32[4])', '{%s, {replicated}}' % named),
                         [('f32', [8], named), ('s32', [4], '{replicated}')])


class VerdictTest(unittest.TestCase):
    def test_says_which_is_cut_further(self):
        for ours, theirs, word in (
                (EIGHT, EIGHT, 'same'), ('', '{replicated}', 'same'), (EIGHT, FOUR, 'more'),
                (FOUR, EIGHT, 'less'), ('', EIGHT, 'less'), (EIGHT, '', 'more'),
                (FOUR, FOUR_OTHERS, 'other'), (EIGHT, FOUR_OTHERS, 'other'),
                ('{devices=[8]7,6,5,4,3,2,1,0}', EIGHT, 'other')):
            with self.subTest(ours=ours, theirs=theirs):
                self.assertEqual(verdict.verdict(ours, theirs, [16], 8), word)

    def test_one_device_has_two_names(self):
        self.assertEqual(verdict.verdict('{maximal device=1}', '{single_device[device_id=1]}', [8],
                                         8), 'same')
        self.assertEqual(verdict.verdict('{maximal device=1}', '{replicated}', [8], 8), 'other')

    def test_parts_without_elements_are_no_gain(self):
        self.assertEqual(verdict.verdict('', EIGHT, [7], 8), 'beyond')

    def test_other_dimensions_are_another_cut(self):
        rows, columns = '{devices=[8,1]<=[8]}', '{devices=[1,8]<=[8]}'
        self.assertEqual(verdict.verdict(rows, columns, [8, 8], 8), 'other')


if __name__ == '__main__':
    unittest.main()
