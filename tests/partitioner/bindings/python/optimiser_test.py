#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What XLA's optimiser makes of slices that the partitioner cuts, or that programs nest: the
numbers are NumPy's, for indices in range and out of it. Exit status 77 without jax or the package.
"""
import functools
import os
import sys
import unittest

os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
os.environ['JAX_PLATFORMS'] = 'cpu'
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P
    import shardcall.jax as sj
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ('a', 'b'))
SPECS = [P(), P('a'), P('b'), P(('a', 'b'))]


def sharding(spec):
    return NamedSharding(MESH, spec)


def clamped(start, size, window):
    """As lax.dynamic_slice: negative starts count from the end."""
    return min(max(start + size if start < 0 else start, 0), size - window)


class Slices(unittest.TestCase):
    def compare(self, f, reference, arrays, indices, specs=SPECS, result_specs=SPECS):
        for ins in specs:
            for outs in result_specs:
                made = sj.jit(f, in_shardings=(*[sharding(ins)] * len(arrays), sharding(P())),
                              out_shardings=sharding(outs))
                for i in indices:
                    np.testing.assert_array_equal(
                        np.asarray(made(*arrays, np.int32(i))), reference(*arrays, i),
                        err_msg=f'{ins} to {outs} at {i}')

    x = np.arange(16, dtype=np.float32)
    indices = (-20, -3, 0, 5, 8, 15, 16, 30)

    def updated(self, how, mode):
        def reference(x, i):
            x = x.copy()
            i = i + 16 if i < 0 else i
            if mode == 'clip':
                i = min(max(i, 0), 15)
            if 0 <= i < 16:
                x[i] = {'set': 77, 'add': x[i] + 77, 'multiply': x[i] * 77}[how]
            return x
        return reference

    def test_one_element_is_updated_and_no_other(self):
        for how in ('set', 'add', 'multiply'):
            for mode in ('drop', 'clip'):
                with self.subTest(how=how, mode=mode):
                    self.compare(
                        lambda x, i: getattr(x.at[i], how)(77., mode=mode),
                        self.updated(how, mode), [self.x], self.indices, [P()])

    def test_one_element_of_a_cumulative_sum(self):
        update = self.updated('set', 'drop')
        self.compare(lambda x, i: jnp.cumsum(x).at[i].set(77.), lambda x, i: update(np.cumsum(x), i),
                     [self.x], self.indices, [P('a')], [P('a'), P(('a', 'b'))])

    def test_a_function_of_one_element_of_an_update(self):
        def f(x, i):
            return x.at[3].apply(jnp.negative).at[i].apply(lambda v: 3 - v)

        def reference(x, i):
            x = x.copy()
            x[3] = -x[3]
            i = i + 16 if i < 0 else i
            if 0 <= i < 16:
                x[i] = 3 - x[i]
            return x
        self.compare(f, reference, [self.x], self.indices, [P(), P('a')])

    def test_a_slice_of_a_slice(self):
        def reference(x, i):
            a, b = clamped(i, 16, 12), clamped(i - 4, 12, 8)
            return x[a:a + 12][b:b + 8]
        self.compare(
            lambda x, i: lax.dynamic_slice(lax.dynamic_slice(x, (i,), (12,)), (i - 4,), (8,)),
            reference, [self.x], self.indices)

    def test_a_slice_that_is_cut_for_its_result(self):
        def reference(x, i):
            a = clamped(i, 16, 8)
            return x[a:a + 8]
        self.compare(lambda x, i: lax.dynamic_slice(x, (i,), (8,)), reference, [self.x],
                     self.indices)

    def test_a_slice_behind_ops_that_hand_elements_on(self):
        def reference(x, i):
            a, b = clamped(i, 16, 12), clamped(9 - i, 12, 8)
            return (-x[a:a + 12][::-1])[b:b + 8]
        self.compare(
            lambda x, i: lax.dynamic_slice(-lax.dynamic_slice(x, (i,), (12,))[::-1], (9 - i,),
                                           (8,)), reference, [self.x], self.indices)

    def test_a_loop_that_runs_once(self):
        def f(x, i):
            def body(_, y):
                return lax.dynamic_update_slice(y, y[:1] + 50, (i,))
            return lax.fori_loop(0, 1, body, lax.dynamic_slice(x, (i,), (8,)))

        def reference(x, i):
            a = clamped(i, 16, 8)
            y = x[a:a + 8].copy()
            y[clamped(i, 8, 1)] = y[0] + 50
            return y
        self.compare(f, reference, [self.x], self.indices)

    def test_one_row_of_a_gather_of_rows(self):
        table = np.arange(48, dtype=np.float32).reshape(16, 3)

        def reference(x, i):
            a = clamped(i, 16, 8)
            return np.tile(x[a:a + 8][min(max(i, 0), 7)][None], (8, 1))
        take = functools.partial(jnp.take, mode='clip', axis=0)
        self.compare(
            lambda x, i: jnp.tile(take(lax.dynamic_slice(x, (i, 0), (8, 3)), i)[None], (8, 1)),
            reference, [table], self.indices)


class Transforms(unittest.TestCase):
    """XLA:CPU refuses FFTs whose layout it chose after that of collectives around them."""

    def test_transforms_between_collectives(self):
        split = sharding(P(None, ('a', 'b')))
        x = np.arange(17 * 8, dtype=np.float32).reshape(17, 8)
        for transform, inverse in ((jnp.fft.fft, jnp.fft.ifft), (jnp.fft.rfft, jnp.fft.irfft)):
            def f(x):
                # What is before and after the transforms is sharded along their dimension.
                there = transform(x, axis=1)
                halves = lax.with_sharding_constraint(jnp.tile(there.real, (1, 8)), split)
                back = inverse(there, axis=1).real
                return 2 * halves, lax.with_sharding_constraint(back, split) + 1

            made = sj.jit(f, in_shardings=split, out_shardings=(sharding(P()), sharding(P())))
            there = np.fft.fft(x) if transform is jnp.fft.fft else np.fft.rfft(x)
            halves, back = made(x)
            np.testing.assert_allclose(halves, 2 * np.tile(there.real, (1, 8)), atol=1e-3)
            np.testing.assert_allclose(back, x + 1, atol=1e-3)


if __name__ == '__main__':
    unittest.main()
