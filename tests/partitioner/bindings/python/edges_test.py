#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results and arguments without a sharding of their own, under sj.jit: wherever jax.jit gives an
array, so does sj.jit, with a sharding that JAX can name. Exit status 77 without JAX.

  edges_test.py [--many]        --many: more programs
"""
import itertools
import math
import os
import sys
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8', 'JAX_PLATFORMS': 'cpu'})
MANY = '--many' in sys.argv
if MANY:
    sys.argv.remove('--many')
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402


def mesh(*sizes):
    return jax.make_mesh(sizes, tuple('abc'[:len(sizes)]), axis_types=(AxisType.Auto,) * len(sizes))


def whole(*dims):
    return (np.arange(math.prod(dims), dtype=np.float32) % 13 - 6).reshape(dims)


def divisors(n, parts):
    """Shapes of `parts` dimensions with n elements."""
    if parts == 1:
        return [(n,)]
    return [(d, *rest) for d in range(1, n + 1) if n % d == 0
            for rest in divisors(n // d, parts - 1)]


class EdgesTest(unittest.TestCase):
    def both(self, f, *args, **options):
        """The results of sj.jit, which equal those of jax.jit and are named where those are."""
        theirs = jax.tree.leaves(jax.jit(f, **options)(*args))
        ours = jax.tree.leaves(sj.jit(f, strict=True, **options)(*args))
        for a, b in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(a, b)
            if isinstance(a.sharding, NamedSharding):
                self.assertIsInstance(b.sharding, NamedSharding, (a.sharding, b.sharding))
        return ours

    def test_results_over_a_part_of_an_axis_are_over_whole_axes(self):
        m = mesh(8)
        x = jax.device_put(whole(32), NamedSharding(m, P('a')))
        for f in (lambda x: x.reshape(4, 8), lambda x: jnp.repeat(x, 3).reshape(6, 16),
                  lambda x: x.reshape(4, -1).sum(1), lambda x: x.reshape(2, 2, 8)[:, 1]):
            y, = self.both(f, x)
            self.assertEqual(y.sharding.spec, P())
        rows = jax.device_put(whole(24, 3), NamedSharding(m, P('a')))
        self.both(lambda x: x.reshape(2, 12, 3), rows)
        heads = jax.device_put(whole(8, 64), NamedSharding(m, P(None, 'a')))
        self.both(lambda x: x.reshape(8, 4, 16), heads)
        self.both(lambda x: (x.reshape(8, 4, 16) * 2).swapaxes(1, 2), heads)

    def test_axes_that_divide_stay(self):
        m = mesh(2, 4)
        x = jax.device_put(whole(64), NamedSharding(m, P(('a', 'b'))))
        y, = self.both(lambda x: x.reshape(4, 16), x)
        self.assertEqual(y.sharding.spec, P('a'))
        z, = self.both(lambda x: x.reshape(2, 32) + 1, x)
        self.assertEqual(z.sharding.spec, P('a', 'b'))
        sj.expect(sj.jit(lambda x: x.reshape(2, 32) + 1), x, contract='bytes=0')
        # A part of b that is left out costs no more than itself.
        sj.expect(sj.jit(lambda x: x.reshape(4, 16)), x, contract='bytes<=192')

    def test_what_uses_a_result_keeps_its_sharding(self):
        x = jax.device_put(whole(32), NamedSharding(mesh(8), P('a')))

        def f(x):
            y = x.reshape(4, 8) * 2
            return y, y.reshape(32) + x

        y, z = self.both(f, x)
        self.assertEqual((y.sharding.spec, z.sharding.spec), (P(), P('a')))

    def test_arguments_without_a_sharding(self):
        m = mesh(8)
        constrain = jax.lax.with_sharding_constraint

        def f(x):
            return constrain(x.reshape(32) * 2, NamedSharding(m, P('a')))

        made = sj.jit(f, strict=True).lower(
            jax.ShapeDtypeStruct((4, 8), np.float32)).compile()
        self.assertEqual(made.input_shardings[0][0].num_devices, 8)
        y, = self.both(f, whole(4, 8))
        self.assertEqual(y.sharding.spec, P('a'))
        np.testing.assert_array_equal(made(whole(4, 8)), 2 * whole(32))

    def test_what_is_lowered_is_what_runs(self):
        x = jax.device_put(whole(8, 16), NamedSharding(mesh(8), P('a')))
        replicated = NamedSharding(mesh(8), P())
        for f, options in ((lambda x: x * 2, {}), (lambda x: (x * 2, x.sum()), {}),
                           (lambda x: x[:3] * 2, {}), (lambda x: x.reshape(4, 32), {}),
                           (lambda x: x * 2, {'out_shardings': replicated})):
            want = sj.explain(sj.jit(f, **options), x).total_bytes
            for lowered in (sj.jit(f, **options).lower(x), jax.jit(f, **options).lower(x)):
                self.assertEqual(shardcall.partition(lowered).report.total_bytes, want)
                self.assertEqual(shardcall.explain(lowered).total_bytes, want)
                self.assertTrue(shardcall.verify(lowered))
                np.testing.assert_array_equal(shardcall.run(lowered, [x])[0],
                                              jax.tree.leaves(f(x))[0])
        self.assertEqual(sj.explain(sj.jit(lambda x: x * 2), x).total_bytes, 0)
        self.assertGreater(want, 0)

    def test_no_program_fails_that_jax_compiles(self):
        """Reshapes of arrays over all axes, in all orders, and what one does with them."""
        uses = [lambda y: y, lambda y: y * 2 + 1, lambda y: y.sum(-1), lambda y: y[:1],
                lambda y: (y, y.T), lambda y: jnp.repeat(y, 3, 0),
                lambda y: jnp.concatenate([y, y], -1)]
        tried = 0
        for sizes in ((8,), (2, 4), (4, 2), (2, 2, 2)):
            m = mesh(*sizes)
            names = m.axis_names
            specs = [P(names), P(None, names[0]), P(names[-1], names[0]) if len(sizes) > 1 else P()]
            if len(sizes) > 1:
                specs.append(P(names[::-1]))
            for dims, (k, spec) in itertools.product(((8, 24), (16, 8)), enumerate(specs)):
                x = jax.device_put(whole(*dims), NamedSharding(m, spec))
                shapes = divisors(math.prod(dims), 2 + k % 2)
                shapes = shapes[k % 3::3] if MANY else shapes[k::17]
                for n, shape in enumerate(shapes):
                    use = uses[(n + k) % len(uses)]
                    with self.subTest(sizes=sizes, dims=dims, spec=spec, shape=shape):
                        self.both(lambda x: use(x.reshape(shape)), x)  # noqa: B023
                        tried += 1
        self.assertGreater(tried, 300 if MANY else 20)


if __name__ == '__main__':
    unittest.main()
