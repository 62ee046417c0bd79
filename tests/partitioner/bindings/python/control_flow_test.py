#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops and branches under sj.jit, with XLA's optimiser as it is. Exit status 77 without JAX."""
import os
import sys
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    import shardcall.jax as sj
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
SPECS = [P('a'), P(('a', 'b')), P('b', 'a'), P(None, 'a'), P()]
X = np.arange(16 * 8, dtype=np.float32).reshape(16, 8) % 11 - 5


def constrained(x, spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(MESH, spec))


def scan_rows(x):
    return jax.lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(8), x)[1]


def update_rows(x):
    """Each row, in its place, with what the next one is at the time."""
    return jax.lax.fori_loop(0, 16, lambda i, y: jax.lax.dynamic_update_index_in_dim(
        y, y[i] * 3 + y[(i + 1) % 16], i, 0), x)


def even_rows(x):
    def step(i, y):
        return jax.lax.cond(i % 2 == 0, lambda y: jax.lax.dynamic_update_index_in_dim(
            y, x[i] * 2, i, 0), lambda y: y, y)
    return jax.lax.fori_loop(0, 16, step, jnp.zeros_like(x))


LOOPS = {
    'map': lambda x: jax.lax.map(lambda r: r * r + 1, x),
    'map in batches': lambda x: jax.lax.map(lambda r: r * r + 1, x, batch_size=8),
    'map in batches, with a rest': lambda x: jax.lax.map(lambda r: r * r + 1, x, batch_size=3),
    'map in a map': lambda x: jax.lax.map(lambda r: jax.lax.map(lambda e: e * 2, r), x),
    'scan': scan_rows,
    'scan backwards': lambda x: jax.lax.scan(lambda c, r: (c + r, c), jnp.zeros(8), x,
                                             reverse=True)[1],
    'gradient of a scan': jax.grad(lambda x: (scan_rows(x) ** 2).sum()),
    'updates in place': update_rows,
    'updates in branches': even_rows,
    'scatter': lambda x: jax.lax.fori_loop(
        0, 16, lambda i, y: y.at[15 - i].set(x[i]), jnp.zeros_like(x)),
}


class ControlFlowTest(unittest.TestCase):
    def test_loops_over_sharded_rows(self):
        for name, loop in LOOPS.items():
            expected = np.asarray(loop(jnp.asarray(X)))
            for spec in SPECS:
                with self.subTest(loop=name, spec=spec):
                    f = sj.jit(lambda x: constrained(loop(x), spec), strict=True,
                               in_shardings=NamedSharding(MESH, spec))
                    np.testing.assert_array_equal(np.asarray(f(X)), expected)

    def test_rows_are_gathered_once(self):
        rows = NamedSharding(MESH, P(('a', 'b')))
        x = jax.ShapeDtypeStruct((1024, 24), jnp.float32)
        for name in ['map', 'map in batches', 'scatter']:
            with self.subTest(loop=name):
                f = sj.jit(LOOPS[name], in_shardings=rows, out_shardings=rows)
                self.assertEqual(sj.explain(f, x).total_bytes, 1024 * 24 * 4 // 8 * 7)

    def test_branches_end_in_shardings_of_their_own(self):
        for begin in SPECS[:2]:
            for ends in zip(SPECS, SPECS[1:] + SPECS[:1], SPECS[2:] + SPECS[:2]):
                branches = [lambda x: constrained(x * 2, ends[0]),
                            lambda x: constrained(x + 1, ends[1]),
                            lambda x: constrained(-x, ends[2])]
                f = sj.jit(lambda i, x: jax.lax.switch(i, branches, x), strict=True,
                           in_shardings=(None, NamedSharding(MESH, begin)))
                for i, expected in enumerate([X * 2, X + 1, -X]):
                    with self.subTest(begin=begin, ends=ends, branch=i):
                        np.testing.assert_array_equal(np.asarray(f(i, X)), expected)


if __name__ == '__main__':
    unittest.main()
