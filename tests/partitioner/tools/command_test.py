#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command's contract: exit codes, diagnostics for bad input, targets, backends."""

import glob
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402
from command_case import (DIFFERENT, ENVIRONMENT, INPUT, MLP, MLP_INPUTS, OK, SMALL,  # noqa: E402
                          USAGE, CommandTest)

VERBS = ('print', 'propagate', 'partition', 'run', 'verify', 'check-rule', 'compile', 'explain',
         'reshard', 'targets')


class Usage(CommandTest):

    def test_help_of_every_verb_has_usage_and_an_example(self):
        for verb in VERBS:
            result = self.check(OK, verb, '--help')
            self.assertIn(f'usage: shardcall {verb}', result.out)
            self.assertIn('example:', result.out)
            self.assertEqual('', result.err)
        overview = self.check(OK, '--help').out
        for verb in VERBS:
            self.assertIn(f'  {verb} ', overview)

    def test_help_with_a_code_or_a_verb_tells_of_it(self):
        told = self.check(OK, 'help', 'E101').out
        self.assertRegex(told, r'E101  a custom call without a sharding rule')
        self.assertRegex(told, r'for example\n  E101 target ')
        self.assertRegex(told, r'fix\n  Register a rule')
        self.assertEqual(self.check(OK, 'print', '--help').out, self.check(OK, 'help', 'print').out)
        self.assertIn('"E999"', self.check(USAGE, 'help', 'E999').err)

    def test_the_version_is_told(self):
        self.assertRegex(self.check(OK, '--version').out, r'^shardcall \d+\.\d+\.\d+\n$')

    def test_wrong_usage_is_status_2_and_says_why(self):
        for args, told in (
                ((), 'usage:'), (('bake',), 'unknown verb "bake"'),
                (('print',), 'one input file'), (('print', 'a', 'b'), 'one input file'),
                (('print', MLP, '--colour'), 'unknown flag --colour'),
                (('partition', MLP, '--num-partitions'), '--num-partitions=N'),
                (('partition', MLP, '--num-partitions=eight'), 'not an integer'),
                (('partition', MLP, '--no-propagate=1'), 'takes no value'),
                (('partition', MLP, '-o'), '-o: write -o OUT'),
                (('partition', MLP, '--report'), '--report: write --report='),
                (('run', MLP, '--deadline=soon'), 'not a number'),
                (('run', MLP, '--backend=pigeons'), 'inprocess, mpi, nccl or pjrt'),
                (('run', MLP, '--inputs=' + MLP_INPUTS, '--random-inputs=1'), 'not both'),
                (('explain', MLP, '--format=pdf'), 'text, json or html'),
                (('explain', MLP, '--expect=all-gather'), 'E220'),
                (('propagate', MLP, '--allow-output=yes'), '0 and 1'),
                (('propagate', MLP, '--allow-output=1,0,1'), 'found 3'),
                (('print', MLP, '--max-input=much'), 'not a size such as 4GiB'),
                (('reshard', '--shape=f32[4]'), '--from is missing')):
            result = self.check(USAGE, *args)
            self.assertIn(told, result.err, args)
            self.assertEqual('', result.out)


class ElidedConstants(CommandTest):
    """Dumps whose large constants stand as {...}."""

    TEXT = """HloModule m, num_partitions=4

ENTRY e {
  x = f32[16,12] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[12,8] constant({...})
  t = (s32[3], f32[16,8]) constant(({1, 2, 3}, {...}))
  b = f32[16,8] get-tuple-element(t), index=1
  d = f32[16,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[16,8] add(d, b), sharding={devices=[4,1]<=[4]}
}
"""

    def test_are_partitioned_as_they_stand(self):
        self.assertIn('constant({...})', self.check(OK, 'partition', '-', stdin=self.TEXT).out)

    def test_are_not_run_without_values(self):
        for verb in ('run', 'verify'):
            result = self.check(INPUT, verb, '-', stdin=self.TEXT)
            self.assertIn('E311', result.err + result.out)
            self.assertIn('--random-constants=SEED', result.err + result.out)

    def test_have_values_of_a_seed(self):
        outputs = {}
        for name, seed in (('a', 1), ('b', 1), ('c', 2)):
            path = self.path(name + '.npz')
            self.check(OK, 'run', '-', '--random-inputs=1', f'--random-constants={seed}',
                       '--outputs=' + path, stdin=self.TEXT)
            with open(path, 'rb') as f:
                outputs[name] = f.read()
        self.assertEqual(outputs['a'], outputs['b'])
        self.assertNotEqual(outputs['a'], outputs['c'])
        result = self.check(OK, 'verify', '-', '--random-constants=7', stdin=self.TEXT)
        self.assertIn('"exact": true', result.out.replace('":true', '": true'))


