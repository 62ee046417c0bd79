#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The targets that jaxlib registers: each is known, and sparse products run on shards. Exit status
77 without JAX."""
import functools
import importlib
import os
import sys
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
try:
    import jax
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental import sparse  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
from jaxlib import xla_client  # noqa: E402
from shardcall import _core  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
ours = functools.partial(sj.jit, strict=True)


def placed(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def registered():
    """The targets that this jaxlib and its plugins register, as far as they are here."""
    jax.devices()
    names = set(xla_client.custom_call_targets('Host'))
    for part in ('linalg', 'prng', 'rnn', 'solver', 'sparse', 'triton', 'hybrid'):
        for folder in ('cpu', 'cuda', 'rocm'):
            for package in ('jaxlib', 'jax_cuda12_plugin', 'jax_cuda13_plugin', 'jax_rocm7_plugin'):
                at = f'{package}.{folder}._{part}' if package == 'jaxlib' else f'{package}._{part}'
                try:
                    module = importlib.import_module(at)
                except ImportError:
                    continue
                names |= set(getattr(module, 'registrations', dict)())
    return names


class TableTest(unittest.TestCase):
    def test_each_target_of_jaxlib_has_a_rule_or_a_word(self):
        known = set(shardcall.targets()) | set(_core.jaxlib_targets())
        lacking = sorted(registered() - known)
        self.assertEqual(lacking, [], f'jaxlib {jaxlib.__version__} registers targets that '
                                      'partitioner/custom_call/targets/jaxlib_targets.cc lacks')
        self.assertIn('cpu_csr_sparse_dense_ffi', registered())

    def test_a_target_without_a_rule_says_why(self):
        for name, how in _core.jaxlib_targets().items():
            self.assertEqual(name in shardcall.targets(), not how.startswith('of the call'), name)


class SparseTest(unittest.TestCase):
    def held(self, m, b, *specs):
        """m @ b for a sparse m, with b sharded in each way, against NumPy."""
        a = sparse.BCSR.fromdense(jnp.asarray(m))
        for spec, out, contract in specs:
            step = ours(lambda a, b: a @ b, out_shardings=NamedSharding(MESH, P(*out)))
            given = placed(b, *spec)
            text = step.lower(a, given).as_text()
            self.assertIn('cpu_csr_sparse_dense_ffi', text)
            np.testing.assert_array_equal(step(a, given), m @ np.asarray(b))
            sj.expect(step, a, given, contract=contract)

    def matrix(self, rows, columns):
        m = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) % 5 - 2
        return np.where(m > 0, m, 0)

    def test_columns_and_rows_of_a_product_are_sharded(self):
        for rows, columns in ((16, 12), (8, 5)):
            m = self.matrix(rows, columns)
            b = np.arange(columns * 8, dtype=np.float32).reshape(columns, 8) % 7
            self.held(m, b, ((None, 'a'), (None, 'a'), 'bytes=0'), ((), ('a',), 'bytes=0'),
                      ((None, 'b'), ('a', 'b'), 'bytes=0'))

    def test_so_are_those_of_a_product_with_a_vector(self):
        m = self.matrix(16, 12)
        self.held(m, np.arange(12, dtype=np.float32), ((), ('a',), 'bytes=0'), ((), (), 'bytes=0'))

    def test_what_the_kernel_reads_everywhere_is_gathered(self):
        m = self.matrix(16, 12)
        b = np.arange(12 * 8, dtype=np.float32).reshape(12, 8) % 7
        self.held(m, b, (('a',), (), 'all-gather=1'))


if __name__ == '__main__':
    unittest.main()
