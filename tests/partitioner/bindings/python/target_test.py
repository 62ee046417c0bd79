#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sj.target, sj.check and sj.install with kernels of their own. Exit status 77 without JAX or a
C++ compiler."""
import functools
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
TWO = np.float32(2)
BACKWARD = {'target': 'weigh_bwd', 'arguments': ['cotangent 0', 'operand 0', 'operand 1'],
            'gradients': [0, 1]}
WEIGH = sj.target('weigh', LIBRARY.weigh, rule='... d, d -> ... d', vjp=BACKWARD)
sj.target('weigh_bwd', LIBRARY.weigh_bwd)
ROW_SUM = sj.target('row_sum', LIBRARY.row_sum, rule='m k -> m', reduction={'k': 'add'},
                    pad={'k': 0},
                    vjp=lambda operands, results, ct: (jnp.broadcast_to(
                        ct[..., None], operands[0].shape),))


def whole(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


def placed(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def weighed(x, w):
    return WEIGH(x, w, times=TWO)


class TargetTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w = whole(8, 16), np.arange(16, dtype=np.float32)

    def test_it_is_a_function_of_arrays(self):
        np.testing.assert_array_equal(weighed(self.x, self.w), 2 * self.x * self.w)
        np.testing.assert_array_equal(jax.jit(weighed)(self.x, self.w), 2 * self.x * self.w)
        self.assertEqual(WEIGH.results(self.x, self.w).shape, (8, 16))

    def test_attributes_that_compare_equal_are_told_apart(self):
        def times(value):
            return jax.jit(lambda x, w: WEIGH(x, w, times=value))(self.x, self.w)

        plus, minus = times(np.float32(0.0)), times(np.float32(-0.0))
        np.testing.assert_array_equal(np.signbit(plus), ~np.signbit(minus))
        with self.assertRaises(Exception):  # the kernel takes an f32
            times(3)
        np.testing.assert_array_equal(times(np.float32(3)), 3 * self.x * self.w)

    def test_it_is_sharded_by_its_rule_and_so_is_its_gradient(self):
        def loss(x, w):
            return (weighed(x, w) ** 2).sum() + ROW_SUM(x).sum()

        gradient = sj.jit(jax.grad(loss, (0, 1)), strict=True)
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        dx, dw = gradient(x, w)
        wanted = jax.grad(lambda x, w: ((2 * x * w) ** 2).sum() + x.sum(), (0, 1))(self.x, self.w)
        np.testing.assert_array_equal(dx, wanted[0])
        np.testing.assert_array_equal(dw, wanted[1])
        report = sj.explain(gradient, x, w)
        self.assertEqual(report.count(), 1)  # the weights' gradient, over the rows
        self.assertEqual(report.count('all-reduce'), 1)

    def test_vmap_over_what_the_dots_stand_for_is_one_call(self):
        many = jax.vmap(weighed, (0, None))
        x = np.stack([self.x, self.x + 1])
        np.testing.assert_array_equal(many(x, self.w), 2 * x * self.w)
        text = jax.jit(many).lower(x, self.w).as_text()
        self.assertEqual(text.count('@weigh'), 1)
        self.assertNotIn('while', text)
        self.assertIn('tensor<2x8x16xf32>', text)
        twice = jax.vmap(many, (0, None))(np.stack([x, x]), self.w)
        np.testing.assert_array_equal(twice[1], 2 * x * self.w)

    def test_vmap_over_other_operands_is_a_loop(self):
        w = np.stack([self.w, self.w + 1])
        one = jax.vmap(weighed, (None, 0))(self.x, w)
        np.testing.assert_array_equal(one, 2 * self.x * w[:, None])
        both = jax.vmap(weighed)(np.stack([self.x, self.x + 1]), w)
        np.testing.assert_array_equal(both[1], 2 * (self.x + 1) * w[1])
        gradient = jax.vmap(jax.grad(lambda x: weighed(x, self.w).sum()))(self.x)
        np.testing.assert_array_equal(gradient, np.broadcast_to(2 * self.w, (8, 16)))

    def test_on_explicit_meshes_results_are_sharded_by_the_rule(self):
        mesh = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Explicit,) * 2)
        with jax.set_mesh(mesh):
            x, w = jax.device_put(self.x, P('a')), jax.device_put(self.w, P())
            y = jax.device_put(self.x, P('a', 'b'))
            self.assertEqual(WEIGH.results(x, w, times=TWO).sharding.spec, P('a', None))
            self.assertEqual(weighed(x, w).sharding.spec, P('a', None))
            # k is summed over b, and no result has it.
            self.assertEqual(ROW_SUM.results(y).sharding.spec, P('a'))
            self.assertEqual(ROW_SUM.results(jax.device_put(whole(6, 4), P(None, 'b'))).sharding.spec,
                             P(None))

            def f(x, w):
                return jax.lax.scan(lambda c, _: (weighed(c, w), None), x, length=2)[0]

            made = sj.jit(f, strict=True)(x, w)
            self.assertEqual(made.sharding.spec, P('a', None))
            np.testing.assert_array_equal(made, 4 * self.x * self.w * self.w)
            gradient = jax.grad(lambda x, w: ROW_SUM(weighed(x, w)).sum())
            made = sj.jit(gradient, strict=True)(x, w)
            self.assertEqual(made.sharding.spec, P('a', None))
            np.testing.assert_array_equal(made, np.broadcast_to(2 * self.w, self.x.shape))
            sj.expect(sj.jit(f), x, w, contract='bytes=0')

    def test_vmap_does_not_loop_over_shards_of_an_explicit_mesh(self):
        one = sj.target('weigh_line', LIBRARY.weigh, rule='d, d -> d')
        rows = jax.vmap(lambda x, w: one(x, w, times=TWO), (0, None))
        mesh = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Explicit,) * 2)
        with jax.set_mesh(mesh):
            w = jax.device_put(self.w, P())
            with self.assertRaisesRegex(shardcall.Error, 'operand 0 that it maps is sharded over .a.'):
                rows(jax.device_put(self.x, P('a')), w)
            made = rows(jax.device_put(self.x, P(None, 'b')), jax.device_put(self.w, P('b')))
            np.testing.assert_array_equal(made, 2 * self.x * self.w)

    def test_shapes_may_give_arrays(self):
        like = sj.target('weigh', rule='... d, d -> ... d', vjp=BACKWARD,
                         shapes=lambda x, w, times: jnp.zeros(x.shape, x.dtype))
        self.assertIsInstance(like.results(self.x, self.w, times=TWO), jax.ShapeDtypeStruct)
        mesh = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Explicit,) * 2)
        with jax.set_mesh(mesh):
            x, w = jax.device_put(self.x, P('a')), jax.device_put(self.w, P())
            self.assertEqual(like(x, w, times=TWO).sharding.spec, P('a', None))

    def test_in_shard_map_results_vary_as_operands_do(self):
        def h(x, w):
            return jax.shard_map(weighed, mesh=MESH, in_specs=(P('a'), P()), out_specs=P('a'))(x, w)

        x, w = placed(self.x, 'a'), placed(self.w)
        ours = functools.partial(sj.jit, strict=True)
        np.testing.assert_array_equal(ours(h)(x, w), 2 * self.x * self.w)
        made = ours(jax.grad(lambda x, w: h(x, w).sum()))(x, w)
        np.testing.assert_array_equal(made, np.broadcast_to(2 * self.w, self.x.shape))

        # The gradient of what does not vary is summed over the axes that the call varies over.
        def rows(x, w):
            return jax.shard_map(lambda x, w: x * ROW_SUM(w)[None], mesh=MESH,
                                 in_specs=(P('a'), P()), out_specs=P('a'))(x, w)

        made = ours(jax.grad(lambda x, w: rows(x, w).sum(), 1))(x, placed(whole(16, 4)))
        np.testing.assert_array_equal(made, np.broadcast_to(self.x.sum(0)[:, None], (16, 4)))

    def test_a_rule_that_is_given_anew_is_used(self):
        def f(x, w):
            return jax.ffi.ffi_call('anew', jax.ShapeDtypeStruct(x.shape, x.dtype))(
                x, w, times=TWO)

        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        ours = sj.jit(f)
        for facts, sends in (({}, False), ({'need_replication': ['d']}, True)):
            sj.target('anew', LIBRARY.weigh, rule='m d, d -> m d', **facts)
            self.assertEqual('all-gather' in ours.lower(x, w).compile().as_text(), sends)
            np.testing.assert_array_equal(ours(x, w), 2 * self.x * self.w)

    def test_a_first_rule_is_used_by_what_was_compiled_without(self):
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')

        def called(name):
            return lambda x, w: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(
                x, w, times=TWO)

        for name in ('without', 'without_bwd'):
            sj.target(name, LIBRARY.weigh)
        first = sj.jit(called('without'), allow_replicate=('all',))
        following = sj.jit(called('without_bwd'), allow_replicate=('all',))

        def gathers(function):
            return 'all-gather' in function.lower(x, w).compile().as_text()

        for function in (first, following):
            np.testing.assert_array_equal(function(x, w), 2 * self.x * self.w)
            self.assertTrue(gathers(function))
        traced = []
        unconcerned = jax.jit(lambda x: traced.append(x) or x + 1)
        unconcerned(x)
        # The rule of the second follows from that of the first, whose gradient it is.
        sj.target('without', rule='m d, d -> m d', vjp={
            'target': 'without_bwd', 'arguments': ['operand 0', 'operand 1'], 'gradients': [0]})
        for function in (first, following):
            self.assertFalse(gathers(function))
            np.testing.assert_array_equal(function(x, w), 2 * self.x * self.w)
        unconcerned(x)
        self.assertEqual(len(traced), 2)
        # A rule that nothing went by leaves JAX's caches alone.
        sj.target('nobody_called_it', rule='m -> m')
        unconcerned(x)
        self.assertEqual(len(traced), 2)

    def test_a_target_that_is_refused_leaves_no_rule(self):
        with self.assertRaises(shardcall.Error):
            sj.target('refused', 5, rule='... -> ...')
        self.assertNotIn('refused', shardcall.targets())

    def test_a_gradient_in_python_is_checked(self):
        self.assertTrue(sj.check(ROW_SUM, self.x, vjp=True))
        wrong = sj.target('row_sum', rule='m k -> m', reduction={'k': 'add'}, pad={'k': 0},
                          vjp=lambda operands, results, ct: (jnp.zeros(operands[0].shape),))
        found = sj.check(wrong, jax.ShapeDtypeStruct((8, 16), np.float32), vjp=True)
        self.assertEqual(found.verdict, 'incorrect')
        self.assertIn('finite differences', found.details['vjp'])
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(wrong, vjp=True)
        self.assertEqual(raised.exception.code, 'E191')

    def test_a_gradient_in_python_has_a_gradient(self):
        weigh = sj.target('weigh', rule='... d, d -> ... d',
                          vjp=lambda operands, results, ct, times: (
                              weigh(ct, operands[1], times=times), jnp.zeros_like(operands[1])))
        self.addCleanup(sj.target, 'weigh', rule='... d, d -> ... d', vjp=BACKWARD)

        def second(function):
            def first(x):
                return (function(x, self.w)**3).sum()
            return jax.grad(lambda x: (jax.grad(first)(x)**2).sum())(self.x)

        np.testing.assert_allclose(second(functools.partial(weigh, times=TWO)),
                                   second(lambda x, w: 2 * x * w), rtol=1e-6)

    def test_a_gradient_by_a_target_has_the_gradient_of_that_target(self):
        x, w, ct = self.x, self.w, whole(8, 16) + 1

        def first(weigh):
            return lambda x: jax.vjp(weigh, x, w)[1](ct * x)[0].sum()

        with self.assertRaises(shardcall.Error) as raised:
            jax.grad(first(functools.partial(WEIGH, times=TWO)))(x)
        self.assertEqual(raised.exception.code, 'E118')
        self.assertIn('weigh_bwd', str(raised.exception))

        def pull(operands, results, cotangents, times):
            ct, x, w = operands
            moved = cotangents[0]
            return times * moved * w, jnp.zeros_like(x), times * (moved * ct).sum(0)

        sj.target('weigh_bwd', vjp=pull)
        self.addCleanup(sj.target, 'weigh_bwd')
        np.testing.assert_allclose(jax.grad(first(functools.partial(WEIGH, times=TWO)))(x),
                                   jax.grad(first(lambda x, w: 2 * x * w))(x), rtol=1e-6)

    def test_symbolic_shapes_need_shapes(self):
        rows, = jax.export.symbolic_shape('rows')
        with self.assertRaises(shardcall.Error) as raised:
            jax.eval_shape(functools.partial(weighed),
                           jax.ShapeDtypeStruct((rows, 16), np.float32), self.w)
        self.assertEqual(raised.exception.code, 'E112')
        self.assertIn('shapes=', str(raised.exception))

    def test_vmap_as_it_is_told(self):
        spread = sj.target('weigh', rule='... d, d -> ... d', vjp=BACKWARD, batching='loop')
        self.addCleanup(sj.target, 'weigh', rule='... d, d -> ... d', vjp=BACKWARD)
        many = jax.vmap(lambda x: spread(x, self.w, times=TWO))
        x = np.stack([self.x, self.x + 1])
        np.testing.assert_array_equal(many(x), 2 * x * self.w)
        self.assertIn('while', jax.jit(many).lower(x).as_text())

    def test_its_rule_and_its_gradient_are_proven(self):
        self.assertTrue(sj.check(WEIGH, self.x, self.w, times=TWO))
        self.assertTrue(sj.check(WEIGH, self.x, self.w, times=TWO, vjp=True))
        self.assertTrue(sj.check(ROW_SUM))
        # A function that calls it.
        self.assertTrue(sj.check(lambda x: ROW_SUM(x + 1), self.x, target='row_sum'))

    def test_a_check_does_not_warn_of_its_processes(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter('always')
            self.assertTrue(sj.check(WEIGH, self.x, self.w, times=TWO))
        self.assertEqual([str(w.message) for w in said if 'fork' in str(w.message)], [])

    def test_a_wrong_rule_is_found(self):
        wrong = sj.target('row_sum', rule='m k -> m', reduction={'k': 'max'})  # it is a sum
        self.addCleanup(sj.target, 'row_sum', rule='m k -> m', reduction={'k': 'add'},
                        pad={'k': 0})
        found = sj.check(wrong, self.x)
        self.assertFalse(found)
        self.assertEqual(found.verdict, 'incorrect')
        self.assertIn('k:add', found.suggestion.replace(' ', ''))

    def test_what_sj_jit_partitions_xla_leaves_alone(self):
        sj.install('weigh')
        self.addCleanup(sj.uninstall)
        step = sj.jit(weighed, strict=True)
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        np.testing.assert_array_equal(step(x, w), 2 * self.x * self.w)

    def test_what_cannot_be_registered_is_refused_and_changes_nothing(self):
        for code, options in (('E110', {'rule': 'm ( -> m'}), ('E110', {'rule': 'é -> é'}),
                              ('E141', {'rules': 'm -> m'}),
                              ('E112', {'rule': 'm k -> m'}),
                              ('E141', {'rule': 'm -> m', 'batching': 'sideways'})):
            with self.assertRaises(shardcall.Error) as raised:
                sj.target('row_sum', **options)
            self.assertEqual(raised.exception.code, code, options)
        with self.assertRaises(shardcall.Error) as raised:
            sj.target('weigh', LIBRARY.row_sum)
        self.assertEqual(raised.exception.code, 'E141')
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(lambda x: x, self.x)
        self.assertEqual(raised.exception.code, 'E101')
        self.assertTrue(sj.check(ROW_SUM))


class InstallTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w = whole(8, 16), np.arange(16, dtype=np.float32)
        self.addCleanup(jax.config.update, 'jax_use_shardy_partitioner',
                        jax.config.jax_use_shardy_partitioner)
        self.addCleanup(sj.uninstall)

    def compiled(self):
        """What plain JAX sends, by opcode, and how the results are sharded."""
        def f(x, w):
            return weighed(x, w), ROW_SUM(x)

        jax.clear_caches()
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        made = jax.jit(f).lower(x, w).compile()
        weights, sums = made(x, w)
        np.testing.assert_array_equal(weights, 2 * self.x * self.w)
        np.testing.assert_array_equal(sums, self.x.sum(1))
        text = made.as_text()
        sent = {op: len(re.findall(rf' {op}(?:-start)?\(', text))
                for op in ('all-gather', 'all-reduce')}
        return sent, weights.sharding.spec, sums.sharding.spec

    def test_xlas_own_partitioner_goes_by_the_rule_until_it_is_uninstalled(self):
        gathered = {'all-gather': 3, 'all-reduce': 0}
        for shardy in (True, False):
            jax.config.update('jax_use_shardy_partitioner', shardy)
            self.assertEqual(self.compiled()[0], gathered)
            sj.install('weigh', 'row_sum')
            self.assertEqual(self.compiled(),
                             ({'all-gather': 0, 'all-reduce': 1}, P('a', 'b'), P('a')))
            sj.uninstall()
            self.assertEqual(self.compiled()[0], gathered)

    def test_it_and_its_end_leave_nothing_behind(self):
        # Before JAX has looked for plugins, it keeps what it is to tell them.
        code = """