class BadText(CommandTest):

    def test_text_that_is_no_hlo_shows_line_column_and_caret(self):
        for text in ('', 'hello', 'HloModule', 'HloModule m\n\nENTRY %e {', '\x00\x01'):
            result = self.check(INPUT, 'partition', '-', stdin=text)
            self.assertRegex(result.err, r'^E0\d\d .*<stdin>:\d+:\d+')
        result = self.refused('E001', 'print', '-', stdin=SMALL.replace('dot(%x, %w)', 'dot(%x %w)'))
        self.assertRegex(result.err, r'<stdin>:6:\d+')
        self.assertIn('ROOT %dot', result.err)
        self.assertRegex(result.err, r'\n *\^')

    def each_refused(self, *changes):
        for old, new in changes:
            self.assertIn(old, SMALL)
            result = self.check(INPUT, 'partition', '-', stdin=SMALL.replace(old, new, 1))
            self.assertRegex(result.err, r'^E\d{3} ', new)
            self.assertRegex(result.err, r'<stdin>:\d+|%\w+|in instruction x', new)
            self.assertRegex(result.err, r'expected|found|Fix: ', new)
            self.assertEqual('', result.out)

    def test_unknown_opcodes_attributes_and_names_are_refused(self):
        self.each_refused((' dot(', ' dott('), ('lhs_contracting_dims', 'left_dims'),
                          ('dot(%x, %w)', 'dot(%x, %y)'), ('f32[8,8]{1,0} param', 'f33[8,8] param'),
                          ('%w = f32', '%x = f32'), ('parameter(1)', 'parameter(0)'),
                          ('parameter(1)', 'parameter(7)'),
                          ('lhs_contracting_dims={1}, ', 'lhs_contracting_dims={1}, '
                           'lhs_contracting_dims={1}, '))

    def test_shapes_that_contradict_the_op_are_refused(self):
        self.each_refused(('ROOT %dot = f32[16,8]', 'ROOT %dot = f32[16,9]'),
                          ('ROOT %dot = f32[16,8]', 'ROOT %dot = s32[16,8]'),
                          ('rhs_contracting_dims={0}', 'rhs_contracting_dims={3}'),
                          ('lhs_contracting_dims={1}', 'lhs_contracting_dims={0}'),
                          ('dot(%x, %w)', 'dot(%x)'),
                          ('f32[8,8]{1,0} param', 'f32[8,-8]{1,0} param'),
                          ('f32[8,8]{1,0} param', 'f32[8,8]{1,1} param'),
                          ('f32[8,8]{1,0} param', 'f32[99999999999,99999999999]{1,0} param'))

    def test_impossible_meshes_are_refused(self):
        self.each_refused(('devices=[4,2]<=[8]', 'devices=[4,3]<=[8]'),
                          ('devices=[4,2]<=[8]', 'devices=[4,2]<=[2,2]'),
                          ('devices=[4,2]<=[8]', 'devices=[4,2,1]<=[8]'),
                          ('devices=[4,2]<=[8]', 'devices=[4,0]<=[8]'),
                          ('devices=[4,2]<=[8]', 'devices=[4,2]<=[4,2]T(0,0)'),
                          ('devices=[4,2]<=[8]', 'devices=[4,2]0,1,2,3,4,5,6,6'),
                          ('devices=[4,2]<=[8]', 'devices=[4,2]0,1,2,3,4,5,6,9'),
                          ('devices=[4,2]<=[8]', 'maximal device=8'),
                          ('devices=[4,2]<=[8]', 'scattered'),
                          ('{devices=[4,2]<=[8]}', "{mesh['a'=4,'b'=2], [{'a'}, {'c'}]}"),
                          ('{devices=[4,2]<=[8]}', "{mesh['a'=4,'b'=2], [{'a'}, {'a'}]}"))
        self.refused('E025', 'partition', '-', has=['expected 8, found 16'],
                     stdin=SMALL.replace('{devices=[4,2]<=[8]}',
                                         "{mesh['a'=4,'b'=4], [{'a'}, {'b'}]}"))

    def test_a_device_count_that_does_not_match_is_refused(self):
        for count in ('4', '16', '0', '-8'):
            self.refused('E051', 'partition', '-', '--num-partitions=' + count, stdin=SMALL,
                         has=['found ' + ('4' if count == '4' else count)])

    def test_a_program_is_refused_before_its_inputs_are_read(self):
        self.refused('E051', 'run', '-', '--num-partitions=4', '--inputs=there_is_none.npz',
                     stdin=SMALL)

    def test_one_device_is_the_plain_evaluator(self):
        self.check(OK, 'run', '-', '--num-partitions=1', stdin=SMALL)

    def test_one_device_is_always_allowed_and_ignores_shardings(self):
        local = self.check(OK, 'partition', MLP, '--num-partitions=1')
        self.assertNotIn('all-reduce', local.out)
        self.assertNotIn('Sharding', local.out)
        self.assertIn('f32[16,32]{1,0}', local.out)
        self.check(OK, 'verify', '-', '--num-partitions=1', stdin=SMALL)
        manual = os.path.join(command.DATA, 'hlo', 'shard_map_grad_d4m2.sdy.hlo')
        self.refused('E052', 'partition', manual, '--num-partitions=1')


