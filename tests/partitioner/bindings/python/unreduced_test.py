#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that stay unreduced, under sj.jit: each device has its part of a sum, a maximum or a
minimum, and nothing is sent until somebody wants the whole. JAX before 0.12 has sums alone. Exit
status 77 without JAX."""
import functools
import os
import sys
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8', 'JAX_PLATFORMS': 'cpu'})
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, PartitionSpec as P
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)
import shardcall.jax as sj  # noqa: E402

# A kind's name: how JAX reduces, and how NumPy does. JAX's names of kinds are of 0.12.
KINDS = {'sum': (jax.lax.reduce_sum, np.sum)}
if hasattr(jax.sharding, 'UnreducedKind'):
    KINDS |= {'max': (jax.lax.reduce_max, np.max), 'min': (jax.lax.reduce_min, np.min)}
MANUAL = {'sum': 'psum', 'max': 'pmax', 'min': 'pmin'}
MESHES = {'a=2,b=4': ((2, 4), None), 'a=4,b=2': ((4, 2), None), 'a=2,b=2,c=2': ((2, 2, 2), None),
          'a=2,b=4, other devices': ((2, 4), [5, 2, 7, 0, 1, 6, 3, 4])}


def mesh(name):
    sizes, order = MESHES[name]
    devices = None if order is None else [jax.devices()[k] for k in order]
    return jax.make_mesh(sizes, tuple('abc'[:len(sizes)]), devices=devices,
                         axis_types=(AxisType.Explicit,) * len(sizes))


def spec(kind, *dims, unreduced):
    if kind == 'sum':
        return P(*dims, unreduced=unreduced)
    return P(*dims, unreduced=unreduced, unreduced_kind=jax.sharding.UnreducedKind[kind])


def whole(*dims, dtype=np.float32):
    return (np.arange(np.prod(dims)) * 7 % 23 - 11).reshape(dims).astype(dtype)


def parts(x):
    return [np.asarray(s.data) for s in x.addressable_shards]


class UnreducedTest(unittest.TestCase):
    def each(self, case, meshes=MESHES):
        """case(the kind's name, JAX's reduction, NumPy's), for all kinds and meshes."""
        for kind, (reduce, reference) in KINDS.items():
            for name in meshes:
                with self.subTest(kind=kind, mesh=name), jax.set_mesh(mesh(name)):
                    case(kind, reduce, reference)

    def as_jax(self, got, want):
        """Each device has what it has under jax.jit, and the results are sharded as there."""
        for a, b in zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True):
            self.assertEqual(a.sharding, b.sharding)
            for one, other in zip(parts(a), parts(b), strict=True):
                np.testing.assert_array_equal(one, other)

    def ours(self, f, *args):
        """What sj.jit gives, without a collective of ours or XLA's."""
        made = sj.jit(f, strict=True)
        self.assertEqual(sj.explain(made, *args).count(), 0)
        text = made.lower(*args).compile().as_text()
        for name in ('all-reduce', 'all-gather', 'all-to-all', 'collective-permute'):
            self.assertNotIn(name, text)
        got = made(*args)
        self.as_jax(got, jax.jit(f)(*args))
        return got

    def test_a_result_of_a_reduction_stays_unreduced(self):
        def case(kind, reduce, reference):
            for dtype in (np.float32, np.int32, jnp.bfloat16, *([] if kind == 'sum' else [bool])):
                x = jax.device_put(whole(8, 4, dtype=dtype), P('a', 'b'))
                for dims, axes, unreduced in ((['b'], (0,), {'a'}), ([], (0, 1), {'a', 'b'})):
                    out = spec(kind, *dims, unreduced=unreduced)
                    y = self.ours(functools.partial(reduce, axes=axes, out_sharding=out), x)
                    self.assertEqual(y.sharding.spec, out)
                    got = sj.jit(lambda y: jax.reshard(y, P()), strict=True)(y)
                    np.testing.assert_array_equal(got, reference(np.asarray(x), axis=axes))

        self.each(case)

    def test_an_axis_that_a_result_does_not_use_has_copies(self):
        def case(kind, reduce, reference):
            x = jax.device_put(whole(8, 3), P('b', None))
            y = self.ours(functools.partial(reduce, axes=(0,), out_sharding=spec(
                kind, None, unreduced={'b'})), x)
            count = x.sharding.mesh.shape['b']
            want = [reference(rows, axis=0) for rows in np.split(np.asarray(x), count)]
            for shard, got in zip(x.addressable_shards, parts(y), strict=True):
                rows = shard.index[0].start or 0
                np.testing.assert_array_equal(got, want[rows * count // 8])

        self.each(case)

    def test_several_results_and_arguments(self):
        """In the order that the program has them, beside ones that are not unreduced."""
        def case(kind, reduce, _):
            first, second = spec(kind, 'b', unreduced={'a'}), spec(kind, None, unreduced={'b'})
            x = jax.device_put(whole(8, 4), P('a', 'b'))

            def f(x):
                one = reduce(x, axes=(0,), out_sharding=first)
                two = reduce(jax.reshard(x, P(None, 'b')), axes=(1,), out_sharding=second)
                return {'x': x * 2, 'one': one, 'scalar': jnp.float32(3), 'two': two}

            made = sj.jit(f, strict=True)(x)
            self.as_jax(made, jax.jit(f)(x))
            again = self.ours(lambda y, z: (z, y), made['one'], made['two'])
            self.assertEqual([y.sharding.spec for y in again], [second, first])

        self.each(case, ['a=4,b=2', 'a=2,b=4, other devices'])

    def test_nan_and_infinities_and_negative_zero_stay(self):
        x = np.array([[np.nan, -np.inf], [1, 2], [-0., 3], [-0., np.inf]] * 2, np.float32)

        def case(kind, reduce, _):
            y = self.ours(functools.partial(reduce, axes=(0,), out_sharding=spec(
                kind, 'b', unreduced={'a'})), jax.device_put(x, P('a', 'b')))
            self.assertEqual(sum(np.isnan(part).any() for part in parts(y)), 2)

        self.each(case, ['a=4,b=2'])

    def test_loops_carry_and_stack_sums_and_branches_end_with_them(self):
        """Gradients of micro-batches are reduced after the loop, by whoever wants the whole."""
        rows, total = P(None, 'a', None), P(None, None, unreduced={'a'})

        def product(row):
            return jnp.einsum('bi,bj->ij', row, row, out_sharding=total)

        def zero():
            return jax.reshard(jnp.zeros((4, 4)), total)

        def added(x):
            return jax.lax.scan(lambda c, row: (c + product(row), None), zero(), x)[0]

        def stacked(x):
            return jax.lax.scan(lambda c, row: (c, product(row)), 0., x)[1]

        def branches(x, which):
            return jax.lax.cond(which, lambda: product(x[0]), lambda: product(x[1]))

        each = np.einsum('kbi,kbj->kij', whole(6, 8, 4), whole(6, 8, 4))
        for f, others, want in ((added, (), each.sum(0)), (stacked, (), each),
                                (branches, (True,), each[0]), (branches, (False,), each[1])):
            for name in ('a=4,b=2', 'a=2,b=4, other devices'):
                with self.subTest(f=f.__name__, mesh=name), jax.set_mesh(mesh(name)):
                    made = self.ours(f, jax.device_put(whole(6, 8, 4), rows), *others)
                    self.assertEqual(made.sharding.spec.unreduced, {'a'})
                    done = sj.jit(lambda y: jax.reshard(y, P()), strict=True)(made)
                    np.testing.assert_array_equal(done, want)

    def test_a_manual_region_reduces_it(self):
        def case(kind, reduce, reference):
            x = jax.device_put(whole(8, 4), P('a', 'b'))
            y = self.ours(functools.partial(reduce, axes=(0,), out_sharding=spec(
                kind, 'b', unreduced={'a'})), x)
            f = sj.jit(jax.shard_map(lambda y: getattr(jax.lax, MANUAL[kind])(y, 'a'),
                                     out_specs=P('b')), strict=True)
            np.testing.assert_array_equal(f(y), reference(np.asarray(x), axis=0))
            self.assertEqual(sj.explain(f, y).count('all-reduce'), 1)

        self.each(case, ['a=2,b=4', 'a=2,b=2,c=2'])


if __name__ == '__main__':
    unittest.main()