import jax, jaxlib.xla_client
before = jaxlib.xla_client.register_custom_type
import shardcall.jax as sj
from shardcall.jax import compat
sj.target('z', rule='i -> i')
counts = []
for _ in range(3):
    sj.jit(lambda x: x)
    sj.install('z')
    assert jaxlib.xla_client.register_custom_type is not before
    sj.uninstall()
    assert jaxlib.xla_client.register_custom_type is before
    counts.append(len(compat.plugin_callbacks()))
assert counts[0] == counts[2], counts
sj.jit(lambda x: x)
for odd in ({'type_info': None}, {}, None):  # jaxlib keeps these until there is a client
    jaxlib.xla_client.register_custom_type('q', odd, 'cpu')
"""
        subprocess.run([sys.executable, '-c', code], check=True)

    def test_rules_may_be_given_with_it(self):
        sj.install('weigh', 'row_sum')
        self.assertEqual(self.compiled()[0]['all-gather'], 0)
        sj.install('weigh', rules={'weigh': {'rule': 'm d, d -> m d', 'need_replication': ['d']}})
        self.assertEqual(self.compiled()[0]['all-gather'], 2)  # of d, for both operands

    def test_a_factor_that_one_result_has_and_another_sums_over(self):
        """A backward pass: dx has the rows, dw is their sum."""
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')

        def loss(x, w):
            return (weighed(x, w) ** 2).sum()

        wanted = jax.grad(lambda x, w: ((2 * x * w) ** 2).sum(), (0, 1))(self.x, self.w)
        for shardy in (True, False):
            jax.config.update('jax_use_shardy_partitioner', shardy)
            sj.install('weigh', 'weigh_bwd')
            jax.clear_caches()
            made = jax.jit(jax.grad(loss, (0, 1))).lower(x, w).compile()
            dx, dw = made(x, w)
            np.testing.assert_array_equal(dx, wanted[0])
            np.testing.assert_array_equal(dw, wanted[1])
            self.assertEqual((dx.sharding.spec, dw.sharding.spec), (P('a', 'b'), P('b')))
            text = made.as_text()
            self.assertNotIn('all-gather', text)
            self.assertEqual(len(re.findall(r' all-reduce(?:-start)?\(', text)), 1)
            ours = sj.jit(jax.grad(loss, (0, 1)), strict=True)(x, w)
            np.testing.assert_array_equal(ours[1], wanted[1])
            lowered = jax.jit(jax.grad(loss, (0, 1))).lower(x, w)
            program = shardcall.partition(lowered)
            np.testing.assert_array_equal(program.run([self.x, self.w])[1], wanted[1])
            sj.uninstall()

    def test_a_target_without_a_rule_is_refused(self):
        with self.assertRaises(shardcall.Error) as raised:
            sj.install('nothing')
        self.assertEqual(raised.exception.code, 'E101')


if __name__ == '__main__':
    unittest.main()