class Trace(CommandTest):
    def program(self, products, weights):
        """Products of rows of x with weights, of which each has another size."""
        shapes = [f'f32[64,{4096 + 8 * k}]' for k in range(products)]
        lines = ['HloModule m, num_partitions=8, '
                 'allow_spmd_sharding_propagation_to_output={true}', 'ENTRY main {',
                 '  x = f32[64,64] parameter(0), sharding={devices=[8,1]<=[8]}']
        for k, shape in enumerate(shapes):
            lines += [f'  w{k} = {shape} parameter({k + 1}), sharding={weights}',
                      f'  h{k} = {shape} dot(x, w{k}), lhs_contracting_dims={{1}}, '
                      'rhs_contracting_dims={0}']
        names = ', '.join(f'h{k}' for k in range(products))
        return '\n'.join(lines + [f'  ROOT t = ({", ".join(shapes)}) tuple({names})', '}', ''])

    def test_it_ends_with_all_conflicts_of_which_explain_tells_the_first(self):
        text = self.program(12, '{devices=[1,8]<=[8]}')
        trace = self.check(OK, 'propagate', '-', '--trace', stdin=text).out
        explained = self.check(OK, 'explain', '-', stdin=text).out
        conflicts = trace[trace.index('conflicts over axes: wait '):]
        self.assertRegex(trace, r'\n%t#11 .*\nconflicts over axes: ')
        told = [line for line in conflicts.splitlines() if line.startswith('  %h')]
        self.assertEqual(len(told), 12)
        self.assertIn('  %h3: "x0" of its result goes to dim 1 (argument 4), not to dim 0 '
                      '(argument 0)', conflicts)
        self.assertIn('\n'.join(told[:10]) + '\n  and 2 more conflicts\n', explained)

    def test_a_program_without_conflicts_has_none(self):
        trace = self.check(OK, 'propagate', '-', '--trace',
                           stdin=self.program(2, '{replicated}')).out
        self.assertNotIn('conflict', trace)


