#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What shardcall.jax says of what it does not take over, and of rules that nothing calls. Exit
status 77 without JAX."""
import os
import sys
import tempfile
import unittest
import warnings

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    import shardcall
    import shardcall.jax as sj
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

MESH = jax.make_mesh((4, 2), ('data', 'model'), axis_types=(AxisType.Auto,) * 2)


def relu(x):
    return jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


class TellingTest(unittest.TestCase):
    def setUp(self):
        whole = (np.arange(128, dtype=np.float32) % 7 - 3).reshape(8, 16)
        self.x = jax.device_put(whole, NamedSharding(MESH, P('data', 'model')))

    def test_a_jit_or_a_gradient_around_it_is_told_once(self):
        f = sj.jit(lambda x: (x * x).sum())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            for _ in range(2):
                self.assertEqual(jax.jit(lambda x: f(x) + 1)(self.x), (np.asarray(self.x)**2).sum() + 1)
                np.testing.assert_array_equal(jax.grad(f)(self.x), 2 * np.asarray(self.x))
                jax.vmap(f)(self.x)
                sj.jit(jax.grad(f))(self.x)
        told = [w for w in told if issubclass(w.category, shardcall.Warning)]
        self.assertEqual(len(told), 2)  # the jit, the gradient
        strict = sj.jit(lambda x: x + 1, strict=True)
        with self.assertRaises(shardcall.Error):
            jax.jit(lambda x: strict(x) + 2)(self.x)

    def warned(self, function, *args):
        """The warnings of the package from a call."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            function(*args)
        return [w for w in told if issubclass(w.category, shardcall.Warning)]

    def test_xla_is_silent_about_the_form_of_the_shardings(self):
        with tempfile.TemporaryFile() as said:
            stderr = os.dup(2)
            os.dup2(said.fileno(), 2)  # where XLA logs
            try:
                np.testing.assert_array_equal(sj.jit(lambda x: x * 2 + 1)(self.x),
                                              np.asarray(self.x) * 2 + 1)
            finally:
                os.dup2(stderr, 2)
                os.close(stderr)
            said.seek(0)
            self.assertNotIn(b'sdy shardings', said.read())

    def test_a_partitioner_within_a_jit_is_told(self):
        def f(x, strict):
            with sj.partitioner(strict=strict):
                return jnp.sin(x)

        told = self.warned(jax.jit(f, static_argnums=1), self.x, False)
        self.assertEqual([str(w.message)[:4] for w in told], ['W205'])
        with self.assertRaises(shardcall.Error):
            jax.jit(f, static_argnums=1)(self.x, True)
        # What is around it decides, and is ours.
        self.assertEqual(self.warned(sj.jit(f, static_argnums=1), self.x, True), [])

    def test_a_warning_stands_at_the_user_s_line(self):
        inner = sj.jit(jnp.cos)
        told = self.warned(jax.jit(lambda x: inner(x)), self.x)
        self.assertEqual([os.path.realpath(w.filename) for w in told], [os.path.realpath(__file__)])

    def test_a_rule_for_a_target_that_is_not_called_is_told_once(self):
        def run():
            for k in range(2):
                sj.jit(lambda x: relu(x) + k, rules={'custom_rleu': 'a b -> a b'})(self.x)

        told = self.warned(run)
        self.assertEqual(len(told), 1)
        self.assertIn('W206 rules= has a rule for "custom_rleu"', str(told[0].message))
        self.assertIn('it calls custom_relu', str(told[0].message))

        def within():
            with sj.partitioner(rules={'no_target': 'a b -> a b', 'late': 'a b -> a b'}):
                jax.jit(lambda x: x - 7)(self.x)
                explained(sj.explain, 'late')

        def explained(function, name):
            return function(lambda x: jax.ffi.ffi_call(
                name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x), self.x)

        told = self.warned(within)
        self.assertEqual(len(told), 1)
        self.assertIn('"no_target", which any program within', str(told[0].message))

    def test_a_misspelt_rule_is_named_where_the_target_has_none(self):
        def f(x):
            return jax.ffi.ffi_call('my_kernel', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        with self.assertRaises(shardcall.Error) as raised:
            sj.explain(f, self.x, rules={'my_kernl': 'a b -> a b'})
        self.assertEqual(raised.exception.code, 'E101')
        self.assertIn('my_kernl', raised.exception.fix)
        self.assertIn('(allow_replicate=my_kernel)', raised.exception.fix)

    def test_what_is_around_it_is_told_when_it_is_compiled(self):
        strict = sj.jit(lambda x: x * 3, strict=True)

        def scanned(function):
            return lambda x: jax.lax.scan(lambda c, _: (function(c), None), x, None, length=2)[0]

        spec = P('data', 'model')
        around = {'jit': lambda x: strict(x), 'vmap': jax.vmap(strict), 'scan': scanned(strict),
                  'vmap in a scan': scanned(jax.vmap(strict)),
                  'gradient': jax.value_and_grad(lambda x: strict(x).sum()),
                  'remat': jax.grad(lambda x: (jax.checkpoint(strict)(x)**2).sum()),
                  'shard_map': jax.shard_map(strict, mesh=MESH, in_specs=spec, out_specs=spec)}
        for name, function in around.items():
            with self.subTest(name):
                jax.jit(function).lower(self.x)  # nothing is compiled
                with self.assertRaises(shardcall.Error) as raised:
                    jax.jit(function)(self.x)
                self.assertIn('W205 the program jit_', str(raised.exception))
                self.assertEqual(self.warned(sj.jit(function, strict=True), self.x), [])
        for function in (jax.grad(lambda x: jax.vmap(strict)(x).sum()), jax.checkpoint(strict),
                         jax.grad(lambda x: (jax.checkpoint(strict)(x)**2).sum())):
            with self.assertRaises(shardcall.Error):  # without a jit around it
                function(self.x)

    def test_where_nothing_is_compiled_nothing_is_told(self):
        init = sj.jit(lambda x: x * 2, strict=True)
        step = sj.jit(lambda x: init(x) + 1, strict=True)
        for function in (init, step):
            self.assertEqual(jax.eval_shape(function, self.x).shape, (8, 16))
            self.assertEqual(function.eval_shape(self.x).shape, (8, 16))
            self.assertEqual(len(jax.make_jaxpr(function)(self.x).out_avals), 1)
        around = jax.jit(lambda x: init(x) - 1)
        self.assertEqual(jax.eval_shape(around, self.x).shape, (8, 16))
        with self.assertRaises(shardcall.Error):  # what was traced before is told of, too
            around(self.x)
        # On one device there is nothing to partition.
        np.testing.assert_array_equal(jax.jit(lambda x: init(x) - 2)(np.ones(3)), np.zeros(3))


if __name__ == '__main__':
    unittest.main()
