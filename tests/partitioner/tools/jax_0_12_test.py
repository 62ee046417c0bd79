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


class StartedCollectives(unittest.TestCase):
    """JAX writes the start and the done of a collective as calls with JSON."""

    PROGRAMS = [os.path.join(DATA, f'started_collectives_d8{end}') for end in ('.txt', '.hlo.pb')]

    def test_they_send_what_the_collectives_send(self):
        for program in self.PROGRAMS:
            result = command.run(['explain', program])
            self.assertEqual((0, ''), (result.code, result.fault), result.err)
            sent = {line.split()[0]: (int(line.split()[1]), int(line.split()[5]))
                    for line in result.out.splitlines() if ' instructions,' in line}
            self.assertEqual(sent, {'all-gather': (1, 64), 'all-reduce': (1, 96),
                                    'all-to-all': (3, 96), 'collective-permute': (1, 64),
                                    'reduce-scatter': (1, 32)}, result.out)

    def test_partitioned_they_are_starts_and_dones(self):
        for program in self.PROGRAMS:
            text = command.run(['partition', program]).out
            for op, count in (('all-gather', 1), ('all-reduce', 1), ('all-to-all', 3),
                              ('collective-permute', 1), ('reduce-scatter', 1)):
                self.assertEqual(text.count(f' {op}-start('), count, text)
                self.assertEqual(text.count(f' {op}-done('), count, text)
            self.assertNotIn('custom-call', text)

    def test_they_give_what_the_collectives_give(self):
        x = (np.arange(128, dtype=np.float32) % 23 - 11).reshape(8, 16)
        blocks = x.reshape(4, 2, 2, 8)  # [a, row, b, column]
        expected = [
            np.concatenate([x, x], 1), blocks.sum(0).reshape(2, 16), x[:, :8] + x[:, 8:],
            blocks.transpose(0, 2, 1, 3).reshape(8, 16), np.roll(x, 2, 0), x.reshape(4, 32),
            # [a, row, b', b, column] to [a, b', row, b, column]
            x.reshape(4, 2, 2, 2, 4).transpose(0, 2, 1, 3, 4).reshape(16, 8), x * 2]
        with tempfile.TemporaryDirectory() as directory:
            inputs, out = (os.path.join(directory, name) for name in ('in.npz', 'out.npz'))
            np.savez(inputs, arg0=x)
            for program in self.PROGRAMS:
                result = command.run(['run', program, '--inputs=' + inputs, '--outputs=' + out])
                self.assertEqual((0, ''), (result.code, result.fault), result.err)
                found = list(np.load(out).values())
                self.assertEqual(len(found), len(expected))
                for k, (a, b) in enumerate(zip(expected, found)):
                    np.testing.assert_array_equal(a, b, f'{program}, output {k}')
                result = command.run(['verify', program, '--inputs=' + inputs])
                self.assertEqual((0, ''), (result.code, result.fault), result.err)


if __name__ == '__main__':
    unittest.main()