class Targets(CommandTest):
    CALLS = """HloModule calls, num_partitions=8, allow_spmd_sharding_propagation_to_output={true}

ENTRY %main (x: f32[16,8]) -> (f32[16,8], f32[16,8]) {
  %x = f32[16,8]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}
  %a = f32[16,8]{1,0} custom-call(%x), custom_call_target="one", api_version=API_VERSION_TYPED_FFI
  %b = f32[16,8]{1,0} custom-call(%a), custom_call_target="two", api_version=API_VERSION_TYPED_FFI
  %c = f32[16,8]{1,0} custom-call(%x), custom_call_target="one", api_version=API_VERSION_TYPED_FFI
  ROOT %t = (f32[16,8]{1,0}, f32[16,8]{1,0}) tuple(%b, %c)
}
"""

    def manifest(self, *targets):
        return '--plugin=' + self.path('rules.json', json.dumps({'targets': targets}))

    def test_a_program_is_verified_over_other_mesh_sizes(self):
        program = os.path.join(command.DATA, 'hlo', 'mlp_train_d4m2.sdy.hlo')
        result = self.check(OK, 'verify', program, '--remesh=data=3,model=1')
        self.assertEqual(json.loads(result.out)['num_partitions'], 3)
        self.refused('E053', 'verify', program, '--remesh=rows=3')
        for text in ('data', 'data=', '=3', 'data=x', ''):
            self.refused('E053', 'partition', program, '--remesh=' + text)
        self.refused('E051', 'partition', program, '--remesh=data=3', '--num-partitions=8')

    def test_all_missing_targets_are_told_at_once(self):
        result = self.refused('E101', 'partition', '-', stdin=self.CALLS)
        self.assertIn('target "one" (%a)', result.err)
        self.assertIn('target "one" (%c)', result.err)
        self.assertIn('--allow-replicate=one', result.err)

    def test_replication_is_opted_into_by_target(self):
        self.refused('E101', 'partition', '-', '--allow-replicate=two', stdin=self.CALLS)
        for allowed in ('one,two', 'all'):
            text = self.check(OK, 'partition', '-', '--allow-replicate=' + allowed,
                              stdin=self.CALLS).out
            self.assertIn('all-gather', text)
            self.assertIn('f32[16,8]{1,0} custom-call', text)

    def test_a_manifest_gives_rules_and_no_bytes_move(self):
        rules = self.manifest({'name': 'one', 'batch_dims': 1}, {'name': 'two', 'rule': 'b d -> b d'})
        text = self.check(OK, 'partition', '-', rules, stdin=self.CALLS).out
        self.assertNotIn('all-gather', text)
        self.assertEqual(3, text.count('f32[2,8]{1,0} custom-call'))
        self.assertRegex(self.check(OK, 'targets', rules).out, r'(?m)^two .*rules\.json')

    def test_shipped_targets_are_listed_with_rule_and_handler(self):
        out = self.check(OK, 'targets').out
        for name in ('rms_norm', 'rms_norm_bwd', 'flash_attention_fwd', 'flash_attention_bwd',
                     'cublas_gemm', 'custom_relu'):
            self.assertRegex(out, rf'(?m)^{name} +Host +any ')

    def test_bad_manifests_are_refused(self):
        for text in ('', '[]', '{"targets": 1}', '{"targets": [{}]}', '{"rules": []}',
                     '{"targets": [{"name": "t", "rule": "a b -> "}', '{"targets": [{"name": 3}]}',
                     '{"targets": [{"name": "t", "rule": "a (b -> a"}]}',
                     '{"targets": [{"name": "t", "batch_dims": -1}]}',
                     '{"targets": [{"name": "t", "rule": "a -> a", "reduction": {"z": "add"}}]}'):
            result = self.check(INPUT, 'targets', '--plugin=' + self.path('bad.json', text))
            self.assertRegex(result.err, r'^E\d{3} ', text)

    def test_a_call_without_handler_does_not_run(self):
        result = self.check(INPUT, 'run', '-', self.manifest({'name': 'one', 'batch_dims': 1},
                                                             {'name': 'two', 'batch_dims': 1}),
                            stdin=self.CALLS)
        self.assertEqual('E140', result.diagnostic, result.err)


