#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is registered with JAX alone, by jax.ffi or as a custom_partitioning, in the functions that
need no sj.jit: shardcall.run, verify, check_rule, sj.check. And under sj.jit: kernels on one
device, and kernels that communicate. Exit status 77 without JAX or a C++ compiler."""
import ctypes
import os
import sys
import tempfile
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name)
DIVIDE = kernels.library(FOLDER.name, 'partitioned_kernels.cc').divide
FORMS = kernels.library(FOLDER.name, 'form_kernels.cc')
COMMUNICATING = kernels.library(FOLDER.name, 'communicating_kernels.cc')

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.experimental.custom_partitioning import custom_partitioning  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402
from shardcall import xla_client  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
X = (np.arange(8 * 6, dtype=np.float32) % 11 - 5).reshape(8, 6)
RULE = {'rule': 'm k -> m', 'reduction': {'k': 'add'}, 'pad': {'k': 0}}
jax.ffi.register_ffi_target('sums', jax.ffi.pycapsule(LIBRARY.row_sum), platform='cpu')
jax.ffi.register_ffi_target('halved', jax.ffi.pycapsule(DIVIDE), platform='cpu')


def sums(x):
    return jax.ffi.ffi_call('sums', jax.ShapeDtypeStruct(x.shape[:1], x.dtype))(x)


def pointer(function):
    """What a function gives, as a capsule."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                   ctypes.c_void_p]
    function.restype = ctypes.c_void_p
    return new(function(), None, None)


