#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What JAX 0.12 writes differently is read as it is meant, in text and in protobuf."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402
try:
    import numpy as np
except ImportError:
    print('SKIPPED: numpy cannot be imported; pip install numpy')
    sys.exit(command.SKIPPED)

DATA = os.path.join(command.DATA, 'hlo_jax_0_12')


class Sorts(unittest.TestCase):
    """XLA writes the order of a comparison as order=TOTAL, and as a field of the message: a
    sort's comparator puts NaN last and keeps the order of -0 and 0 only in the total order."""

    INPUTS = os.path.join(DATA, 'sort_nan_d8.inputs.npz')

    def outputs(self, program):
        with tempfile.TemporaryDirectory() as directory:
            out = os.path.join(directory, 'out.npz')
            result = command.run(['run', os.path.join(DATA, program), '--inputs=' + self.INPUTS,
                                  '--outputs=' + out])
            self.assertEqual((0, ''), (result.code, result.fault), result.err)
            return list(np.load(out).values())

    def check(self, program):
        x, y = np.load(self.INPUTS).values()
        self.assertTrue(np.isnan(x).any() and (np.signbit(x) & (x == 0)).any())
        order = np.argsort(x, kind='stable')  # NaN last, -0 equal to 0
        values = np.unique(x)
        both = np.lexsort((y, x))
        expected = [x[order], order.astype(np.int32),
                    np.concatenate([values, np.full(12 - len(values), values[0])]), x[both], y[both]]
        found = self.outputs(program)
        self.assertEqual(len(expected), len(found))
        for k, (a, b) in enumerate(zip(expected, found)):
            np.testing.assert_array_equal(a, b, f'{program}, output {k}')
        # Equal zeros keep the order that they had.
        np.testing.assert_array_equal(np.signbit(expected[0][:-3]), np.signbit(found[0][:-3]))

    def test_text(self):
        self.check('sort_nan_d8.txt')

    def test_protobuf(self):
        self.check('sort_nan_d8.hlo.pb')

    def test_verify_finds_the_partitioned_program_equal(self):
        for program in ('sort_nan_d8.txt', 'sort_nan_d8.hlo.pb'):
            result = command.run(['verify', os.path.join(DATA, program),
                                  '--inputs=' + self.INPUTS])
            self.assertEqual((0, ''), (result.code, result.fault), (program, result.err))

    def test_what_is_written_as_protobuf_is_read_in_the_same_way(self):
        with tempfile.TemporaryDirectory() as directory:
            again = os.path.join(directory, 'again.pb')
            result = command.run(['partition', os.path.join(DATA, 'sort_nan_d8.hlo.pb'), '-o',
                                  again])
            self.assertEqual((0, ''), (result.code, result.fault), result.err)
            result = command.run(['print', again])
            self.assertIn('direction=LT, type=TOTALORDER', result.out)


if __name__ == '__main__':
    unittest.main()