class Contracts(CommandTest):

    def test_a_call_without_a_shape_has_that_of_its_target(self):
        relu = SMALL.replace('ROOT %dot', '%dot').replace(
            '\n}', '\n  ROOT %y = custom-call(%dot), custom_call_target="custom_relu", '
            'api_version=API_VERSION_TYPED_FFI\n}')
        for verb in (['print'], ['propagate'], ['partition'], ['run', '--random-inputs=1'],
                     ['verify'], ['explain'], ['check-rule', '--target=custom_relu']):
            self.check(OK, *verb[:1], '-', *verb[1:], stdin=relu)
        printed = self.check(OK, 'print', '-', stdin=relu).out
        self.assertRegex(printed, r'ROOT %y = f32\[16,8\]\{1,0\} custom-call')
        own = relu.replace('custom_relu', 'own')
        for verb in ('print', 'partition', 'verify'):
            self.refused('E112', verb, '-', stdin=own,
                         has=['<stdin>:7:13', 'Give the shape', 'RegisterShapeInference'])
        manifest = self.path('own.json', '{"targets": [{"name": "own", "rule": "a b -> a b"}]}')
        for verb in ('print', 'partition'):
            self.check(OK, verb, '-', '--plugin=' + manifest, stdin=own)

    def test_a_broken_contract_is_status_3_with_its_figure(self):
        self.check(OK, 'explain', MLP, '--expect=all-reduce=1, all-gather=0, bytes<=1KiB')
        result = self.check(DIFFERENT, 'explain', MLP, '--expect=all-reduce=0')
        self.assertIn('E221', result.err)
        self.assertIn('all-reduce', result.err)
        self.check(DIFFERENT, 'explain', MLP, '--expect=bytes<1')

    def test_a_reshard_beyond_its_limit_is_refused(self):
        self.refused('E210', 'partition', os.path.join(command.DATA, 'hlo',
                                                       'mlp_permuted_d8.gspmd.hlo'),
                     '--max-reshard-bytes=1')

    def test_a_program_beyond_its_limit_of_memory_is_refused(self):
        self.refused('E210', 'partition', MLP, '--max-memory=1KB')
        self.check(OK, 'explain', MLP, '--max-memory=1MiB')

    def test_a_search_of_shardings_can_be_chosen(self):
        for search in ('none', 'small', 'all'):
            self.check(OK, 'explain', MLP, '--search=' + search)
        self.check(OK, 'explain', MLP, '--strict-partial')
        self.refused('E213', 'partition', MLP, '--search=deep', has=['none, small or all'])

    def test_verify_answers_in_json(self):
        answer = json.loads(self.check(OK, 'verify', MLP).out)
        self.assertEqual(('ok', 8), (answer['status'], answer['num_partitions']))
        self.assertEqual([True], [x['bitwise'] for x in answer['outputs']])
        self.assertEqual([0], [x['max_abs_diff'] for x in answer['outputs']])

    def test_check_rule_proves_a_rule_and_says_what_it_lacks(self):
        out = json.loads(self.check(OK, 'check-rule', '--target=rms_norm', '--seed=3').out)
        self.assertEqual(out['verdict'], 'holds')
        self.assertGreater(out['trials'], 100)
        self.refused('E140', 'check-rule', '--target=nothing')
        self.check(USAGE, 'check-rule')
        call = """HloModule m

ENTRY e {
  x = f32[8,6]{1,0} parameter(0)
  ROOT c = f32[8,6]{1,0} custom-call(x), custom_call_target="custom_relu", api_version=API_VERSION_TYPED_FFI, frontend_attributes={xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=6} need_replication={j}, custom>"}
}
"""
        result = self.check(DIFFERENT, 'check-rule', '-', '--target=custom_relu', stdin=call)
        out = json.loads(result.out)
        self.assertEqual((out['verdict'], out['factor']), ('missing', 'j'))
        self.assertEqual(out['suggestion'], 'i j -> i j')
        self.refused('E191', 'check-rule', '-', '--target=rms_norm', stdin=call)

    def test_a_manifest_gives_a_vjp_that_is_checked_and_a_lowering(self):
        backward = """HloModule relu_bwd
ENTRY e { dy = f32[2,3] parameter(0) x = f32[2,3] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[2,3] broadcast(zero), dimensions={}
  on = pred[2,3] compare(x, zeros), direction=GT
  ROOT dx = f32[2,3] select(on, %s, zeros) }
"""
        self.path('bwd.hlo', backward % 'dy')
        self.path('wrong.hlo', backward % 'x')
        manifest = """{"targets": [{"name": "my_relu", "kernel": "custom_relu", "rule": "i j -> i j",
          "vjp": {"computation": "%s.hlo", "arguments": ["cotangent 0", "operand 0"],
                  "gradients": [0]}, "batching": "leading"}],
          "lowerings": [{"name": "my.relu", "target": "my_relu"}]}"""
        good = '--plugin=' + self.path('good.json', manifest % 'bwd')
        out = json.loads(self.check(OK, 'check-rule', '--target=my_relu', '--vjp', good).out)
        self.assertEqual(out['verdict'], 'holds')
        bad = '--plugin=' + self.path('bad.json', manifest % 'wrong')
        out = json.loads(self.check(DIFFERENT, 'check-rule', '--target=my_relu', '--vjp', bad).out)
        self.assertEqual((out['verdict'], out['factor']), ('incorrect', 'operand 0'))
        table = self.check(OK, 'targets', good).out
        self.assertRegex(table, r'my_relu .*vjp,batching')
        self.assertRegex(table, r'my\.relu +any +manifest')
        program = """HloModule p, num_partitions=2
my.relu.3 { x = f32[4,6] parameter(0) ROOT y = f32[4,6] add(x, x) }
ENTRY e { x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT c = f32[4,6] call(x), to_apply=my.relu.3 }
"""
        text = self.check(OK, 'partition', '-', good, stdin=program).out
        self.assertIn('custom_call_target="my_relu"', text)
        self.assertNotIn('my_relu', self.check(OK, 'partition', '-', stdin=program).out)

    def test_reshard_prints_a_plan_and_its_lower_bound(self):
        out = self.check(OK, 'reshard', '--shape=f32[64,32]', '--from={devices=[8,1]<=[8]}',
                         '--to={devices=[1,8]<=[8]}', '--num-partitions=8').out
        self.assertIn('all-to-all', out)
        self.assertRegex(out, r'lower bound')
        for shape, sharding in (('f32[64', '{replicated}'), ('(f32[4])', '{replicated}'),
                                ('f32[64,32]', '{devices=[8]<=[8]}'), ('f32[64,32]', 'x')):
            result = self.check(INPUT, 'reshard', '--shape=' + shape, '--from=' + sharding,
                                '--to={devices=[1,8]<=[8]}', '--num-partitions=8')
            self.assertRegex(result.err, r'^E\d{3} ')
        for ends in (('{replicated}', '{unknown}'), ('{replicated}', '{manual}'),
                     ('{maximal device=3}', '{replicated}'), ('{manual}', '{unreduced}'),
                     ('{manual}', '{devices=[2,4]<=[8]}')):
            self.refused('E065', 'reshard', '--shape=f32[64,32]', '--from=' + ends[0],
                         '--to=' + ends[1], '--num-partitions=8')


