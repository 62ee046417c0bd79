#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs that do not fit the program are refused; outputs have the right names."""

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

PROGRAM = """HloModule npz, num_partitions=4

ENTRY %main (x: f32[8,4], n: s32[8], b: bf16[4]) -> (f32[8,4], s32[8], bf16[4]) {
  %x = f32[8,4]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}
  %n = s32[8]{0} parameter(1), sharding={devices=[4]<=[4]}
  %b = bf16[4]{0} parameter(2), sharding={replicated}
  %y = f32[8,4]{1,0} add(%x, %x)
  %m = s32[8]{0} multiply(%n, %n)
  %c = bf16[4]{0} negate(%b)
  ROOT %t = (f32[8,4]{1,0}, s32[8]{0}, bf16[4]{0}) tuple(%y, %m, %c)
}
"""


def arrays():
    return {'arg0': np.arange(32, dtype=np.float32).reshape(8, 4),
            'arg1': np.arange(8, dtype=np.int32), 'arg2': np.float32([1, -2, 0.5, 3])}


class NpzInput(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.inputs = os.path.join(directory.name, 'in.npz')
        self.outputs = os.path.join(directory.name, 'out.npz')

    def run_with(self, given):
        np.savez(self.inputs, **given)
        return command.run(['run', '-', '--inputs=' + self.inputs, '--outputs=' + self.outputs],
                           stdin=PROGRAM.encode())

    def refused(self, given, *told):
        result = self.run_with(given)
        self.assertEqual((1, ''), (result.code, result.fault), result.err)
        self.assertRegex(result.err, r'^E2\d\d .* Fix: ')
        for text in told:
            self.assertIn(text, result.err)
        self.assertFalse(os.path.exists(self.outputs))

    def test_outputs_are_named_by_number_with_narrow_types_by_their_bits(self):
        given = arrays()
        result = self.run_with(given)
        self.assertEqual(0, result.code, result.err)
        with np.load(self.outputs) as found:
            np.testing.assert_array_equal(found['out0'], given['arg0'] * 2)
            np.testing.assert_array_equal(found['out1'], given['arg1'] ** 2)
            self.assertEqual(np.uint16, found['out2'].dtype)
            wide = (found['out2'].astype(np.uint32) << 16).view(np.float32)
            np.testing.assert_array_equal(wide, -given['arg2'])
            self.assertIn('bf16', [str(x) for x in found['dtypes']])

    def test_outputs_are_inputs_again(self):
        self.assertEqual(0, self.run_with(arrays()).code)
        with np.load(self.outputs) as found:
            bits = dict(arrays(), arg2=found['out2'])
        self.assertEqual(0, self.run_with(bits).code)

    def test_missing_and_surplus_arrays_are_named(self):
        given = arrays()
        del given['arg1']
        self.refused(given, 'arg1')
        self.refused(dict(arrays(), arg3=np.zeros(1)), 'arg3')
        self.refused({'x': np.zeros(3)}, 'arg0')
        self.refused({}, 'arg0')

    def test_wrong_shapes_are_refused(self):
        self.refused(dict(arrays(), arg0=np.zeros((4, 8), np.float32)), 'arg0', '8,4')
        self.refused(dict(arrays(), arg0=np.zeros(32, np.float32)), 'arg0')
        self.refused(dict(arrays(), arg1=np.zeros((), np.int32)), 'arg1')

    def test_wrong_types_are_refused(self):
        self.refused(dict(arrays(), arg0=np.zeros((8, 4), np.float64)), 'arg0', 'float32', 'float64')
        self.refused(dict(arrays(), arg1=np.zeros(8, np.int64)), 'arg1', 'int32', 'int64')
        self.refused(dict(arrays(), arg1=np.array(['a'] * 8)), 'arg1')
        self.refused(dict(arrays(), arg1=np.array([None] * 8)), 'arg1')

    def test_arrays_in_the_order_of_columns_are_read_as_they_are(self):
        given = arrays()
        plain = self.run_with(given)
        self.assertEqual(0, plain.code, plain.err)
        with open(self.outputs, 'rb') as f:
            want = f.read()
        given['arg0'] = np.asfortranarray(given['arg0'])
        turned = self.run_with(given)
        self.assertEqual(0, turned.code, turned.err)
        with open(self.outputs, 'rb') as f:
            self.assertEqual(want, f.read())

    def test_arrays_in_another_order_of_bytes_are_read_as_they_are(self):
        given = arrays()
        plain = self.run_with(given)
        self.assertEqual(0, plain.code, plain.err)
        with open(self.outputs, 'rb') as f:
            want = f.read()
        given['arg1'] = given['arg1'].astype(given['arg1'].dtype.newbyteorder('>'))
        turned = self.run_with(given)
        self.assertEqual(0, turned.code, turned.err)
        with open(self.outputs, 'rb') as f:
            self.assertEqual(want, f.read())

    def test_arrays_in_another_order_of_parameters_are_refused(self):
        a = arrays()
        self.refused({'arg0': a['arg1'], 'arg1': a['arg0'], 'arg2': a['arg2']}, 'arg0')
        self.refused({'arg1': a['arg0'], 'arg2': a['arg1'], 'arg3': a['arg2']}, 'arg')
        self.refused(dict(a, arg10=a['arg2']), 'arg10')
        self.refused({'x': a['arg0'], 'n': a['arg1'], 'b': a['arg2']}, 'arg0')

    def test_a_value_that_a_narrow_float_cannot_hold_is_refused(self):
        self.refused(dict(arrays(), arg2=np.float32([1.0001, 0, 0, 0])), 'arg2')

    def test_damaged_files_are_refused(self):
        np.savez(self.inputs, **arrays())
        with open(self.inputs, 'rb') as f:
            data = f.read()
        for cut in [0, 1, 30, len(data) // 2, len(data) - 30, len(data) - 1]:
            with open(self.inputs, 'wb') as f:
                f.write(data[:cut])
            self.is_refused_or_read()
        for at in range(0, len(data), 41):
            with open(self.inputs, 'wb') as f:
                f.write(data[:at] + bytes([data[at] ^ 0x5a]) + data[at + 1:])
            self.is_refused_or_read()

    def is_refused_or_read(self):
        result = command.run(['run', '-', '--inputs=' + self.inputs], stdin=PROGRAM.encode())
        self.assertEqual('', result.fault, result.err)
        self.assertIn(result.code, (0, 1))
        if result.code == 1:
            self.assertRegex(result.err, r'^E\d{3} ')


if __name__ == '__main__':
    unittest.main()
