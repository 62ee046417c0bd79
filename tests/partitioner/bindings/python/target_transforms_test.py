#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What jax.vmap and jax.grad, one after the other, make of the calls of sj.target. Exit status 77
without JAX or a C++ compiler."""
import functools
import os
import re
import sys
import tempfile
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name)
FORMS = kernels.library(FOLDER.name, 'form_kernels.cc')

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
ARGUMENTS = ['cotangent 0', 'operand 0', 'operand 1']
ours = functools.partial(sj.jit, strict=True)


def whole(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


def placed(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def calls(function, *args):
    """The calls of what a function is lowered to, as (target, ranks of the operands)."""
    text = jax.jit(function).lower(*args).as_text()
    return sorted((name, [shape.count('x') for shape in re.findall('tensor<(.*?)>', types)])
                  for name, types in re.findall(
                      r'custom_call @(\w+)\(.*\) \{.*\} : \((.*?)\) ->', text))


def raised(test, code, function, *args, **options):
    with test.assertRaises(shardcall.Error) as caught:
        function(*args, **options)
    test.assertEqual(caught.exception.code, code, str(caught.exception))
    test.assertTrue(caught.exception.fix)
    return str(caught.exception)


class VmapTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w = whole(8, 16), np.arange(16, dtype=np.float32)
        self.many = np.stack([self.x, self.x + 1, 2 * self.x])

    def declared(self, name, **facts):
        sj.target(f'{name}_batch', FORMS.multi, rule='n i j, j -> n i j')
        made = sj.target(name, FORMS.multi, rule='i j, j -> i j', **facts, vjp={
            'target': f'{name}_bwd', 'arguments': ARGUMENTS, 'gradients': [0, 1]})
        sj.target(f'{name}_bwd', FORMS.multi_bwd)
        return made

    BATCHINGS = {'leading': 'leading', 'broadcast': 'broadcast', 'loop': 'loop',
                 'by_target': {'target': 'by_target_batch'}, 'by_rule': None}

    def test_of_a_gradient_calls_the_vjps_target_once_for_each_element(self):
        def gradient(f):
            return jax.vmap(jax.grad(lambda x, w: (f(x, w)**2).sum(), (0, 1)), (0, None))

        wanted = gradient(lambda x, w: x * w)(self.many, self.w)
        for name, batching in self.BATCHINGS.items():
            with self.subTest(name):
                step = gradient(self.declared(name, batching=batching))
                self.assertIn((f'{name}_bwd', [2, 2, 1]), calls(step, self.many, self.w))
                for got in (step(self.many, self.w),
                            ours(step)(placed(self.many, None, 'a', 'b'), placed(self.w, 'b'))):
                    for g, w in zip(got, wanted):
                        np.testing.assert_array_equal(g, w)

    def test_of_vmap_gives_a_target_no_more_dimensions_than_it_takes(self):
        x = np.stack([self.many, self.many + 2])
        forms = {'leading': ('leading', [3, 1]), 'broadcast': ('broadcast', [3, 2]),
                 'loop': ('loop', [2, 1]), 'by_target': ('by_target_batch', [3, 1]),
                 'by_rule': ('by_rule', [2, 1])}
        for name, batching in self.BATCHINGS.items():
            with self.subTest(name):
                twice = jax.vmap(jax.vmap(self.declared(name, batching=batching), (0, None)),
                                 (0, None))
                self.assertEqual(calls(twice, x, self.w), [forms[name]])
                for got in (twice(x, self.w),
                            ours(twice)(placed(x, None, None, 'a', 'b'), placed(self.w, 'b'))):
                    np.testing.assert_array_equal(got, x * self.w)

    def test_goes_by_the_batching_of_the_vjps_own_target(self):
        for batching, rank in (('leading', 3), ('loop', 2)):
            name = f'own_{batching}'
            sj.target(f'{name}_bwd', FORMS.multi_bwd, rule='i j, i j -> i j', batching=batching)
            double = sj.target(name, FORMS.multi, rule='... -> ...', vjp={
                'target': f'{name}_bwd', 'arguments': ARGUMENTS[:2], 'gradients': [0]})
            step = jax.vmap(jax.grad(lambda x: (double(x)**2).sum()))
            self.assertEqual(calls(step, self.many),
                             [(name, [3]), (f'{name}_bwd', [rank, rank])])
            np.testing.assert_array_equal(step(self.many), 8 * self.many)
            np.testing.assert_array_equal(ours(step)(placed(self.many, None, 'a')), 8 * self.many)

    def test_goes_by_what_was_declared_where_a_target_is_named_again(self):
        sj.target('said', FORMS.multi, rule='i j, j -> i j', batching='leading')
        again = jax.vmap(sj.target('said'), (0, None))
        self.assertEqual(calls(again, self.many, self.w), [('said', [3, 1])])
        rules = {'said': {'rule': 'i j, j -> i j', 'batching': 'loop'}}
        np.testing.assert_array_equal(again(self.many, self.w), self.many * self.w)
        with sj.partitioner(rules=rules):
            self.assertEqual(calls(again, self.many, self.w), [('said', [2, 1])])


class GradientTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w = whole(8, 16), whole(16)

    def noted(self, arguments=('cotangent 0', 'operand 0'), **facts):
        """x -> (x, scratch), with 2 * its cotangent 0 as its gradient."""
        sj.target('noted_bwd', FORMS.multi_bwd)
        return sj.target('noted', LIBRARY.noted, rule='i j -> i j, i j', **facts, vjp={
            'target': 'noted_bwd', 'arguments': list(arguments), 'gradients': [0]})

    def test_of_a_result_that_the_vjp_does_not_take_is_refused(self):
        linear = self.noted(linear=True)

        def looped(x):
            return jax.lax.scan(lambda c, _: (noted(c)[1], None), x, length=2)[0]

        for noted in (self.noted(), linear):
            for use in (lambda x: noted(x)[1], lambda x: sum(noted(x)), looped,
                        jax.jit(lambda x: noted(x)[1])):
                for function in (jax.grad(lambda x: use(x).sum()),
                                 jax.vmap(jax.grad(lambda x: use(x[None]).sum())),
                                 ours(jax.grad(lambda x: use(x).sum()))):
                    message = raised(self, 'E118', function, placed(self.x, 'a'))
                    self.assertIn('it takes no cotangent 1', message)

    def test_leaves_alone_a_result_on_which_nothing_depends(self):
        linear = self.noted(linear=True)

        def stopped(x):
            first, second = noted(x)
            return first + jax.lax.stop_gradient(second)

        def looped(x):
            return jax.lax.scan(lambda c, _: (noted(c)[0], noted(c)[1]), x, length=2)[0] / 2

        def manual(x):
            return jax.shard_map(lambda x: noted(x)[0], mesh=MESH, in_specs=P('a'),
                                 out_specs=P('a'))(x)

        for noted in (self.noted(), linear):
            for use in (lambda x: noted(x)[0], stopped, looped, manual,
                        jax.checkpoint(lambda x: noted(x)[0])):
                step = jax.grad(lambda x: use(x).sum())
                for got in (step(self.x), jax.jit(step)(self.x), ours(step)(placed(self.x, 'a'))):
                    np.testing.assert_array_equal(got, np.full_like(self.x, 2))
            many = jax.vmap(jax.grad(lambda x: noted(x[None])[0].sum()))
            np.testing.assert_array_equal(many(self.x), np.full_like(self.x, 2))

    def test_takes_zeros_for_the_cotangent_of_integers(self):
        order = sj.target('order', rule='i j -> i j, i j', need_replication=['j'],
                          shapes=lambda x: [x, jax.ShapeDtypeStruct(x.shape, np.int32)],
                          vjp={'target': 'order_bwd', 'gradients': [0],
                               'arguments': ['cotangent 0', 'cotangent 1', 'result 1']})
        text = jax.jit(jax.grad(lambda x: order(x)[0].sum())).lower(self.x).as_text()
        self.assertIn('(tensor<8x16xf32>, tensor<8x16xi32>, tensor<8x16xi32>)', text)

    def test_in_a_dict_of_the_rule_is_as_outside_of_it(self):
        vjp = {'target': 'within_bwd', 'arguments': ARGUMENTS, 'gradients': [0, 1]}
        facts = {'rule': 'i j, j -> i j', 'batching': 'leading', 'vjp': vjp}
        within = sj.target('within', FORMS.multi, rule=facts)
        sj.target('within_bwd', FORMS.multi_bwd)
        got = ours(jax.grad(lambda x, w: (within(x, w)**2).sum(), (0, 1)))(
            placed(self.x, 'a', 'b'), placed(self.w, 'b'))
        wanted = jax.grad(lambda x, w: ((x * w)**2).sum(), (0, 1))(self.x, self.w)
        np.testing.assert_array_equal(got[0], wanted[0])
        np.testing.assert_array_equal(got[1], wanted[1])
        self.assertEqual(calls(jax.vmap(within, (0, None)), whole(3, 8, 16), self.w),
                         [('within', [3, 1])])
        python = sj.target('within', rule={**facts, 'vjp': lambda operands, results, ct: (
            ct * operands[1], None)})
        np.testing.assert_array_equal(jax.grad(lambda x, w: python(x, w).sum(), 1)(self.x, self.w),
                                      np.zeros_like(self.w))
        spread = sj.target('batched', rule={'batch_dims': 1}, shapes=lambda x: x)
        self.assertEqual(shardcall.targets()['batched'].rules, ('batch_dims',))
        self.assertEqual(spread.results(self.x).shape, self.x.shape)
        for option in ({'vjp': vjp}, {'batching': 'loop'}, {'need_replication': ['i']}):
            message = raised(self, 'E141', sj.target, 'within', **option,
                             rule={**facts, 'need_replication': ['j']})
            self.assertIn(f'{next(iter(option))} of "within" is given twice', message)

    def test_by_what_a_jax_program_cannot_call_is_refused(self):
        vjp = {'arguments': ['cotangent 0', 'operand 0'], 'gradients': [0]}
        path = os.path.join(FOLDER.name, 'vjp.hlo')
        for key, value in (('computation', path), ('backend_config', '{mode = "bwd"}')):
            spec = {**vjp, key: value, **({} if key == 'computation' else {'target': 'b_bwd'})}
            for options in ({'rule': 'i j -> i j', 'vjp': spec},
                            {'rule': {'rule': 'i j -> i j', 'vjp': spec}}):
                message = raised(self, 'E141', sj.target, 'b', **options)
                self.assertIn(f'the vjp of "b" has "{key}"', message)
        self.assertNotIn('b', shardcall.targets())

    def test_without_any_of_the_operands_that_it_is_of_is_zero(self):
        some = sj.target('some', FORMS.multi, rule=['i j -> i j', 'i j, j -> i j'], vjp={
            'target': 'some_bwd', 'arguments': ARGUMENTS, 'gradients': [1],
            'skip_absent_operands': True})
        for step in (jax.grad(lambda x: some(x).sum()), ours(jax.grad(lambda x: some(x).sum()))):
            np.testing.assert_array_equal(step(placed(self.x, 'a')), np.zeros_like(self.x))


class SourceLinesTest(unittest.TestCase):
    def test_an_error_names_the_line_of_the_call(self):
        shapes = {'shapes': lambda x: x}
        vjp = {'target': 'unruled_bwd', 'arguments': ['cotangent 0', 'operand 0'], 'gradients': [0]}
        plain = sj.target('unruled', **shapes)
        linear = sj.target('unruled', linear=True, **shapes)
        ruled = sj.target('ruled', rule='i j -> i j', vjp=vjp)
        ruled_linear = sj.target('ruled', rule='i j -> i j', vjp=vjp, linear=True)
        rules = {'ruled': 'i j -> i j'}  # from which no rule of unruled_bwd follows
        for step in (plain, lambda x: jax.jvp(linear, (x,), (x,))[1],
                     jax.grad(lambda x: ruled(x).sum()), jax.grad(lambda x: ruled_linear(x).sum()),
                     jax.vmap(jax.grad(lambda x: ruled(x[None]).sum()))):
            message = raised(self, 'E101', ours(step, rules=rules), placed(whole(8, 16), 'a', 'b'))
            self.assertRegex(message, 'at .*target_transforms_test.py')


class ForwardsTest(unittest.TestCase):
    def setUp(self):
        self.x = whole(8, 16)

    def test_what_jax_cannot_transpose_has_no_gradient(self):
        linear = sj.target('forwards', FORMS.multi, rule='i j -> i j', linear=True)
        kernel = sj.target('forwards', rule='i j -> i j',
                           jvp=lambda operands, results, tangents: linear(tangents[0]))
        for target in (linear, kernel):
            moved = jax.jvp(target, (self.x,), (self.x + 1,))[1]
            np.testing.assert_array_equal(moved, 2 * (self.x + 1))
            for step in (jax.grad(lambda x: target(x).sum()),
                         jax.vmap(jax.grad(lambda x: target(x[None]).sum())),
                         ours(jax.grad(lambda x: target(x).sum()))):
                message = raised(self, 'E118', step, placed(self.x, 'a'))
                self.assertIn('Fix: Give sj.target its vjp=', message)
        python = sj.target('forwards', rule='i j -> i j',
                           jvp=lambda operands, results, tangents: 2 * tangents[0])
        step = jax.grad(lambda x: (python(x)**2).sum())
        for got in (step(self.x), ours(step)(placed(self.x, 'a', 'b'))):
            np.testing.assert_array_equal(got, 8 * self.x)
        np.testing.assert_array_equal(jax.vmap(jax.grad(lambda x: (python(x[None])**2).sum()))(
            self.x), 8 * self.x)

    def test_a_call_with_an_effect_has_the_derivatives_that_it_is_given(self):
        facts = {'rule': 'i j -> i j', 'has_side_effect': True}
        linear = sj.target('effect', FORMS.multi, linear=True, **facts)
        both = sj.target('effect', jvp=lambda operands, results, tangents: 2 * tangents[0],
                         vjp=lambda operands, results, ct: (2 * ct,), **facts)
        none = sj.target('effect', **facts)
        for target in (linear, both):
            moved = ours(lambda x: jax.jvp(target, (x,), (x + 1,)))(placed(self.x, 'a'))
            np.testing.assert_array_equal(moved[0], 2 * self.x)
            np.testing.assert_array_equal(moved[1], 2 * (self.x + 1))
        np.testing.assert_array_equal(jax.grad(lambda x: both(x).sum())(self.x),
                                      np.full_like(self.x, 2))
        raised(self, 'E118', jax.jvp, none, (self.x,), (self.x,))
        for target in (linear, both, none):
            self.assertEqual(calls(lambda x: (target(x), x)[1], self.x), [('effect', [2])])
        observe = sj.target('observe', FORMS.observe, rule='b d ->')
        loss = jax.grad(lambda x: (observe(x), (x**2).sum())[1])
        self.assertIn('jax.lax.stop_gradient', raised(self, 'E118', loss, self.x))
        stopped = jax.grad(lambda x: (observe(jax.lax.stop_gradient(x)), (x**2).sum())[1])
        np.testing.assert_array_equal(stopped(self.x), 2 * self.x)
        self.assertEqual(calls(stopped, self.x), [('observe', [2])])


if __name__ == '__main__':
    unittest.main()