class Backends(CommandTest):

    def test_mpi_without_a_launcher_is_status_4(self):
        clean = {k: '' for k in os.environ if re.match('OMPI_|PMI', k)}
        for verb in ('run', 'verify'):
            result = self.check(ENVIRONMENT, verb, MLP, '--backend=mpi', env=clean)
            self.assertRegex(result.err, r'^E\d{3} .*(mpirun|MPI)')

    def test_nccl_without_gpus_is_status_4(self):
        for verb in ('run', 'verify'):
            result = command.run([verb, MLP, '--backend=nccl'],
                                 env={'CUDA_VISIBLE_DEVICES': ''})
            self.assertEqual((ENVIRONMENT, ''), (result.code, result.fault), result.err)
            self.assertRegex(result.err, r'^E\d{3} ')

    def test_a_pjrt_run_says_what_is_no_plugin(self):
        for verb in ('run', 'verify'):
            self.refused('E338', verb, MLP, '--backend=pjrt')
            self.refused('E143', verb, MLP, '--backend=pjrt', '--pjrt-plugin=/nowhere.so')
            self.refused('E142', verb, MLP, '--backend=pjrt', '--pjrt-plugin=' + MLP)
            for library in glob.glob('/lib/*/libm.so.6')[:1]:
                self.refused('E333', verb, MLP, '--backend=pjrt', '--pjrt-plugin=' + library)

    def test_compile_says_what_it_lacks(self):
        self.refused('E338', 'compile', MLP, '--topology=1x1x8')
        self.refused('E143', 'compile', MLP, '--pjrt-plugin=/nowhere.so')
        self.refused('E060', 'compile', MLP, '--pjrt-plugin=x.so', '--target-config=/nowhere')
        self.assertIn('written to a file',
                      self.check(USAGE, 'compile', MLP, '--pjrt-plugin=x.so', '-o', '-').err)

    def test_a_deadline_must_be_positive(self):
        for seconds in ('0', '-1', 'nan'):
            self.refused('E331', 'run', MLP, '--deadline=' + seconds)
            self.refused('E331', 'run', MLP, '--wait=' + seconds)


if __name__ == '__main__':
    unittest.main()
