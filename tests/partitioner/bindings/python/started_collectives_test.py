#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives that JAX starts and ends in two ops, under sj.jit: ops of HLO in JAX 0.10.2, calls
with JSON in 0.12. Exit status 77 without JAX, or where it has none."""
import functools
import os
import sys
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8', 'JAX_PLATFORMS': 'cpu'})
try:
    import jax
    import numpy as np
    from jax.sharding import AxisType, PartitionSpec as P
    from jax._src.lax import parallel
    STARTS = (parallel.all_gather_start, parallel.psum_start, parallel.psum_scatter_start,
              parallel.all_to_all_start, parallel.ppermute_start)
except (ImportError, AttributeError) as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Explicit,) * 2)
RING = [(k, (k + 1) % 4) for k in range(4)]
# Per collective: how it is started, what does the same at once, the result's sharding, and the
# bytes that a device sends of a shard of 2 by 8 floats.
CASES = {
    'all-gather': (functools.partial(parallel.all_gather_start, axis_name='b', axis=1, tiled=True),
                   functools.partial(jax.lax.all_gather, axis_name='b', axis=1, tiled=True),
                   P('a', 'b'), 64),
    'all-reduce': (functools.partial(parallel.psum_start, axis_name='a'),
                   functools.partial(jax.lax.psum, axis_name='a'), P(None, 'b'), 96),
    'reduce-scatter': (functools.partial(parallel.psum_scatter_start, axis_name='b',
                                         scatter_dimension=1, tiled=True),
                       functools.partial(jax.lax.psum_scatter, axis_name='b',
                                         scatter_dimension=1, tiled=True), P('a', 'b'), 32),
    'all-to-all': (functools.partial(parallel.all_to_all_start, axis_name='b', split_axis=0,
                                     concat_axis=0, tiled=True),
                   functools.partial(jax.lax.all_to_all, axis_name='b', split_axis=0,
                                     concat_axis=0, tiled=True), P('a', 'b'), 32),
    'collective-permute': (functools.partial(parallel.ppermute_start, axis_name='a', perm=RING),
                           functools.partial(jax.lax.ppermute, axis_name='a', perm=RING),
                           P('a', 'b'), 64),
}
if jax.__version_info__ >= (0, 12):  # XLA of 0.10.2 does not compile it
    for to, along in (('forwards', (0, 1)), ('back', (1, 0))):
        CASES[f'all-to-all, moved {to}'] = tuple(
            functools.partial(f, axis_name='b', split_axis=along[0], concat_axis=along[1],
                              tiled=True)
            for f in (parallel.all_to_all_start, jax.lax.all_to_all)) + (P('a', 'b'), 32)


def placed():
    x = (np.arange(8 * 16, dtype=np.float32) % 23 - 11).reshape(8, 16)
    return jax.device_put(x, P('a', 'b'))


class StartedCollectivesTest(unittest.TestCase):
    def setUp(self):
        context = jax.set_mesh(MESH)
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        self.x = placed()

    def both(self, started, at_once, spec):
        """Two functions with a product between a collective's start and its end."""
        def ours(x):
            begun = started(x)
            y = x * 2
            return begun.done(), y

        def theirs(x):
            return at_once(x), x * 2

        return [jax.shard_map(f, out_specs=(spec, P('a', 'b'))) for f in (ours, theirs)]

    def test_each_is_what_the_collective_gives_at_once(self):
        for name, (started, at_once, spec, size) in CASES.items():
            op = name.split(',')[0]
            with self.subTest(name):
                f, g = self.both(started, at_once, spec)
                wanted = jax.jit(g)(self.x)
                made = sj.jit(f, strict=True)
                for a, b in zip(made(self.x), wanted, strict=True):
                    np.testing.assert_array_equal(a, b)
                    self.assertEqual(a.sharding, b.sharding)
                report = sj.explain(made, self.x)
                self.assertEqual((report.count(), report.count(op)), (1, 1))
                self.assertEqual(report.total_bytes, size)

    def test_they_run_and_are_verified_without_xla(self):
        for name, (started, at_once, spec, _) in CASES.items():
            op = name.split(',')[0]
            with self.subTest(name):
                f, g = self.both(started, at_once, spec)
                lowered = jax.jit(f).lower(self.x)
                wanted = jax.jit(g)(self.x)
                program = shardcall.partition(lowered)
                self.assertIn(f' {op}-start(', program.text)
                for a, b in zip(program.run([np.asarray(self.x)]), wanted, strict=True):
                    np.testing.assert_array_equal(a, b)
                self.assertTrue(shardcall.verify(lowered))

    def test_all_of_them_at_a_time(self):
        def f(x):
            begun = [started(x) for started, _, _, _ in CASES.values()]
            y = x * 2
            return [b.done() for b in begun] + [y]

        def g(x):
            return [at_once(x) for _, at_once, _, _ in CASES.values()] + [x * 2]

        specs = [spec for _, _, spec, _ in CASES.values()] + [P('a', 'b')]
        made = sj.jit(jax.shard_map(f, out_specs=specs), strict=True)
        wanted = jax.jit(jax.shard_map(g, out_specs=specs))(self.x)
        for a, b in zip(made(self.x), wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        self.assertEqual(sj.explain(made, self.x).total_bytes, sum(c[3] for c in CASES.values()))

    def test_a_start_in_a_loop(self):
        started, at_once, _, size = CASES['collective-permute']

        def f(x, move):
            def step(_, x):
                begun = move(x)
                y = x * 2
                return begun + y

            return jax.lax.fori_loop(0, 3, step, x)

        ours = sj.jit(jax.shard_map(functools.partial(f, move=lambda x: started(x).done()),
                                    out_specs=P('a', 'b')), strict=True)
        wanted = jax.jit(jax.shard_map(functools.partial(f, move=at_once),
                                       out_specs=P('a', 'b')))(self.x)
        np.testing.assert_array_equal(ours(self.x), wanted)
        self.assertEqual(sj.explain(ours, self.x).total_bytes, 3 * size)


if __name__ == '__main__':
    unittest.main()
