#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shardcall.xla_client with jaxlib, where that is there, and again without it.

  xla_client_test.py [--hidden]        --hidden: jaxlib and JAX cannot be imported
"""
import ctypes
import os
import subprocess
import sys
import traceback
import unittest

HIDDEN = '--hidden' in sys.argv


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('jax', 'jaxlib'):
            raise ImportError(f'{name} is hidden')
        return None


if HIDDEN:
    sys.argv.remove('--hidden')
    sys.meta_path.insert(0, Hidden())
try:
    import numpy as np
    import shardcall
    from shardcall import xla_client
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

HloSharding = xla_client.HloSharding
Shape = xla_client.Shape


def program(target, *, sharding='{devices=[2,1]<=[2]}', version='API_VERSION_STATUS_RETURNING',
            rest='', consumer='{devices=[2,1]<=[2]}'):
    return f"""HloModule call, num_partitions=2

ENTRY main {{
  x = f32[4,6] parameter(0), sharding={sharding}
  y = f32[4,6] custom-call(x), custom_call_target="{target}", backend_config="how", api_version={version}{rest}
  ROOT z = f32[4,6] add(y, y), sharding={consumer}
}}
"""


X = np.arange(24, dtype=np.float32).reshape(4, 6)


def rows_only(sharding):
    """The sharding with its second dimension whole; whole where it is not of two."""
    if sharding is None or not sharding.is_tiled():
        return HloSharding.replicate()
    return HloSharding.from_string('{devices=[2,1]<=[2]}')


class Triple:
    """Multiplies by three, row by row, and writes down what it is asked."""

    def __init__(self):
        self.asked = []

    def partition(self, shapes, shardings, result_shape, result_sharding, config):
        self.asked.append(('partition', shapes, shardings, result_shape, result_sharding, config))
        sharding = rows_only(shardings[0])
        rows, columns = sharding.tile(shapes[0]).dimensions()
        module = f"""HloModule local
