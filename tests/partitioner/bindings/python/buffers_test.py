#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernels get: the same buffers from XLA and from shardcall. Exit status 77 without JAX or a
C++ compiler."""
import os
import sys
import tempfile
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name)

import jax  # noqa: E402
import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4,), ('a',), axis_types=(AxisType.Auto,))
REVERSE = sj.target('reverse_rows', LIBRARY.reverse_rows, rule='r c -> r c', need_replication=['c'])
# Elements that XLA packs, two or four in a byte.
PACKED = (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.float4_e2m1fn, ml_dtypes.int2, ml_dtypes.uint2)


def elements(dtype, *dims):
    """All bit patterns of the type, one after another."""
    bits = 2 if dtype in (ml_dtypes.int2, ml_dtypes.uint2) else 4
    pattern = np.arange(np.prod(dims)) % 2 ** bits
    if dtype in (ml_dtypes.int4, ml_dtypes.int2):  # stored with their signs
        pattern = np.where(pattern < 2 ** (bits - 1), pattern, pattern - 2 ** bits)
    return pattern.astype(np.int8).view(np.uint8).reshape(dims).view(dtype)


class PackedElements(unittest.TestCase):
    def test_a_kernel_that_is_right_under_xla_is_right_here(self):
        for dtype in PACKED:
            for dims in ((4, 6), (4, 5), (5, 7), (1, 1)):
                x = elements(dtype, *dims)
                with self.subTest(dtype=dtype.__name__, dims=dims):
                    function = jax.jit(lambda x: REVERSE(x))
                    under_xla = np.asarray(function(x))
                    np.testing.assert_array_equal(under_xla, x[:, ::-1])
                    [here] = shardcall.run(function.lower(x), [x], num_partitions=1)
                    np.testing.assert_array_equal(here, under_xla)

    def test_it_runs_on_shards_under_both(self):
        for dtype in PACKED:
            x = elements(dtype, 8, 5)
            with self.subTest(dtype=dtype.__name__):
                step = sj.jit(lambda x: REVERSE(x), in_shardings=NamedSharding(MESH, P('a')),
                              strict=True)
                np.testing.assert_array_equal(np.asarray(step(x)), x[:, ::-1])
                self.assertTrue(shardcall.verify(step.lower(x)))

    def test_its_rule_is_proven_in_odd_sizes_too(self):
        for dtype in PACKED:
            with self.subTest(dtype=dtype.__name__):
                found = sj.check(REVERSE, jax.ShapeDtypeStruct((8, 5), dtype))
                self.assertTrue(found, found.details)
                self.assertEqual(found.untested, ())


if __name__ == '__main__':
    unittest.main()
