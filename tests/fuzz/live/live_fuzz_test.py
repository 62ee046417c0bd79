#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The live fuzzer itself: it makes programs of every family, sees wrong numbers, and shrinks."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
os.environ['JAX_PLATFORMS'] = 'cpu'
try:
    import numpy as np
    import judge
    import programs
    import shrink
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)


class Differs(unittest.TestCase):
    def test_whole_numbers_are_compared_bit_by_bit(self):
        self.assertEqual(judge.differs([np.array([1, 2])], [np.array([1, 2])]), '')
        self.assertIn('1 of 2', judge.differs([np.array([1, 2])], [np.array([1, 3])]))

    def test_roundings_pass_and_wrong_elements_do_not(self):
        want = np.array([1., 100.], np.float32)
        self.assertEqual(judge.differs([want + np.float32(1e-4)], [want]), '')
        self.assertNotEqual(judge.differs([want[::-1]], [want]), '')

    def test_nan_has_its_place(self):
        self.assertNotEqual(judge.differs([np.array([np.nan, 1.])], [np.array([1., np.nan])]), '')
        self.assertNotEqual(judge.differs([np.array([1.])], [np.array([np.inf])]), '')

    def test_another_shape_or_type_differs(self):
        self.assertNotEqual(judge.differs([np.ones((2, 1))], [np.ones((1, 2))]), '')
        self.assertNotEqual(judge.differs([np.ones(2, np.int32)], [np.ones(2, np.int8)]), '')


class Programs(unittest.TestCase):
    def test_a_seed_gives_the_same_program_again(self):
        self.assertEqual(programs.generated(7), programs.generated(7))

    def test_every_family_is_met(self):
        text = '\n'.join(programs.generated(seed).body() for seed in range(1, 150))
        for op in ('reshape', '.at[', 'dynamic_slice', 'take', 'einsum', 'scan', 'cond', 'vmap',
                   'grad', 'sort', 'sum', 'pad', 'constrain', 'concatenate'):
            self.assertIn(op, text)


class Shrinking(unittest.TestCase):
    def test_a_finding_keeps_only_what_it_needs(self):
        seed = next(s for s in range(1, 500) if len(programs.generated(s).lines) >= 4 and
                    'reshape' in programs.generated(s).body())
        original = judge.judge

        def broken(program):
            return judge.Verdict('wrong' if 'reshape' in program.body() else 'right')
        judge.judge = broken
        try:
            program, verdict = shrink.shrunk(programs.generated(seed), judge.Verdict('wrong'))
        finally:
            judge.judge = original
        self.assertEqual(verdict.kind, 'wrong')
        self.assertLess(len(program.lines), len(programs.generated(seed).lines))
        self.assertIn('reshape', program.body())
        compile(shrink.script(program), 'script', 'exec')


if __name__ == '__main__':
    unittest.main()