ENTRY e {{
  p = f32[{rows},{columns}] parameter(0)
  three = f32[] constant(3)
  t = f32[{rows},{columns}] broadcast(three), dimensions={{}}
  ROOT r = f32[{rows},{columns}] multiply(p, t)
}}"""
        return module.encode(), [sharding], sharding

    def infer(self, shapes, shardings, result_shape, config):
        self.asked.append(('infer', shapes, shardings, result_shape, config))
        return rows_only(shardings[0])

    def propagate(self, sharding, shape, config):
        self.asked.append(('propagate', sharding, shape, config))
        return rows_only(sharding)

    def register(self, name, **replaced):
        xla_client.register_custom_call_partitioner(
            name, replaced.get('propagate', self.propagate),
            replaced.get('partition', self.partition), replaced.get('infer', self.infer))


class PartitionerTest(unittest.TestCase):
    def fails(self, name, **replaced):
        Triple().register(name, **replaced)
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(program(name))
        self.assertTrue(raised.exception.fix, raised.exception)
        return raised.exception.code

    def test_a_call_is_partitioned_by_its_functions(self):
        triple = Triple()
        triple.register('triple')
        made = shardcall.partition(program('triple'))
        self.assertEqual(made.report.count(), 0)
        self.assertIn('f32[2,6]', made.text)
        self.assertNotIn('custom-call', made.text)
        np.testing.assert_array_equal(made.run([X])[0], 6 * X)
        _, shapes, shardings, result_shape, result_sharding, config = next(
            a for a in triple.asked if a[0] == 'partition')
        self.assertEqual([type(s) for s in (*shapes, result_shape)], [Shape, Shape])
        self.assertEqual([type(s) for s in (*shardings, result_sharding)], [HloSharding] * 2)
        self.assertEqual(shapes[0].dimensions(), (4, 6))
        self.assertEqual(shapes[0].numpy_dtype(), np.float32)
        self.assertEqual(shardings[0], HloSharding.from_string('{devices=[2,1]<=[2]}'))
        self.assertEqual(config, b'how')

    def test_what_its_operands_must_be_is_sent(self):
        Triple().register('triple_rows')
        made = shardcall.partition(program('triple_rows', sharding='{devices=[1,2]<=[2]}'))
        self.assertGreater(made.report.count(), 0)
        np.testing.assert_array_equal(made.run([X])[0], 6 * X)

    def test_propagation_asks_both_ways(self):
        triple = Triple()
        triple.register('triple_both')
        shardcall.partition(program('triple_both'))
        self.assertIn('infer', [a[0] for a in triple.asked])
        back = Triple()
        back.register('triple_back')
        shardcall.partition(program('triple_back', sharding='{replicated}'))
        self.assertIn('propagate', [a[0] for a in back.asked])

    def test_the_last_registration_of_a_name_counts(self):
        Triple().register('twice')
        first = shardcall.run(program('twice'), [X])
        again = Triple()
        again.register('twice')
        np.testing.assert_array_equal(shardcall.run(program('twice'), [X])[0], first[0])
        self.assertTrue(again.asked)

    def test_a_rule_that_is_given_with_a_program_goes_before(self):
        triple = Triple()
        triple.register('ruled')
        made = shardcall.partition(program('ruled'), rules={'ruled': 'a b -> a b'})
        self.assertEqual(triple.asked, [])
        self.assertIn('custom-call', made.text)

    def test_functions_that_raise_are_errors_of_the_program(self):
        def raises(*args):
            raise KeyError('no such thing')

        self.assertEqual(self.fails('raises', partition=raises), 'E121')
        self.assertEqual(self.fails('raises', infer=raises), 'E121')
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(program('raises'))
        self.assertIn('KeyError', str(raised.exception))
        self.assertIsInstance(raised.exception.__cause__, KeyError)
        self.assertIn('raises', ''.join(traceback.format_exception(raised.exception.__cause__)))
        # An error that has nothing to do with it does not have it.
        with self.assertRaises(shardcall.Error) as other:
            shardcall.partition(program('raises').replace('ENTRY', 'ENTR'))
        self.assertIsNone(other.exception.__cause__)
        # Backwards nothing follows, and the other functions still answer.
        Triple().register('raises', propagate=raises)
        np.testing.assert_array_equal(shardcall.run(program('raises'), [X])[0], 6 * X)

    def test_an_interrupt_within_one_ends_the_call(self):
        asked = []

        def interrupted(*args):
            asked.append(args)
            if len(asked) == 1:
                raise KeyboardInterrupt
            return Triple().partition(*args)

        Triple().register('interrupted', partition=interrupted)
        with self.assertRaises(KeyboardInterrupt):
            shardcall.partition(program('interrupted'))
        np.testing.assert_array_equal(shardcall.run(program('interrupted'), [X])[0], 6 * X)

    def test_answers_that_are_none_are_errors_of_the_program(self):
        half = HloSharding.from_string('{devices=[2,1]<=[2]}')
        whole = HloSharding.replicate()
        module = Triple().partition([Shape('f32[4,6]')], [half], None, half, b'')[0]
        answers = {
            'None': None, 'a number': 3, 'two': (module, [half]), 'no module': (None, [half], half),
            'a number as module': (7, [half], half), 'no list': (module, None, half),
            'too few': (module, [], half), 'too many': (module, [half, half], half),
            'text': (module, ['{replicated}'], half), 'None as result': (module, [half], None),
            'None as operand': (module, [None], half)}
        for what, answer in answers.items():
            with self.subTest(what):
                self.assertEqual(self.fails('nonsense', partition=lambda *a: answer), 'E120')
        self.assertEqual(self.fails('nonsense', infer=lambda *a: 'x'), 'E120')
        self.assertEqual(self.fails('nonsense', partition=None), 'E120')
        for what, answer in {
                'no program': (b'nonsense', [half], half), 'nothing': (b'', [half], half),
                'bytecode cut off': (b'ML\xefR\x01', [half], half),
                'another rank': (module, [HloSharding.from_string('{devices=[2]<=[2]}')], half),
                'other devices': (module, [HloSharding.from_string('{devices=[4,1]<=[4]}')], half),
                'another shard': (module, [whole], whole)}.items():
            with self.subTest(what):
                self.assertTrue(self.fails('nonsense', partition=lambda *a: answer))
        Triple().register('nonsense')  # and all is well again
        np.testing.assert_array_equal(shardcall.run(program('nonsense'), [X])[0], 6 * X)

    def test_a_target_with_a_shipped_rule_is_refused(self):
        with self.assertRaises(shardcall.Error) as raised:
            Triple().register('rms_norm')
        self.assertEqual(raised.exception.code, 'E105')
        with self.assertRaises(shardcall.Error):
            Triple().register('')
        with self.assertRaises(shardcall.Error):
            Triple().register(3)

    def test_batch_dims_are_those_of_the_call(self):
        xla_client.register_custom_call_as_batch_partitionable('batched')
        made = shardcall.partition(program(
            'batched', rest=', frontend_attributes={num_batch_dims="1"}'))
        self.assertEqual(made.report.count(), 0)
        self.assertIn('f32[2,6]{1,0} custom-call', made.text)
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(program('batched'))
        self.assertEqual(raised.exception.code, 'E101')

    def test_a_c_api_is_a_capsule(self):
        with self.assertRaises(shardcall.Error) as raised:
            xla_client.register_custom_call_as_batch_partitionable('with_plugin', c_api=3)
        self.assertEqual(raised.exception.code, 'E144')
        triple = Triple()
        xla_client.register_custom_call_partitioner(
            'with_ours', triple.propagate, triple.partition, triple.infer,
            c_api=shardcall._core.framework_api())
        np.testing.assert_array_equal(shardcall.run(program('with_ours'), [X])[0], 6 * X)


UNTYPED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_float),
                           ctypes.POINTER(ctypes.POINTER(ctypes.c_float)), ctypes.c_char_p,
                           ctypes.c_size_t, ctypes.c_void_p)


def capsule(function):
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(function, ctypes.c_void_p), None, None)


@UNTYPED
def negate(out, operands, config, size, status):
    for k in range(12 if config == b'how' else 0):
        out[k] = -operands[0][k]


@UNTYPED
def another(out, operands, config, size, status):
    pass


class TargetTest(unittest.TestCase):
    def code_of(self, *args, **kwargs):
        with self.assertRaises(shardcall.Error) as raised:
            xla_client.register_custom_call_target(*args, **kwargs)
        return raised.exception.code

    def test_a_function_runs(self):
        xla_client.register_custom_call_target('negate', capsule(negate))
        y, = shardcall.run(program('negate', version='API_VERSION_STATUS_RETURNING_UNIFIED'), [X],
                           rules={'negate': 'a b -> a b'})
        np.testing.assert_array_equal(y, -2 * X)
        self.assertIn('Host', shardcall.targets()['negate'].platforms)

    def test_functions_are_listed_by_platform(self):
        xla_client.register_custom_call_target('listed', capsule(negate), platform='cpu')
        for platform in ('cpu', 'Host'):
            self.assertIn('listed', xla_client.custom_call_targets(platform))
        self.assertNotIn('listed', xla_client.custom_call_targets('CUDA'))
        self.assertEqual(xla_client.custom_call_targets('no such platform'), {})
        xla_client.register_custom_call_target('on_gpu', capsule(negate), 'gpu')
        for platform in ('gpu', 'cuda', 'CUDA'):
            self.assertIn('on_gpu', xla_client.custom_call_targets(platform))

    @unittest.skipIf(HIDDEN, 'XLA is hidden')
    def test_xla_gets_the_names_of_platforms_that_it_knows(self):
        from shardcall.jax import compat
        for platform in ('cuda', 'gpu', 'CUDA', 'Cuda'):
            xla_client.register_custom_call_target(f'on_{platform}_', capsule(negate), platform)
            self.assertIn(f'on_{platform}_', [name for name, _ in compat.waiting_kernels('CUDA')])

    def test_registering_twice(self):
        xla_client.register_custom_call_target('again', capsule(negate))
        xla_client.register_custom_call_target('again', capsule(negate))
        self.assertEqual(self.code_of('again', capsule(another)), 'E141')

    def test_misuse(self):
        function = capsule(negate)
        self.assertEqual(self.code_of('misused', 3), 'E144')
        self.assertEqual(self.code_of('misused', None), 'E144')
        self.assertEqual(self.code_of('misused', {'run': function}, api_version=1), 'E144')
        self.assertEqual(self.code_of('misused', {}, api_version=1), 'E144')
        self.assertEqual(self.code_of('misused', {'execute': function}), 'E144')
        self.assertEqual(self.code_of('misused', function, api_version=2), 'E147')
        self.assertEqual(self.code_of(
            'misused', function,
            traits=xla_client.CustomCallTargetTraits.COMMAND_BUFFER_COMPATIBLE), 'E147')
        self.assertEqual(self.code_of('', function), 'E141')
        self.assertEqual(self.code_of(3, function), 'E141')
        self.assertEqual(self.code_of('misused', function, ''), 'E141')
        self.assertEqual(int(xla_client.CustomCallTargetTraits.DEFAULT), 0)

    def test_a_handler_is_given_all_of_its_platform(self):
        seen, ignored = [], []
        xla_client.register_custom_call_target('early', capsule(negate), 'a_platform')
        xla_client.register_custom_call_handler(
            'a_platform', lambda name, fn, platform, version, traits:
            seen.append((name, platform, version, int(traits))))
        self.assertEqual(seen, [('early', 'a_platform', 0, 0)])
        xla_client.register_custom_call_target('late', capsule(negate), 'a_platform')
        xla_client.register_custom_call_target('elsewhere', capsule(negate), 'b_platform')
        self.assertEqual([s[0] for s in seen], ['early', 'late'])
        xla_client.register_custom_call_handler('a_platform', lambda *a: ignored.append(a))
        self.assertEqual(ignored, [])

    def test_types_get_a_number_and_a_handler(self):
        number, seen = ctypes.c_int64(0), []
        xla_client.register_custom_type('a_type', capsule(ctypes.byref(number)), 'a_platform')
        self.assertNotEqual(number.value, 0)
        xla_client.register_custom_type_handler('a_platform', lambda *a: seen.append(a[0]))
        other = ctypes.c_int64(0)
        xla_client.register_custom_type_id(
            'b_type', {'type_id': capsule(ctypes.byref(other))}, 'a_platform')
        self.assertNotIn(other.value, (0, number.value))
        self.assertEqual(seen, ['a_type', 'b_type'])
        taken = ctypes.c_int64(number.value)
        with self.assertRaises(shardcall.Error) as raised:
            xla_client.register_custom_type('c_type', capsule(ctypes.byref(taken)), 'a_platform')
        self.assertEqual(raised.exception.code, 'E141')
        for wrong in (3, None, {}):
            with self.assertRaises(shardcall.Error) as raised:
                xla_client.register_custom_type('d_type', wrong, 'a_platform')
            self.assertEqual(raised.exception.code, 'E144')


class InspectTest(unittest.TestCase):
    def inspected(self, handler):
        config = xla_client.encode_inspect_sharding_callback(handler)
        self.assertEqual(len(config), 16)
        escaped = ''.join(f'\\{b:03o}' for b in config)
        return shardcall.partition(f"""HloModule inspect, num_partitions=2

