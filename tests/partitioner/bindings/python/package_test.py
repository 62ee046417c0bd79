#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package shardcall without JAX."""
import importlib
import importlib.util
import inspect
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
import types
import typing
import unittest

try:
    import numpy as np
    import shardcall
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

DATA = pathlib.Path(__file__).parents[3] / 'data' / 'hlo'
# x y^T: rows over two devices, so that nothing is sent.
ROWS = """HloModule rows, num_partitions=2

ENTRY main {
  x = f32[4,3] parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[5,3] parameter(1), sharding={replicated}
  ROOT z = f32[4,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}, sharding={devices=[2,1]<=[2]}
}
"""
# A sum over what is sharded.
SUMS = """HloModule sums, num_partitions=2

ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[1,2]<=[2]}
  y = f32[5,6] parameter(1), sharding={devices=[1,2]<=[2]}
  ROOT z = f32[4,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}, sharding={replicated}
}
"""
CALL = """HloModule call, num_partitions=2

ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT z = f32[4,6] custom-call(x), custom_call_target="mine", sharding={devices=[2,1]<=[2]}
}
"""


class PackageTest(unittest.TestCase):
    def code_of(self, function, *args, **kwargs):
        with self.assertRaises(shardcall.Error) as raised:
            function(*args, **kwargs)
        return raised.exception.code

    def test_a_partitioned_program_computes_what_the_whole_one_does(self):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        y = np.arange(15, dtype=np.float32).reshape(5, 3)
        program = shardcall.partition(ROWS)
        self.assertEqual(program.num_partitions, 2)
        self.assertIn('f32[2,3]', program.text)
        z, = program.run([x, y])
        np.testing.assert_array_equal(z, x @ y.T)
        self.assertEqual(z.dtype, np.float32)
        # Lists have the type of their parameter.
        z, = shardcall.run(ROWS, [x.tolist(), y.tolist()])
        np.testing.assert_array_equal(z, x @ y.T)

    def test_a_report_counts_collectives_and_bytes(self):
        self.assertEqual(shardcall.explain(ROWS).count(), 0)
        report = shardcall.explain(SUMS)
        self.assertEqual(report.count('all-reduce'), 1)
        self.assertEqual(report.count('all-gather'), 0)
        self.assertEqual(report.total_bytes, 80)  # 20 numbers, half of them twice
        self.assertEqual([c['opcode'] for c in report.collectives], ['all-reduce'])
        self.assertEqual(report.fallbacks, [])
        self.assertIn('all-reduce', str(report))
        self.assertIn('<table', report.to_html())
        self.assertTrue(report._repr_html_().startswith('<iframe'))
        self.assertNotIn('<table', report._repr_html_())  # within an attribute
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, 'page.html')
            page.touch(0o640)
            report.save(page)
            self.assertEqual(report.to_html(), page.read_text(encoding='utf-8'))
            self.assertEqual(0o640, page.stat().st_mode & 0o777)
            self.assertEqual(self.code_of(report.save, page / 'inside'), 'E061')
        report.expect('all-gather=0, bytes<=80')
        self.assertEqual(self.code_of(report.expect, 'all-reduce=0'), 'E221')
        self.assertEqual(self.code_of(report.expect, 'nonsense'), 'E220')

    def test_programs_come_in_every_form(self):
        made = shardcall.partition(ROWS)
        self.assertEqual(shardcall.partition(ROWS.encode()).text, made.text)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'rows.hlo'
            path.write_text(ROWS, encoding='utf-8')
            self.assertEqual(shardcall.partition(path).text, made.text)
        # The per-device module, as binary, for one device each.
        again = shardcall.partition(made.serialize(), num_partitions=2)
        self.assertEqual(again.num_partitions, 2)
        self.assertEqual(self.code_of(shardcall.partition, pathlib.Path('/no/such/file')), 'E060')
        self.assertEqual(self.code_of(shardcall.partition, 3), 'E060')

    def test_a_file_that_is_too_large_is_not_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'rows.hlo'
            path.write_text(ROWS, encoding='utf-8')
            self.assertEqual(shardcall.partition(path, max_input=len(ROWS)).num_partitions, 2)
            for function in (shardcall.partition, shardcall.propagate, shardcall.explain):
                self.assertEqual(self.code_of(function, path, max_input=len(ROWS) - 1), 'E064')
            with open(path, 'wb') as f:
                f.truncate(100 << 30)  # sparse: reading it would fill the memory
            self.assertEqual(self.code_of(shardcall.partition, path), 'E064')
        self.assertEqual(self.code_of(shardcall.partition, pathlib.Path('/dev/zero'),
                                      max_input=1 << 20), 'E064')

    def test_a_path_as_text_is_told_from_a_program(self):
        for text in ('step.hlo', str(DATA)):
            with self.assertRaises(shardcall.Error) as raised:
                shardcall.partition(text)
            self.assertEqual(raised.exception.code, 'E060')
            self.assertIn(f'pathlib.Path({text!r})', raised.exception.fix)

    def test_options_are_looked_at(self):
        for options in ({'num_partitions': 'x'}, {'num_partitions': -1}, {'max_reshard_bytes': 1.5},
                        {'allow_replicate': 3}, {'max_input': -1}):
            with self.assertRaises((TypeError, ValueError)):
                shardcall.partition(ROWS, **options)
        for deadline in (0, -1, float('nan'), 'x'):
            with self.assertRaises((TypeError, ValueError)):
                shardcall.run(ROWS, [np.ones((4, 3)), np.ones((5, 3))], deadline=deadline)
        with self.assertRaises(TypeError):
            shardcall.check_rule('custom_relu', ruels={})

    def test_a_program_that_needs_more_memory_than_it_may_says_what_is_held(self):
        peak = shardcall.partition(ROWS).report.memory
        shardcall.partition(ROWS, max_memory=peak)
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(ROWS, max_memory=peak - 1)
        self.assertEqual(raised.exception.code, 'E210')
        self.assertIn('arguments', str(raised.exception))
        self.assertIn('max_memory', raised.exception.fix)
        with self.assertRaises(ValueError):
            shardcall.partition(ROWS, max_memory=-1)

    def test_an_order_of_conflicts_can_be_chosen(self):
        rows, columns = 'sharding={devices=[4,1]<=[4]}', 'sharding={devices=[1,4]<=[4]}'
        text = f"""HloModule m, num_partitions=4
            ENTRY main {{
              x = f32[16,32] parameter(0), {rows}
              v = f32[32,64] parameter(1), {columns}
              w = f32[64,32] parameter(2), {rows}
              h = f32[16,64] dot(x, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              t = f32[16,64] tanh(h)
              y = f32[16,32] dot(t, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              ROOT r = (f32[16,32]) tuple(y), sharding={{{{devices=[4,1]<=[4]}}}}
            }}"""
        sent = {order: shardcall.partition(text, conflicts=order).report.total_bytes
                for order in ('cheapest', 'wait', 'larger', 'smaller')}
        self.assertEqual(len(set(sent.values())), 2, sent)
        self.assertEqual(sent['cheapest'], min(sent.values()))
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(text, conflicts='largest')
        self.assertEqual(raised.exception.code, 'E212')

    def test_shardings_may_be_chosen_by_cost(self):
        rows, columns = 'sharding={devices=[8,1]<=[8]}', 'sharding={devices=[1,8]<=[8]}'
        over_columns = 'lhs_contracting_dims={1}, rhs_contracting_dims={1}'
        # A sum over devices that is needed in shards, after two more ops.
        text = f"""HloModule m, num_partitions=8
            ENTRY main {{
              x = f32[1024,4096] parameter(0), {columns}
              w = f32[4096,1024] parameter(1), {rows}
              v = f32[1024,1024] parameter(2), {rows}
              p = f32[1024,1024] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              t = f32[1024,1024] tanh(p)
              s = f32[1024,1024] multiply(t, t)
              ROOT r = f32[1024,1024] dot(s, v), {over_columns}, {columns}
            }}"""

        def chosen(**options):
            return 'chosen_shardings' in shardcall.explain(text, **options).to_dict()

        for search, expected in (('none', False), ('small', True), ('all', True)):
            self.assertEqual(chosen(search=search), expected, search)
        self.assertTrue(chosen())
        self.assertFalse(chosen(search='all', conflicts='wait'))
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(text, search='deep')
        self.assertEqual(raised.exception.code, 'E213')
        self.assertEqual(raised.exception.fix, 'leave search out for one in small programs')

    def test_strict_partial_keeps_sums_off_products(self):
        text = """HloModule m, num_partitions=8
            ENTRY main {
              x = f32[64,32] parameter(0), sharding={devices=[1,8]<=[8]}
              w = f32[32,16] parameter(1), sharding={devices=[8,1]<=[8]}
              v = f32[64,16] parameter(2), sharding={replicated}
              p = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              m = f32[64,16] multiply(p, v)
              ROOT r = f32[1,16] slice(m), slice={[63:64], [0:16]}, sharding={replicated}
            }"""

        def sent(**options):
            return shardcall.partition(text, search='none', **options).report.total_bytes

        self.assertEqual(sent(), 2 * 16 * 4 * 7 // 8)
        self.assertGreater(sent(strict_partial=True), sent())

    def test_plans_are_compared_for_the_machine_that_is_given(self):
        text = """HloModule m, num_partitions=4
            ENTRY main {
              x = f32[64,8] parameter(0), sharding={devices=[1,4]<=[4]}
              w = f32[8,64] parameter(1), sharding={replicated}
              ROOT y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }"""
        # To gather x sends the fewest bytes; to sum over shards saves three quarters of the products.
        for cost, sent in (('', 1536), ('h100', 1536), ('flops=1', 24576), ('host,flops=1', 24576)):
            self.assertEqual(shardcall.partition(text, cost=cost).report.total_bytes, sent, cost)
        for cost in ('h101', 'speed=1', 'latency=0'):
            with self.assertRaises(shardcall.Error) as raised:
                shardcall.partition(text, cost=cost)
            self.assertEqual(raised.exception.code, 'E211')
            self.assertIn('tpu_v5p', str(raised.exception))

    def test_a_report_has_the_memory_of_a_device(self):
        report = shardcall.explain(ROWS)
        memory = report.to_dict()['memory']
        self.assertEqual((memory['arguments'], memory['outputs']), (2 * 3 * 4 + 5 * 3 * 4, 2 * 5 * 4))
        self.assertEqual(report.memory, memory['arguments'] + memory['outputs']
                         + memory['temporaries'])
        self.assertIn('memory of one device: 124 B', str(report))

    def test_propagate_gives_every_instruction_its_sharding(self):
        self.assertIn('dot(', shardcall.propagate(SUMS))
        self.assertIn('sharding={replicated}', shardcall.propagate(SUMS))

    def test_verify_runs_a_real_program(self):
        result = shardcall.verify(DATA / 'mlp_train_d4m2.sdy.hlo')
        self.assertTrue(result)
        self.assertEqual(result.status, 'ok')
        self.assertEqual(result.details['num_partitions'], 8)
        given = [np.ones((4, 6), np.float32), np.ones((5, 6), np.float32)]
        self.assertTrue(shardcall.verify(SUMS, given))

    def test_rules_of_custom_calls(self):
        self.assertEqual(self.code_of(shardcall.partition, CALL), 'E101')
        for rule in ('a b -> a b', {'rule': 'a b -> a b', 'need_replication': ['b']}):
            program = shardcall.partition(CALL, rules={'mine': rule})
            self.assertEqual(program.report.count(), 0)
            self.assertIn('f32[2,6]', program.text)
        replicated = shardcall.partition(CALL, allow_replicate=['mine'])
        self.assertEqual(replicated.report.count('all-gather'), 1)
        self.assertEqual(self.code_of(shardcall.partition, CALL, rules={'mine': 'a b c -> a b c'}),
                         'E111')
        self.assertEqual(self.code_of(shardcall.partition, CALL, rules={'mine': 'a ( -> a'}), 'E110')
        self.assertEqual(self.code_of(shardcall.partition, CALL, rules={'mine': 3}), 'E141')
        self.assertEqual(self.code_of(shardcall.partition, CALL, rules=['mine']), 'E141')
        self.assertEqual(self.code_of(shardcall.partition, CALL, rules={3: 'i -> i'}), 'E141')
        self.assertEqual(
            self.code_of(shardcall.partition, CALL, rules={'mine': {'rul': 'a b -> a b'}}), 'E141')
        with self.assertRaises(TypeError):
            shardcall.partition(CALL, ruels={'mine': 'a b -> a b'})

    def test_rules_are_mappings(self):
        rules = types.MappingProxyType({'mine': types.MappingProxyType({'rule': 'a b -> a b'})})
        self.assertEqual(shardcall.explain(CALL, rules=rules).count(), 0)

    def test_plugins_are_read_anew_when_they_change(self):
        with tempfile.TemporaryDirectory() as folder:
            manifest = pathlib.Path(folder) / 'mine.json'
            manifest.write_text('{"targets": [{"name": "other", "rule": "a b -> a b"}]}')
            self.assertEqual(
                self.code_of(shardcall.partition, CALL, plugins=[manifest]), 'E101')
            manifest.write_text('{"targets": [{"name": "mine", "rule": "a b -> a b"}]}  ')
            self.assertEqual(shardcall.partition(CALL, plugins=manifest).report.count(), 0)
        self.assertEqual(
            self.code_of(shardcall.partition, CALL, plugins=['/no/such/file.json']), 'E143')

    def test_check_rule_proves_a_shipped_rule_and_finds_a_wrong_one(self):
        self.assertTrue(shardcall.check_rule('custom_relu'))
        self.assertEqual(self.code_of(shardcall.check_rule, 'nobody'), 'E140')
        self.assertEqual(
            self.code_of(shardcall.check_rule, 'mine', rules={'mine': 'a -> a'}), 'E140')

    def test_targets_say_what_they_have(self):
        found = shardcall.targets(rules={'mine': 'a b -> a b'})
        self.assertEqual(found['mine'].rules, ('a b -> a b',))
        self.assertEqual(found['mine'].platforms, ())
        self.assertIn('Host', found['rms_norm'].platforms)

    def test_arrays_of_every_type(self):
        import ml_dtypes
        for name, dtype in (('pred', np.bool_), ('s8', np.int8), ('u64', np.uint64),
                            ('f16', np.float16), ('c64', np.complex64),
                            ('bf16', ml_dtypes.bfloat16), ('s4', ml_dtypes.int4),
                            ('f8e4m3fn', ml_dtypes.float8_e4m3fn)):
            text = (f'HloModule copies, num_partitions=2\n\nENTRY main {{\n  x = {name}[4,2] '
                    'parameter(0), sharding={devices=[2,1]<=[2]}\n'
                    f'  ROOT y = {name}[4,2] copy(x)\n}}\n')
            x = np.array([[1, 0], [1, 1], [0, 1], [0, 0]]).astype(dtype)
            y, = shardcall.run(text, [x])
            self.assertEqual(y.dtype, x.dtype, name)
            self.assertEqual(y.tobytes(), x.tobytes(), name)

    def test_arrays_of_the_other_byte_order(self):
        text = ('HloModule copies, num_partitions=2\n\nENTRY main {\n  x = f32[4] parameter(0), '
                'sharding={devices=[2]<=[2]}\n  ROOT y = f32[4] add(x, x)\n}\n')
        y, = shardcall.run(text, [np.arange(4, dtype='>f4')])
        np.testing.assert_array_equal(y, [0, 2, 4, 6])

    def test_inputs_that_do_not_fit_are_refused(self):
        x, y = np.ones((4, 3), np.float32), np.ones((5, 3), np.float32)
        for given in ([x], [x, y, y], [y, x], [x, y.astype(np.float64)], [x, 'text'],
                      [x, np.ones((5, 3), 'datetime64[s]')]):
            with self.assertRaises((shardcall.Error, ValueError)):
                shardcall.run(ROWS, given)

    def test_an_error_says_its_code_and_its_fix(self):
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(CALL)
        error = raised.exception
        self.assertEqual(error.status, 'INVALID_ARGUMENT')
        self.assertTrue(error.fix)
        self.assertTrue(str(error).startswith('E101 '))
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.code, copy.fix), (str(error), error.code, error.fix))
        self.assertEqual(self.code_of(shardcall.partition, 'HloModule x'), 'E002')

    def test_threads_partition_at_once(self):
        texts = [None] * 8

        def one(k):
            texts[k] = shardcall.partition(SUMS if k % 2 else ROWS).text

        threads = [threading.Thread(target=one, args=(k,)) for k in range(len(texts))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(set(texts[::2])), 1)
        self.assertEqual(len(set(texts[1::2])), 1)

    def test_importing_it_does_not_import_jax(self):
        code = "import shardcall, sys; shardcall.explain; sys.exit('jax' in sys.modules)"
        subprocess.run([sys.executable, '-c', code], check=True,
                       env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)})


class TypesTest(unittest.TestCase):

    def test_every_public_function_says_its_types(self):
        modules = [shardcall, importlib.import_module('shardcall.xla_client')]
        if importlib.util.find_spec('jax') is not None:
            modules.append(importlib.import_module('shardcall.jax'))
        functions = 0
        for module in modules:
            for name in getattr(module, '__all__', dir(module)):
                function = getattr(module, name)
                if not inspect.isfunction(function):
                    continue
                if not function.__module__.startswith('shardcall') or name.startswith('_'):
                    continue
                functions += 1
                hints = typing.get_type_hints(function)
                signature = inspect.signature(function)
                self.assertEqual(set(hints) - {'return'}, set(signature.parameters), name)
                self.assertIn('return', hints, name)
        self.assertGreater(functions, 15)
        folder = os.path.dirname(shardcall.__file__)
        self.assertTrue(os.path.exists(os.path.join(folder, 'py.typed')))


if __name__ == '__main__':
    unittest.main()