def placed(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


@custom_partitioning
def centered(x):
    return x - x.max(-1, keepdims=True)


def rows(mesh, shaped):
    spec = shaped.sharding.spec
    return NamedSharding(mesh, P(spec[0] if spec else None, None))


centered.def_partition(
    partition=lambda mesh, args, result: (mesh, centered.fun, rows(mesh, args[0]),
                                          (rows(mesh, args[0]),)),
    infer_sharding_from_operands=lambda mesh, args, result: rows(mesh, args[0]),
    sharding_rule='i j -> i j', need_replication_factors=('j',))


# Its callback trusts that the columns are whole, as the rule says, and takes what it is shown.
@custom_partitioning
def rolled(x):
    return jnp.roll(x, 2, 1)


rolled.def_partition(
    partition=lambda mesh, args, result: (mesh, rolled.fun, result.sharding, (args[0].sharding,)),
    sharding_rule='i j -> i j', need_replication_factors=('j',))


# Its callback adds up what shards of an open factor have.
@custom_partitioning
def product(x, w):
    return x @ w


def summed(mesh, args, result):
    (_, over), (second, _) = (a.sharding.spec for a in args)
    assert over == second, (over, second)
    return (mesh, lambda x, w: jax.lax.psum(x @ w, over) if over else x @ w, result.sharding,
            tuple(a.sharding for a in args))


product.def_partition(partition=summed, sharding_rule='i k, k j -> i j')


class WithoutSjJitTest(unittest.TestCase):
    def test_kernels_of_jax_ffi_run(self):
        lowered = jax.jit(sums).lower(placed(X, 'a', 'b'))
        made, = shardcall.run(lowered, [X], rules={'sums': RULE})
        np.testing.assert_array_equal(made, X.sum(1))
        self.assertTrue(shardcall.verify(lowered, [X], rules={'sums': RULE}))
        found = shardcall.check_rule('sums', lowered, rules={'sums': RULE})
        self.assertTrue(found, found)
        wrong = shardcall.check_rule('sums', lowered, rules={
            'sums': {**RULE, 'reduction': {'k': 'max'}}})
        self.assertEqual(wrong.verdict, 'incorrect')

    def test_a_kernel_with_a_state_has_all_its_stages(self):
        jax.ffi.register_ffi_type('Factor', {'type_id': pointer(FORMS.factor_id),
                                             'type_info': pointer(FORMS.factor_info)})
        stages = {'instantiate': jax.ffi.pycapsule(FORMS.make_factor),
                  'execute': jax.ffi.pycapsule(FORMS.use_factor)}
        jax.ffi.register_ffi_target('scaled', stages, platform='cpu')

        def f(x):
            return jax.ffi.ffi_call('scaled', jax.ShapeDtypeStruct(x.shape, x.dtype))(
                x, times=np.float32(3))

        lowered, rules = jax.jit(f).lower(placed(X, 'a', 'b')), {'scaled': '... -> ...'}
        np.testing.assert_array_equal(shardcall.run(lowered, [X], rules=rules)[0], 3 * X)
        self.assertTrue(shardcall.verify(lowered, [X], rules=rules))
        self.assertTrue(shardcall.check_rule('scaled', lowered, rules=rules))
        self.assertTrue(sj.check(f, X, target='scaled', rules=rules))
        self.assertEqual(set(xla_client.custom_call_targets('cpu')['scaled']), set(stages))
        # Under the further name that a call gets for which XLA has a partitioner, too.
        xla_client._partitioners.give_to_xla('scaled', None)
        made = sj.jit(f, strict=True, rules=rules)(placed(X, 'a', 'b'))
        np.testing.assert_array_equal(made, 3 * X)

    def test_a_program_as_text_or_bytes_has_them_too(self):
        lowered = jax.jit(lambda x: jax.ffi.ffi_call(
            'halved', jax.ShapeDtypeStruct(x.shape, x.dtype))(x, n=2)).lower(placed(X, 'a'))
        for program in (lowered.as_text('hlo'), lowered.as_text()):
            made, = shardcall.run(program, [X], rules={'halved': '... -> ...'}, num_partitions=8)
            np.testing.assert_array_equal(made, X / 2)

    def test_sj_check_takes_a_function_that_calls_several(self):
        sj.target('sums', **RULE)
        self.addCleanup(shardcall.registry.redeclare, 'sums', None)

        def f(x):
            return sums(jax.ffi.ffi_call(
                'halved', jax.ShapeDtypeStruct(x.shape, x.dtype))(x, n=2))

        self.assertTrue(sj.check(f, X, target='sums'))

    def test_a_custom_partitioning_runs_and_is_proven(self):
        def f(x):
            return centered(x) * 2

        wanted = 2 * (X - X.max(-1, keepdims=True))
        lowered = jax.jit(f).lower(placed(X, 'a', 'b'))
        program = shardcall.partition(lowered)
        np.testing.assert_array_equal(program.run([X])[0], wanted)
        self.assertTrue(shardcall.verify(lowered, [X]))
        found = shardcall.check_rule('CustomSPMDPartitioning', lowered)
        self.assertTrue(found, found)
        self.assertTrue(sj.check(f, placed(X, 'a', 'b'), target='CustomSPMDPartitioning'))

    def test_a_callback_is_shown_whole_what_the_rule_needs_whole(self):
        made = sj.jit(lambda x: rolled(x) * 2)(placed(X, 'a', 'b'))
        np.testing.assert_array_equal(made, 2 * np.roll(X, 2, 1))
        lowered = jax.jit(lambda x: rolled(x) * 2).lower(placed(X, 'a', 'b'))
        self.assertTrue(shardcall.verify(lowered, [X]))

    def test_a_callback_is_shown_the_shards_of_an_open_factor(self):
        w = np.arange(6 * 4, dtype=np.float32).reshape(6, 4)
        made = sj.jit(lambda x, w: product(x, w * 2))(placed(X, 'a', 'b'), w)
        np.testing.assert_array_equal(made, X @ w * 2)

    def test_factors_beside_one_that_is_needed_whole_keep_their_axes(self):
        seen = []

        @custom_partitioning
        def flat(x, y):
            return x.reshape(y.shape) + y

        def partition(mesh, args, result):
            seen.extend(a.sharding.shard_shape(a.shape) for a in args)
            return mesh, flat.fun, args[1].sharding, tuple(a.sharding for a in args)

        flat.def_partition(partition=partition, sharding_rule='(i k) j, (i k j) -> (i k j)',
                           i=4, k=2, need_replication_factors=('k',))
        x, y = np.arange(24, dtype=np.float32).reshape(8, 3), np.ones(24, np.float32)
        made = sj.jit(lambda x, y: flat(x, y) * 2)(placed(x, 'a'), placed(y, 'a'))
        np.testing.assert_array_equal(made, 2 * (x.ravel() + 1))
        self.assertEqual(seen[-2:], [(2, 3), (6,)])

    def test_a_callback_that_makes_another_function_is_found(self):
        @custom_partitioning
        def triple(x):
            return x * 3

        triple.def_partition(lambda mesh, args, result: (mesh, lambda x: x * 2, args[0].sharding,
                                                         (args[0].sharding,)),
                             sharding_rule='i j -> i j')
        found = sj.check(triple, placed(X, 'a', 'b'))
        self.assertEqual(found.verdict, 'incorrect')
        self.assertIn('than the function', found.details['reason'])
        self.assertTrue(sj.check(centered, placed(X, 'a', 'b')))

    def test_a_callback_is_checked_with_results_in_shards_too(self):
        @custom_partitioning
        def numbered(x):
            return x + jnp.arange(x.shape[0], dtype=x.dtype)[:, None]

        # Right where it is asked for the whole result, which it follows.
        numbered.def_partition(lambda mesh, args, result: (mesh, numbered.fun, result.sharding,
                                                           (result.sharding,)),
                               sharding_rule='i j -> i j')
        found = sj.check(numbered, jax.ShapeDtypeStruct(X.shape, X.dtype))
        self.assertEqual(found.verdict, 'incorrect')

    def test_one_in_a_shard_map_over_some_axes_is_shown_the_others(self):
        seen = []

        @custom_partitioning
        def double(x):
            return x * 2

        def partition(mesh, args, result):
            seen.append(args[0].sharding.shard_shape(args[0].shape))
            return mesh, double.fun, args[0].sharding, (args[0].sharding,)

        double.def_partition(partition=partition, sharding_rule='i j -> i j')
        f = jax.shard_map(double, mesh=MESH, in_specs=P('a'), out_specs=P('a'), axis_names={'a'})
        for spec, shard in ((P('a', 'b'), (2, 3)), (P('a'), (2, 6))):
            np.testing.assert_array_equal(sj.jit(f)(placed(X, *spec)), 2 * X)
            self.assertEqual(seen[-1], shard)

    def test_one_with_a_partition_callback_alone_is_asked_for_what_others_take(self):
        @custom_partitioning
        def double(x):
            return x * 2

        double.def_partition(lambda mesh, args, result: (mesh, double.fun, args[0].sharding,
                                                         (args[0].sharding,)))
        made = sj.jit(lambda x: double(x) + 1)(placed(X, 'a', 'b'))
        np.testing.assert_array_equal(made, 2 * X + 1)

    def test_kernels_that_a_callback_calls_are_known(self):
        jax.ffi.register_ffi_target('called_behind', jax.ffi.pycapsule(DIVIDE), platform='cpu')

        @custom_partitioning
        def halved(x):
            return jax.ffi.ffi_call('called_behind', jax.ShapeDtypeStruct(x.shape, x.dtype))(x, n=2)

        halved.def_partition(lambda mesh, args, result: (mesh, halved.fun, args[0].sharding,
                                                         (args[0].sharding,)),
                             sharding_rule='i j -> i j')
        lowered = jax.jit(lambda x: halved(x) * 2).lower(placed(X, 'a', 'b'))
        self.assertTrue(shardcall.verify(lowered, [X]))
        np.testing.assert_array_equal(shardcall.run(lowered, [X])[0], X)

    def test_a_rule_that_does_not_fit_says_where_the_call_is(self):
        with self.assertRaises(shardcall.Error) as raised:
            sj.jit(sums, rules={'sums': 'i -> i'})(placed(X, 'a'))
        self.assertEqual(raised.exception.code, 'E111')
        self.assertRegex(str(raised.exception),
                         r'in the call of "sums", %\S+, at \S*registrations_test.py:\d+$')

    def test_an_error_of_a_callback_says_what_was_raised_and_where(self):
        def raises(mesh, arguments, result):
            return 1 // 0

        made = custom_partitioning(lambda x: x)
        made.def_partition(partition=raises, sharding_rule='i j -> i j',
                           infer_sharding_from_operands=lambda mesh, arguments, result: None)
        with self.assertRaises(shardcall.Error) as raised:
            sj.jit(made)(placed(X, 'a'))
        message = str(raised.exception)
        self.assertRegex(message, '^E121 .* failed: ZeroDivisionError: .* at %')
        self.assertRegex(message, r'File ".*registrations_test.py", line \d+, in raises\n  in ')
        self.assertNotIn('site-packages', message)

    def test_a_custom_partitioning_with_a_wrong_rule_is_found(self):
        @custom_partitioning
        def wrong(x):
            return x - x.max(-1, keepdims=True)

        same = lambda mesh, args, result: args[0].sharding  # noqa: E731
        wrong.def_partition(
            partition=lambda mesh, args, result: (mesh, wrong.fun, args[0].sharding,
                                                  (args[0].sharding,)),
            infer_sharding_from_operands=same, sharding_rule='i j -> i j')
        lowered = jax.jit(lambda x: wrong(x)).lower(placed(X, 'a', 'b'))
        self.assertEqual(shardcall.check_rule('CustomSPMDPartitioning', lowered).verdict,
                         'incorrect')


class OneDeviceTest(unittest.TestCase):
    def test_kernels_of_a_program_for_one_device_are_registered(self):
        def best(x):
            shapes = [jax.ShapeDtypeStruct((4, 3), dtype) for dtype in (x.dtype, np.int32)]
            return jax.ffi.ffi_call('topk', shapes)(x)

        x = np.random.default_rng(0).permutation(64).astype(np.float32).reshape(4, 16)
        values, places = sj.jit(best)(x)  # nothing else here calls topk
        expected = jax.lax.top_k(x, 3)
        np.testing.assert_array_equal(values, expected[0])
        np.testing.assert_array_equal(places, expected[1])
        self.assertEqual(len(values.sharding.device_set), 1)


class CommunicatorTest(unittest.TestCase):
    def setUp(self):
        self.sum_over = sj.target('sum_over', COMMUNICATING.sum_over, rule='m k -> m k',
                                  shapes=lambda x, **_: x)
        self.x = placed(X, 'a', 'b')

    def summed(self, axis, times=1, mesh=MESH):
        return jax.shard_map(lambda x: self.sum_over(x, axis=axis, times=np.int64(times)),
                             mesh=mesh, in_specs=P('a', 'b'), out_specs=P('a', 'b'),
                             check_vma=False)

    @staticmethod
    def expected(axis, x=X, times=1):
        parts = x.reshape(4, 2, 2, 3)  # a, rows, b, columns
        for _ in range(times):
            parts = np.broadcast_to(parts.sum({'a': 0, 'b': 2}[axis], keepdims=True), (4, 2, 2, 3))
        return parts.reshape(8, 6)

    def test_it_reaches_the_kernel(self):
        for axis in 'ab':
            for times in (1, 2):
                made = sj.jit(self.summed(axis, times), strict=True)(self.x)
                np.testing.assert_array_equal(made, self.expected(axis, times=times))

    def test_calls_that_do_not_depend_on_each_other_do_not_meet(self):
        def f(x):
            return self.summed('a')(x) - self.summed('b')(x * 2), self.summed('a')(x + 1)

        step = sj.jit(f, strict=True)
        for _ in range(5):  # later runs begin while earlier ones are not done
            made = step(self.x)
        np.testing.assert_array_equal(made[0], self.expected('a') - self.expected('b', 2 * X))
        np.testing.assert_array_equal(made[1], self.expected('a', X + 1))

    def test_in_a_loop(self):
        def f(x):
            return jax.lax.fori_loop(0, 3, lambda k, x: self.summed('b')(x), x)

        np.testing.assert_array_equal(sj.jit(f, strict=True)(self.x), self.expected('b', times=3))

    def test_devices_in_another_order(self):
        mesh = jax.sharding.Mesh(np.array(jax.devices())[::-1].reshape(2, 4).T, ('a', 'b'))
        x = jax.device_put(X, NamedSharding(mesh, P('a', 'b')))
        made = sj.jit(self.summed('a', mesh=mesh), strict=True)(x)
        np.testing.assert_array_equal(made, self.expected('a'))

    def test_on_one_device_there_is_none(self):
        with self.assertRaises(Exception) as raised:
            jax.block_until_ready(sj.jit(lambda x: self.sum_over(x, axis='a', times=np.int64(1)),
                                         strict=True)(X))
        self.assertIn('User data', str(raised.exception))

    def test_an_error_of_one_device_is_that_of_the_program(self):
        with self.assertRaises(Exception) as raised:
            jax.block_until_ready(sj.jit(self.summed('c'), strict=True)(self.x))
        self.assertIn('no such axis: c', str(raised.exception))


if __name__ == '__main__':
    unittest.main()