ENTRY main {{
  x = f32[4,6] parameter(0), sharding={{devices=[2,1]<=[2]}}
  i = () custom-call(x), custom_call_target="InspectSharding", custom_call_has_side_effect=true, backend_config="{escaped}"
  ROOT z = f32[4,6] add(x, x), sharding={{devices=[2,1]<=[2]}}
}}
""")

    def test_a_callback_is_told_the_sharding(self):
        seen = []
        self.assertNotIn('InspectSharding', self.inspected(seen.append).text)
        self.assertEqual(seen, [HloSharding.from_string('{devices=[2,1]<=[2]}')])
        self.assertIsInstance(seen[0], HloSharding)

    def test_what_it_raises_is_an_error(self):
        with self.assertRaises(shardcall.Error) as raised:
            self.inspected(lambda s: 1 // 0)
        self.assertEqual(raised.exception.code, 'E121')
        self.assertIn('ZeroDivisionError', str(raised.exception))
        self.assertIsInstance(raised.exception.__cause__, ZeroDivisionError)
        with self.assertRaises(shardcall.Error):
            xla_client.encode_inspect_sharding_callback(3)


@unittest.skipIf(HIDDEN, 'runs this')
class WithoutJaxlibTest(unittest.TestCase):
    def test_all_of_this_holds_without_jaxlib(self):
        done = subprocess.run([sys.executable, __file__, '--hidden'], capture_output=True,
                              text=True, env=os.environ, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == '__main__':
    unittest.main()
