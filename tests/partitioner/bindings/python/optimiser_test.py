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


class OwnElements(unittest.TestCase):
    """Updates by elements of the array that they update."""

    def compare(self, f, reference, x):
        for ins in SPECS:
            for outs in SPECS:
                with self.subTest(ins=ins, outs=outs):
                    made = sj.jit(f, in_shardings=sharding(ins), out_shardings=sharding(outs))
                    np.testing.assert_array_equal(np.asarray(made(x)), reference(x))

    def test_a_shifted_part_of_a_cumulative_sum(self):
        def reference(x):
            y = np.cumsum(x, dtype=x.dtype)
            z = y.copy()
            z[2:6] = y[1:5]
            return z

        def f(x):
            y = jnp.cumsum(x)
            return y.at[2:6].set(y[1:5])
        self.compare(f, reference, np.arange(16, dtype=np.float32) % 7 - 3)

    def test_a_stencil_over_a_cumulative_sum(self):
        def reference(x):
            y = np.cumsum(x, dtype=x.dtype)
            z = y.copy()
            z[1:-1] = y[:-2] + y[2:] - y[1:-1]
            return z

        def f(x):
            y = jnp.cumsum(x)
            return y.at[1:-1].set(y[:-2] + y[2:] - y[1:-1])
        self.compare(f, reference, np.arange(16, dtype=np.float32) % 7 - 3)

    @unittest.skipIf(jax.__version_info__ < (0, 12),
                     'jaxlib 0.10.2 removes the barrier first, and jax.jit is as wrong')
    def test_every_other_element_behind_a_reshape(self):
        def reference(x):
            rows = x.sum(0).reshape(16, 4, 2)
            rows[1:12, :, 1] = x.sum(0)[6:50].reshape(11, 4)
            return rows

        def f(x):
            total = x.sum(0)
            return lax.dynamic_update_slice(total.reshape(16, 4, 2),
                                            total[6:50].reshape(11, 4, 1), (1, 0, 1))
        self.compare(f, reference, np.stack([np.arange(128)] * 16).astype(np.int32))


class Reductions(unittest.TestCase):
    def test_an_init_counts_once(self):
        x = (np.arange(64 * 240) % 5 - 2).reshape(64, 240).astype(np.int32)
        rows = [P(), P('a'), P('a', 'b'), P(None, 'a')]
        for op, reference in ((lax.add, np.add), (lax.max, np.maximum)):
            for shape in ((64, 240), (1, 240), (16, 4, 240)):
                for dims in ((0,), (0, 1)):
                    for spec in rows:
                        if shape[0] == 1 and spec and spec[0]:
                            continue
                        with self.subTest(op=op, shape=shape, dims=dims, spec=spec):
                            a = x[:shape[0] * (shape[1] if len(shape) == 3 else 1)].reshape(shape)
                            f = sj.jit(lambda x, i, op=op, dims=dims: lax.reduce(x, i, op, dims),
                                       in_shardings=(sharding(spec), sharding(P())))
                            np.testing.assert_array_equal(
                                np.asarray(f(a, np.int32(5))),
                                reference(reference.reduce(a, axis=dims), np.int32(5)))

    def test_an_init_counts_once_behind_an_all_to_all(self):
        def f(x, i):
            y = lax.with_sharding_constraint(x, sharding(P(None, 'a')))
            return lax.reduce(y, i, lax.add, (0,))
        x = np.arange(64, dtype=np.float32).reshape(8, 8)
        made = sj.jit(f, in_shardings=(sharding(P('a')), sharding(P())),
                      out_shardings=sharding(P('a')))
        np.testing.assert_array_equal(np.asarray(made(x, np.float32(5))), x.sum(0) + 5)

    def test_a_complex_constant(self):
        """XLA dies over an all-reduce of one."""
        def f():
            full = jnp.full((8, 2), 2 + 1j, jnp.complex64)
            return lax.with_sharding_constraint(full, sharding(P('a'))).sum(0)
        np.testing.assert_array_equal(np.asarray(sj.jit(f, out_shardings=sharding(P()))()),
                                      [16 + 8j] * 2)

        def scattered():
            return lax.psum_scatter(jnp.full((8,), 2 + 1j, jnp.complex64), 'a', tiled=True)
        mapped = jax.shard_map(scattered, mesh=MESH, in_specs=(), out_specs=P('a'),
                               check_vma=False)
        np.testing.assert_array_equal(np.asarray(sj.jit(mapped)()), [8 + 4j] * 8)

class Extrema(unittest.TestCase):
    """XLA:CPU loses a NaN in maxima and minima across devices, NCCL too."""

    def test_maxima_and_minima_keep_nan_infinities_and_order(self):
        x = np.array([[3, -1, -np.inf, -0.5, np.nan, -np.nan, np.inf, -2],
                      [-4, -1, -np.inf, -7, 5, -np.inf, 1, 2]]).repeat(4, 0)
        for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
            for f, reference in ((jnp.max, np.max), (jnp.min, np.min)):
                a = jnp.asarray(x, dtype)
                want = reference(np.asarray(a, np.float32), axis=0)
                for outs in (P(), P(('a', 'b'))):
                    with self.subTest(dtype=dtype.__name__, of=reference.__name__, outs=outs):
                        got = sj.jit(lambda a: f(a, axis=0), in_shardings=sharding(P(('a', 'b'))),
                                     out_shardings=sharding(outs))(a)
                        np.testing.assert_array_equal(np.asarray(got, np.float32), want)

    def test_what_the_program_reduces_itself(self):
        x = np.array([1, np.nan, 2, -np.nan, 3, 0, 1, 2], np.float32)

        def f(x):
            return jax.shard_map(lambda x: lax.pmax(x, 'a'), mesh=MESH, in_specs=P(('b', 'a')),
                                 out_specs=P('b'))(x)

        got = sj.jit(f, in_shardings=sharding(P()), out_shardings=sharding(P()))(x)
        np.testing.assert_array_equal(got, np.max(x.reshape(2, 4), 1))


if __name__ == '__main__':
    unittest.main()
