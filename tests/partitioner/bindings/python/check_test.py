#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sj.check: rules, plugins and attributes of the call, and kernels as their programs call them. Exit
status 77 without JAX or a C++ compiler."""
import json
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
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4,), ('a',), axis_types=(AxisType.Auto,))
for name in ('columns', 'increment', 'noted', 'blocks'):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(LIBRARY, name)), platform='cpu')
SEEDED = sj.target('seeded', LIBRARY.seeded, rule='m n -> m n')


def whole(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


X = whole(12, 8)


def call(name, results=jax.ShapeDtypeStruct((12, 8), np.float32), **options):
    """A function of an array, and of attributes, that calls the target through jax.ffi."""
    return lambda x, **attributes: jax.ffi.ffi_call(name, results, **options)(x, **attributes)


class Arguments(unittest.TestCase):
    def test_rules_are_given_as_to_explain(self):
        function = call('columns', output_layouts=(1, 0))
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(function, X, target='columns')
        self.assertEqual(raised.exception.code, 'E101')
        rule = {'rule': 'm n -> m n', 'need_replication': ['n']}
        self.assertTrue(sj.check(function, X, target='columns', rules={'columns': rule}))
        self.assertFalse(sj.check(function, X, target='columns', rules={'columns': 'm n -> m n'}))
        path = os.path.join(FOLDER.name, 'columns.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'targets': [{'name': 'columns', **rule}]}, f)
        self.assertTrue(sj.check(function, X, target='columns', plugins=path))

    def test_those_of_jit_and_of_partitioner_are_seen(self):
        rules = {'columns': {'rule': 'm n -> m n', 'need_replication': ['n']}}
        function = call('columns', output_layouts=(1, 0))
        self.assertTrue(sj.check(sj.jit(function, rules=rules), X, target='columns'))
        with sj.partitioner(rules=rules):
            self.assertTrue(sj.check(function, X, target='columns'))
            self.assertFalse(sj.check(function, X, target='columns',
                                      rules={'columns': 'm n -> m n'}))
        with self.assertRaises(shardcall.Error):
            sj.check(function, X, target='columns')

    def test_attributes_may_have_any_name(self):
        seed = np.int32(3)
        np.testing.assert_array_equal(SEEDED(X, seed=seed), X + 3)
        self.assertTrue(sj.check(SEEDED, X, attributes={'seed': seed}))
        self.assertTrue(sj.check(SEEDED, X, attributes={'seed': seed}, seed=5))
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(SEEDED, X, seed=seed)
        self.assertEqual(raised.exception.code, 'E190')
        self.assertIn('attributes={"seed": ..}', raised.exception.fix)
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(SEEDED, X, seed=seed, attributes={'seed': seed, 'more': 1})
        self.assertNotIn('"seed": ..', raised.exception.fix)
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(SEEDED, X, target=np.float32(1))
        self.assertEqual(raised.exception.code, 'E101')
        with self.assertRaises(shardcall.Error) as raised:  # the kernel wants it
            sj.check(SEEDED, X)
        self.assertEqual(raised.exception.code, 'E190')
        with self.assertRaisesRegex(TypeError, 'times among attributes= and among the keywords'):
            sj.check(SEEDED, X, attributes={'times': 1}, times=2)


class Calls(unittest.TestCase):
    """Kernels that are right only as their programs call them."""

    def test_results_by_columns(self):
        rule = {'columns': {'rule': 'm n -> m n', 'need_replication': ['n']}}
        function = call('columns', output_layouts=(1, 0))
        np.testing.assert_array_equal(jax.jit(function)(X), X + X[:, :1])
        found = sj.check(function, X, target='columns', rules=rule)
        self.assertTrue(found, found.details)
        self.assertEqual(found.untested, ())

    def test_in_place(self):
        function = call('increment', input_output_aliases={0: 0})
        np.testing.assert_array_equal(jax.jit(function)(X), X + 1)
        found = sj.check(function, X, target='increment', rules={'increment': 'm n -> m n'})
        self.assertTrue(found, found.details)
        self.assertEqual(found.untested, ())

    def test_with_side_effects(self):
        function = call('noted', has_side_effect=True)
        found = sj.check(function, X, target='noted', rules={'noted': 'm n -> m n'})
        self.assertTrue(found, found.details)

    def test_scratch_results_are_not_compared(self):
        two = [jax.ShapeDtypeStruct((12, 8), np.float32)] * 2
        rule = {'rule': 'm n -> m n, m n'}
        function = call('noted', two)
        found = sj.check(function, X, target='noted', rules={'noted': {**rule, 'scratch': [1]}})
        self.assertTrue(found, found.details)
        self.assertFalse(sj.check(function, X, target='noted', rules={'noted': rule}))


class Attributes(unittest.TestCase):
    RULE = {'blocks': {'rule': 'm n -> m n', 'attributes': {'grid': 'cdiv(m, 4)'}}}

    def test_they_follow_the_shard(self):
        function = call('blocks', jax.ShapeDtypeStruct((16, 8), np.float32))
        x = whole(16, 8)

        def step(x):
            return function(x, grid=np.int32(4))

        np.testing.assert_array_equal(jax.jit(step)(x), 2 * x)
        sharded = sj.jit(step, rules=self.RULE, strict=True,
                         in_shardings=NamedSharding(MESH, P('a')))
        np.testing.assert_array_equal(sharded(x), 2 * x)
        program = shardcall.partition(sharded.lower(x))
        self.assertIn('grid = 1 : i32', program.text)
        np.testing.assert_array_equal(program.run([x])[0], 2 * x)
        found = sj.check(step, x, target='blocks', rules=self.RULE)
        self.assertTrue(found, found.details)
        self.assertEqual(found.untested, ())

    def test_a_wrong_formula_is_found(self):
        def step(x):
            return call('blocks')(x, grid=np.int32(3))

        wrong = {'blocks': {'rule': 'm n -> m n', 'attributes': {'grid': '(m + 12) / 8'}}}
        found = sj.check(step, X, target='blocks', rules=wrong)
        self.assertEqual(found.verdict, 'incorrect', found.details)
        with self.assertRaises(shardcall.Error) as raised:
            sj.check(step, X, target='blocks', rules={
                'blocks': {'rule': 'm n -> m n', 'attributes': {'grid': 'k / 4'}}})
        self.assertEqual(raised.exception.code, 'E124')

    def test_targets_have_them(self):
        blocks = sj.target('blocks', rule='m n -> m n', attributes={'grid': 'cdiv(m, 4)'})
        x = jax.device_put(whole(16, 8), NamedSharding(MESH, P('a')))
        y = sj.jit(lambda x: blocks(x, grid=np.int32(4)), strict=True)(x)
        np.testing.assert_array_equal(y, 2 * whole(16, 8))


class Gradients(unittest.TestCase):
    def test_a_derived_rule_that_could_be_better_is_no_failure(self):
        # The gradient of a sum along n is the same for every n: its rule keeps n whole.
        target = sj.target(
            'line_sums', LIBRARY.line_sums, rule='m n -> m', need_replication=['n'],
            vjp={'target': 'line_sums_bwd', 'arguments': ['cotangent 0', 'operand 0'],
                 'gradients': [0]})
        sj.target('line_sums_bwd', LIBRARY.line_sums_bwd)
        found = sj.check(target, X, vjp=True)
        self.assertTrue(found, found.details)
        advice = [f for f in found.details['findings'] if f.get('advice')]
        self.assertEqual([f['verdict'] for f in advice], ['missing'])
        self.assertEqual(jax.grad(lambda x: target(x).sum())(jnp.asarray(X)).shape, (12, 8))


if __name__ == '__main__':
    unittest.main()
