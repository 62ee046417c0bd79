#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When outputs of a program whose sums are exact agree."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import command  # noqa: E402
try:
    import numpy as np
except ImportError:
    print('SKIPPED: numpy cannot be imported; pip install numpy')
    sys.exit(command.SKIPPED)
import numerics  # noqa: E402


def difference(expected, found, exact=True):
    expected, found = (np.asarray(x, np.float32) for x in (expected, found))
    return numerics.difference([(expected, '')], [(found, '')], exact)


class Exact(unittest.TestCase):
    def test_equal_bits_and_any_nan(self):
        self.assertEqual('', difference([1, -0.0, np.nan, np.inf], [1, -0.0, np.nan, np.inf]))

    def test_the_least_difference_counts(self):
        self.assertIn('off by', difference([1, 2], [1, np.nextafter(np.float32(2), 3)]))
        self.assertIn('the sign of 1 zeros', difference([0.0, 2], [-0.0, 2]))

    def test_a_subnormal_may_be_the_zero_of_its_sign(self):
        self.assertEqual('', difference([0.0, -0.0, 3e38], [1e-45, -1e-39, 3e38]))
        self.assertIn('the sign of 1 zeros', difference([0.0, 1], [-1e-39, 1]))

    def test_a_zero_is_no_subnormal_that_is_expected(self):
        self.assertIn('off by', difference([1e-39, 1], [0.0, 1]))
        self.assertIn('off by', difference([0.0, 1], [1.2e-38, 1]))


if __name__ == '__main__':
    unittest.main()
