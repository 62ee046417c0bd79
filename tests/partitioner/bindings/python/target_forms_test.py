#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The forms that a target may have under sj.target: several signatures, sizes from the call, no
results, derivatives forwards, layouts, aliases and states. Exit status 77 without JAX or a C++
compiler."""
import ctypes
import functools
import os
import sys
import tempfile
import types
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
RULES = ['i j -> i j', 'i j, j -> i j']
ours = functools.partial(sj.jit, strict=True)


def whole(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


def placed(x, *spec):
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


def raised(test, code, function, *args, **options):
    with test.assertRaises(shardcall.Error) as caught:
        function(*args, **options)
    test.assertEqual(caught.exception.code, code, str(caught.exception))
    test.assertTrue(caught.exception.fix)
    return str(caught.exception)


class SignaturesTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w = whole(8, 16), whole(16)
        self.multi = sj.target('multi', FORMS.multi, rule=RULES)

    def both(self, multi, x, w):
        return multi(x), multi(x, w)

    def test_each_call_has_the_rule_that_it_fits(self):
        step = ours(functools.partial(self.both, self.multi))
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        twice, weighed = step(x, w)
        np.testing.assert_array_equal(twice, 2 * self.x)
        np.testing.assert_array_equal(weighed, self.x * self.w)
        sj.expect(step, x, w, contract='bytes=0')
        self.assertTrue(sj.check(self.multi, self.x, self.w))
        self.assertTrue(sj.check(self.multi, self.x))
        self.assertEqual(shardcall.targets()['multi'].rules, tuple(sorted(RULES)))

    def test_entries_have_the_options_of_a_rule(self):
        rules = {'multi': ['i j -> i j', {'rule': 'i j, j -> i j', 'need_replication': ['j']}]}
        x, w = placed(self.x, None, 'b'), placed(self.w, 'b')
        for function, gathers in ((lambda x, w: self.multi(x), 0),
                                  (lambda x, w: self.multi(x, w), 2)):
            step = ours(function, rules=rules)
            self.assertEqual(sj.explain(step, x, w).count('all-gather'), gathers)
            np.testing.assert_array_equal(step(x, w), function(self.x, self.w))

    def test_types_and_attributes_choose(self):
        weigh = sj.target('weigh', LIBRARY.weigh, rule=[
            {'rule': 'i j, j -> i j', 'types': 'T, f32 -> T', 'when': {'times': 2},
             'need_replication': ['j']},
            {'rule': 'i j, j -> i j', 'types': 'T, f32 -> T', 'when': {'times': [0.5, 3.0]}},
            {'rule': 'i j, j -> i j', 'types': 's32, s32 -> s32', 'need_replication': ['i']}])
        x, w = placed(self.x, None, 'b'), placed(self.w, 'b')
        for times, gathers in ((2, 2), (0.5, 0), (3, 0)):
            step = ours(lambda x, w, t=times: weigh(x, w, times=np.float32(t)))
            self.assertEqual(sj.explain(step, x, w).count('all-gather'), gathers, times)
            np.testing.assert_array_equal(step(x, w), np.float32(times) * self.x * self.w)
        self.assertTrue(sj.check(weigh, self.x, self.w, times=np.float32(3)))
        self.assertIn('expected a program with a call', raised(self, 'E191', sj.check, weigh))
        message = raised(self, 'E111', lambda: weigh(self.x, self.w, times=np.float32(7)))
        self.assertIn('no rule of target "weigh" fits this call', message)
        self.assertIn('when {times = 0.5 or 3.0}', message)

    def test_rules_that_overlap_are_refused_and_change_nothing(self):
        message = raised(self, 'E105', sj.target, 'multi', rule=['i j -> i j', 'm n -> n m'])
        self.assertIn('tell them apart by `types` or by the attributes', message)
        raised(self, 'E105', sj.jit, lambda x: x,
               rules={'multi': ['... i -> ... i', '... j -> ... j']})
        raised(self, 'E141', sj.jit, lambda x: x, rules={'multi': [3]})
        raised(self, 'E141', sj.jit, lambda x: x, rules={'multi': 3})
        np.testing.assert_array_equal(self.multi(self.x), 2 * self.x)

    def test_vmap_goes_by_the_rule_of_the_call(self):
        multi = sj.target('multi', rule=['... j -> ... j', 'i j, j -> i j'])
        self.addCleanup(sj.target, 'multi', rule=RULES)
        x = np.stack([self.x, self.x + 1])
        one = jax.jit(jax.vmap(multi))
        np.testing.assert_array_equal(one(x), 2 * x)
        self.assertNotIn('while', one.lower(x).as_text())
        loop = jax.jit(jax.vmap(multi, (0, None)))
        np.testing.assert_array_equal(loop(x, self.w), x * self.w)
        self.assertIn('while', loop.lower(x, self.w).as_text())

    def test_gradients_have_a_rule_for_each_signature(self):
        backward = {'target': 'multi_bwd', 'gradients': [0, 1], 'skip_absent_operands': True,
                    'arguments': ['cotangent 0', 'operand 0', 'operand 1']}
        multi = sj.target('multi', rule=RULES, vjp=backward)
        self.addCleanup(sj.target, 'multi', rule=RULES)
        sj.target('multi_bwd', FORMS.multi_bwd)
        x, w = placed(self.x, 'a', 'b'), placed(self.w, 'b')
        step = ours(jax.grad(lambda x, w: (multi(x)**2).sum() + (multi(x, w)**2).sum(), (0, 1)))
        dx, dw = step(x, w)
        wanted = jax.grad(lambda x, w: (4 * x**2).sum() + ((x * w)**2).sum(), (0, 1))(self.x,
                                                                                      self.w)
        np.testing.assert_array_equal(dx, wanted[0])
        np.testing.assert_array_equal(dw, wanted[1])
        report = sj.explain(step, x, w)
        self.assertEqual((report.count(), report.count('all-reduce')), (1, 1))
        self.assertTrue(sj.check(multi, self.x, self.w, vjp=True))
        self.assertTrue(sj.check(multi, self.x, vjp=True))


class ShapesTest(unittest.TestCase):
    def test_a_size_follows_from_the_other_operand(self):
        grouped = sj.target('grouped', FORMS.grouped, rule='b (k g), b k -> b (k g)')
        x, w = whole(8, 24), whole(8, 4)
        wanted = (x.reshape(8, 4, 6) + w[..., None]).reshape(8, 24)
        self.assertEqual(grouped.results(x, w).shape, (8, 24))
        for spec in (('a', 'b'), ('a',), (None, 'b'), (None, 'a')):
            step = ours(grouped)
            given = placed(x, *spec), placed(w, *spec)
            np.testing.assert_array_equal(step(*given), wanted)
            sj.expect(step, *given, contract='bytes=0')
        self.assertTrue(sj.check(grouped, x, w))
        self.assertIn('E111', raised(self, 'E111', grouped, x, whole(8, 5)))

    def test_results_have_the_type_of_the_first_float(self):
        look = sj.target('look', FORMS.look, rule='b, v d -> b d', need_replication=['v'])
        ids, table = np.array([3, 0, 2, 2, 1, 3, 0, 1], np.int32), whole(4, 6)
        self.assertEqual(look.results(ids, table).dtype, np.float32)
        made = ours(look)(placed(ids, 'a'), placed(table, None, 'b'))
        np.testing.assert_array_equal(made, table[ids])
        mixed = sj.target('mixed', rule='b, v d -> b d', need_replication=['v'])
        self.assertIn('none of them is a float', raised(
            self, 'E112', mixed.results, ids, ids.reshape(2, 4).astype(np.int8)))

    def test_a_call_without_results_runs_on_each_shard(self):
        observe = sj.target('observe', FORMS.observe, rule='b d ->')
        FORMS.observed.restype = FORMS.observations.restype = ctypes.c_int64
        x = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
        self.assertEqual(observe.results(x), [])

        def f(x):
            self.assertEqual(observe(x), [])
            return x + 1

        for jit, spec, calls in ((jax.jit, None, 1), (ours, ('a', 'b'), 8), (ours, (None, 'b'), 8)):
            FORMS.observed(), FORMS.observations()
            made = jax.block_until_ready(jit(f)(x if spec is None else placed(x, *spec)))
            jax.effects_barrier()
            np.testing.assert_array_equal(made, x + 1)
            self.assertEqual(FORMS.observations(), calls)
            if spec != (None, 'b'):
                self.assertEqual(FORMS.observed(), int(x.sum()))
        self.assertEqual(ours(f).lower(placed(x, 'a')).compile().as_text().count('all-gather'), 0)


class DerivativesTest(unittest.TestCase):
    def setUp(self):
        self.x, self.w, self.t = whole(8, 16), whole(16), whole(8, 16) + 1

    def held(self, function, wanted, *args):
        """A function of x against one of jnp, forwards, backwards, under vmap and sj.jit."""
        x, t = self.x, self.t
        for got, want in zip(jax.jvp(function, (x,), (t,)), jax.jvp(wanted, (x,), (t,))):
            np.testing.assert_array_equal(got, want)
        def grad(f):
            return jax.grad(lambda x: (f(x) * t).sum())
        np.testing.assert_array_equal(grad(function)(x), grad(wanted)(x))
        np.testing.assert_array_equal(ours(grad(function))(placed(x, 'a', 'b')), grad(wanted)(x))
        pushed = ours(lambda x, t: jax.jvp(function, (x,), (t,))[1])
        np.testing.assert_array_equal(pushed(placed(x, 'a', 'b'), placed(t, 'a', 'b')),
                                      jax.jvp(wanted, (x,), (t,))[1])
        many = np.stack([x, x + 1])
        np.testing.assert_array_equal(jax.vmap(grad(function))(many), jax.vmap(grad(wanted))(many))
        second = jax.jvp(grad(function), (x,), (t,))[1]
        np.testing.assert_array_equal(second, jax.jvp(grad(wanted), (x,), (t,))[1])
        np.testing.assert_array_equal(
            jax.jacfwd(lambda a: function(x * a).sum())(2.), jax.jacfwd(lambda a: wanted(x * a).sum())(2.))

    def test_a_linear_target_is_its_own_derivative(self):
        def doubled(**facts):
            return sj.target('multi', FORMS.multi, rule='i j -> i j', **facts)

        plain = doubled(linear=True)
        np.testing.assert_array_equal(jax.jvp(plain, (self.x,), (self.t,))[1], 2 * self.t)
        twice = doubled(linear=True, vjp=lambda operands, results, ct: (twice(ct),))
        self.held(twice, lambda x: 2 * x)

    def test_a_jvp_goes_with_a_vjp(self):
        two = np.float32(2)
        rule = {'rule': 'm d, d -> m d'}
        weigh = sj.target('weigh', LIBRARY.weigh, rule=rule, jvp=lambda operands, results, tangents,
                          times: weigh(tangents[0], operands[1], times=times)
                          + weigh(operands[0], tangents[1], times=times))
        step = functools.partial(weigh, times=two)
        moved = jax.jvp(step, (self.x, self.w), (self.t, self.w + 1))[1]
        np.testing.assert_array_equal(moved, 2 * (self.t * self.w + self.x * (self.w + 1)))
        both = sj.target(
            'weigh', rule=rule,
            jvp=lambda operands, results, tangents, times: 2 * (
                tangents[0] * operands[1] + operands[0] * tangents[1]),
            vjp=lambda operands, results, ct, times: (
                2 * ct * operands[1], 2 * (ct * operands[0]).sum(0)))
        self.held(lambda x: both(x, self.w, times=two), lambda x: 2 * x * self.w)
        self.held(lambda x: both(x, x[0], times=two), lambda x: 2 * x * x[0])

    def test_integers_have_no_derivative(self):
        look = sj.target('look', FORMS.look, rule='b, v d -> b d', need_replication=['v'],
                         jvp=lambda operands, results, tangents: look(operands[0], tangents[1]))
        ids, table = np.array([1, 0, 1], np.int32), whole(2, 4)
        made = jax.jvp(lambda t: look(ids, t), (table,), (table + 1,))[1]
        np.testing.assert_array_equal(made, (table + 1)[ids])

    def test_calls_without_results_have_no_tangent(self):
        """The kernel observes the operand once, and no tangent."""
        FORMS.observed.restype = FORMS.observations.restype = ctypes.c_int64
        for options in (dict(linear=True), dict(jvp=lambda operands, results, tangents: []),
                        dict(vjp=lambda operands, results, cotangents: (None,))):
            observe = sj.target('observe', FORMS.observe, rule='b d ->', **options)

            def loss(x):
                observe(3 * x)
                return (2 * x).sum()

            x = whole(8, 16) + 4
            for gradient, calls in ((jax.grad(loss), 1), (jax.jit(jax.grad(loss)), 1),
                                    (lambda x: ours(jax.grad(loss))(placed(x, 'a', 'b')), 8)):
                FORMS.observed(), FORMS.observations()
                np.testing.assert_array_equal(gradient(x), np.full_like(x, 2))
                jax.effects_barrier()
                self.assertEqual((FORMS.observations(), FORMS.observed()), (calls, 3 * x.sum()))

    def test_what_is_no_derivative_is_refused(self):
        for wrong in (dict(jvp='no'), dict(linear=True, jvp=lambda operands, results, t: t[0]),
                      dict(vjp='no')):
            raised(self, 'E141', sj.target, 'refused', FORMS.observe, rule='b d ->', **wrong)
        self.assertNotIn('refused', shardcall.targets())

    def test_a_vjp_that_gives_no_cotangent_for_each_operand_is_refused(self):
        for wrong, said in ((None, 'a NoneType'), ((), '0 cotangents'), ((1, 2), '2 cotangents')):
            made = sj.target('multi', FORMS.multi, rule='i j -> i j',
                             vjp=lambda operands, results, ct, wrong=wrong: wrong)
            message = raised(self, 'E118', jax.grad(lambda x: made(x).sum()), self.x)
            self.assertIn(f'the vjp of "multi" gives {said}: expected a tuple of 1', message)

    def test_a_target_without_a_derivative_says_so(self):
        none = sj.target('multi', FORMS.multi, rule='i j -> i j')
        for derivative in (lambda: jax.grad(lambda x: none(x).sum())(self.x),
                           lambda: jax.jvp(none, (self.x,), (self.t,))):
            self.assertIn('Give sj.target its vjp= or jvp=', raised(self, 'E118', derivative))


PADDED = """HloModule padded, num_partitions=2
ENTRY main {
  x = f32[4,5] parameter(0), sharding={devices=[1,2]<=[2]}
  ROOT m = f32[4] custom-call(x), custom_call_target="row_max"
}"""


class RuleValuesTest(unittest.TestCase):
    """What the values of a rule in Python may be."""

    def test_a_pad_may_be_an_infinity_or_nan(self):
        for pad, text in ((float('-inf'), '-inf'), (np.float32('inf'), 'inf'), (np.nan, 'nan'),
                          ('-inf', '-inf'), (np.float32(0.5), '0.5')):
            rule = {'rule': 'i k -> i', 'reduction': {'k': 'max'}, 'pad': {'k': pad}}
            for rules in (rule, [rule]):
                program = shardcall.partition(PADDED, rules={'row_max': rules})
                self.assertIn(f'constant({text})', program.text)
        padded = {'target': 'row_max_bwd', 'arguments': ['cotangent 0', 'operand 0'],
                  'gradients': [0], 'pad': {'k': float('-inf')}}
        sj.target('row_max', rule={**rule, 'vjp': padded})
        sj.target('row_max', rule=rule, vjp=padded)

    def test_other_values_that_json_has_not_are_refused(self):
        circular = {'rule': 'i -> i'}
        circular['when'] = circular
        for rule in ({'rule': 'i -> i', 'when': {'a': float('nan')}}, circular,
                     {'rule': 'i -> i', 'when': {'a': np.float64('inf')}},
                     {'rule': 'i -> i', 'when': {'a': 1j}}, {'rule': 'i -> i', 'when': {'a': {1}}},
                     {'rule': 'i -> i', 'when': {'a': np.complex64(1)}}):
            for rules in (rule, [rule]):
                message = raised(self, 'E141', shardcall.targets, rules={'valued': rules})
                self.assertIn("the rule of 'valued' has a value that JSON does not", message)
            raised(self, 'E141', sj.target, 'valued', rule=rule)
        self.assertNotIn('valued', shardcall.targets())

    def test_scalars_of_numpy_are_numbers(self):
        f32, bf16 = np.float32, jnp.dtype('bfloat16').type
        weigh = sj.target('weigh', LIBRARY.weigh, rule=[
            {'rule': 'i j, j -> i j', 'when': {'times': [f32(0.1), bf16(0.5), np.int8(4)]}},
            {'rule': 'i j, j -> i j', 'when': {'times': np.int64(3)}, 'need_replication': ['j']}])
        x, w = placed(whole(8, 16), None, 'b'), placed(whole(16), 'b')
        for times, gathers in ((0.1, 0), (0.5, 0), (4, 0), (3, 2)):
            step = ours(lambda x, w, t=times: weigh(x, w, times=np.float32(t)))
            self.assertEqual(sj.explain(step, x, w).count('all-gather'), gathers, times)
        self.assertEqual(
            shardcall.targets(rules={'valued': {'batch_dims': np.int64(1)}})['valued'].rules,
            ('batch_dims',))

    def test_a_rule_is_of_the_target_that_it_is_given_to(self):
        for rule in ({'name': 'other', 'rule': 'i -> i'}, {'name': 3, 'rule': 'i -> i'}):
            message = raised(self, 'E141', shardcall.targets, rules={'named': rule})
            self.assertIn("the rule of 'named' has another name", message)
            raised(self, 'E141', sj.target, 'named', rule=rule)
        rules = {'named': types.MappingProxyType({'name': 'named', 'rule': 'i -> i'})}
        self.assertEqual(shardcall.targets(rules=rules)['named'].rules, ('i -> i',))
        self.assertNotIn('named', shardcall.targets())

    def test_errors_call_them_as_python_does(self):
        rules = {'twice': ['i j -> i j', 'm n -> n m']}
        message = raised(self, 'E105', shardcall.targets, rules=rules)
        self.assertIn('target "twice" (rules=)', message)
        self.assertNotIn('manifest', message)
        found = shardcall.targets(rules={'once': 'i -> i'})['once']
        self.assertEqual(found.sources, ('rules=',))


class FormsTest(unittest.TestCase):
    def test_a_kernel_in_place_has_its_alias(self):
        x = whole(8, 16)
        increment = sj.target('increment', LIBRARY.increment, rule='... -> ...',
                              input_output_aliases={0: 0})
        np.testing.assert_array_equal(jax.jit(increment)(x), x + 1)
        np.testing.assert_array_equal(ours(increment)(placed(x, 'a', 'b')), x + 1)
        np.testing.assert_array_equal(jax.vmap(increment)(x), x + 1)

    def test_layouts_are_those_of_the_kernel(self):
        x = whole(4, 6)
        number = sj.target('number', FORMS.number, rule='... i j -> ... i j',
                           need_replication=['i', 'j'], input_layouts=[(1, 0)],
                           output_layouts=(1, 0))
        wanted = x + np.arange(24, dtype=np.float32).reshape(6, 4).T
        np.testing.assert_array_equal(jax.jit(number)(x), wanted)
        np.testing.assert_array_equal(ours(number)(placed(x, 'a')), wanted)
        many = np.stack([x, 2 * x, 3 * x, 4 * x])
        wanted = many + (wanted - x)
        np.testing.assert_array_equal(jax.jit(jax.vmap(number))(many), wanted)
        self.assertNotIn('while', jax.jit(jax.vmap(number)).lower(many).as_text())
        np.testing.assert_array_equal(ours(jax.vmap(number))(placed(many, 'a')), wanted)

    def test_layouts_are_of_any_integers(self):
        x = whole(3, 4, 6)
        order = tuple(np.arange(2)[::-1])
        for one in (order, list(order), np.arange(2)):
            number = sj.target('number', FORMS.number, rule='... i j -> ... i j',
                               need_replication=['i', 'j'], input_layouts=[one],
                               output_layouts=one)
            same = sj.target('number', rule='... i j -> ... i j', need_replication=['i', 'j'],
                             input_layouts=[list(map(int, one))],
                             output_layouts=tuple(map(int, one)))
            for function in (lambda f: f(x[0]), lambda f: jax.vmap(f)(x)):
                np.testing.assert_array_equal(function(number), function(same))
            self.assertNotIn('while', jax.jit(jax.vmap(number)).lower(x).as_text())

    def test_a_state_whose_type_is_registered_with_jax_is_found(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p,
                                                       ctypes.c_void_p]

        def pointer(function):
            function.restype = ctypes.c_void_p
            return new(function(), None, None)

        jax.ffi.register_ffi_type('Factor', {'type_id': pointer(FORMS.factor_id),
                                             'type_info': pointer(FORMS.factor_info)})
        scale = sj.target('scale', {'instantiate': FORMS.make_factor,
                                    'execute': FORMS.use_factor}, rule='... -> ...')
        x, three = whole(8, 16), np.float32(3)
        step = functools.partial(scale, times=three)
        np.testing.assert_array_equal(ours(step)(placed(x, 'a', 'b')), 3 * x)
        self.assertTrue(sj.check(scale, x, times=three))
        program = shardcall.partition(jax.jit(step, in_shardings=NamedSharding(MESH, P('a'))).lower(x))
        np.testing.assert_array_equal(program.run([x])[0], 3 * x)


if __name__ == '__main__':
    unittest.main()
