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
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

for name in ('columns', 'increment', 'noted'):
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
