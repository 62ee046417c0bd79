#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command's contract: exit codes, files, diagnostics for bad input."""

import json
import glob
import os
import re
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

OK, INPUT, USAGE, DIFFERENT, ENVIRONMENT = range(5)
VERBS = ('print', 'propagate', 'partition', 'run', 'verify', 'check-rule', 'compile', 'explain',
         'reshard', 'targets')
MLP = os.path.join(command.DATA, 'hlo', 'mlp_fwd_d4m2.sdy.hlo')
MLP_INPUTS = os.path.join(command.DATA, 'hlo', 'mlp_fwd_d4m2.inputs.npz')

SMALL = """HloModule small, num_partitions=8

ENTRY %main (x: f32[16,8], w: f32[8,8]) -> f32[16,8] {
  %x = f32[16,8]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  %w = f32[8,8]{1,0} parameter(1), sharding={devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}
  ROOT %dot = f32[16,8]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


class CommandTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def path(self, name, text=None):
        path = os.path.join(self.directory, name)
        if text is not None:
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
        return path

    def check(self, code, *args, stdin='', **kwargs):
        """The result of a run that must end with `code`."""
        result = command.run(args, stdin=stdin.encode(), **kwargs)
        self.assertEqual('', result.fault, (args, result.err[-800:]))
        self.assertEqual(code, result.code, (args, result.err[-800:], str(result.out)[-200:]))
        return result

    def refused(self, diagnostic, *args, stdin='', has=()):
        """Exit 1, this one diagnostic first, with a fix, and nothing on stdout."""
        result = self.check(INPUT, *args, stdin=stdin)
        self.assertEqual(diagnostic, result.diagnostic, result.err)
        for text in has:
            self.assertIn(text, result.err)
        self.assertEqual('', result.out)
        return result


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


class Files(CommandTest):

    def test_a_dash_is_standard_input_and_output(self):
        with open(MLP, encoding='utf-8') as f:
            text = f.read()
        for verb in ('print', 'propagate', 'partition', 'explain'):
            from_file = self.check(OK, verb, MLP).out
            self.assertEqual(from_file, self.check(OK, verb, '-', '-o', '-', stdin=text).out)

    def test_printing_again_gives_the_same_bytes(self):
        once = self.check(OK, 'print', '-', stdin=SMALL).out
        self.assertEqual(once, self.check(OK, 'print', '-', stdin=once).out)
        bare = self.check(OK, 'print', '-', '--no-metadata', stdin=SMALL).out
        self.assertNotIn('metadata=', bare)
        short = self.check(OK, 'print', '-', '--short', stdin=SMALL).out
        self.assertNotIn('%', short)
        self.assertEqual(bare, self.check(OK, 'print', '-', stdin=short).out)
        self.assertEqual(short, self.check(OK, 'print', '-', '--short', stdin=short).out)

    def test_an_output_file_is_what_stdout_would_be(self):
        out = self.path('out.hlo')
        result = self.check(OK, 'partition', MLP, '-o', out)
        self.assertEqual('', result.out)
        with open(out, encoding='utf-8') as f:
            self.assertEqual(self.check(OK, 'partition', MLP).out, f.read())
        self.assertEqual(['out.hlo'], os.listdir(self.directory))

    def test_a_failed_run_leaves_the_output_as_it_was(self):
        out, npz = self.path('out.hlo', 'before'), self.path('out.npz', 'before')
        for verb in ('print', 'propagate', 'partition', 'explain'):
            self.check(INPUT, verb, '-', '-o', out, stdin=SMALL[:-40])
        self.check(INPUT, 'partition', MLP, '--num-partitions=6', '-o', out)
        self.check(INPUT, 'run', '-', '--outputs=' + npz, stdin=SMALL[:-40])
        self.check(INPUT, 'run', MLP, '--inputs=' + MLP, '--outputs=' + npz)
        self.assertEqual(['out.hlo', 'out.npz'], sorted(os.listdir(self.directory)))
        for path in (out, npz):
            with open(path, encoding='utf-8') as f:
                self.assertEqual('before', f.read())

    def test_paths_that_cannot_be_read_or_written_are_refused(self):
        absent = self.path('no/such/file')
        self.refused('E060', 'print', absent, has=[absent])
        self.refused('E060', 'print', self.directory)
        self.refused('E061', 'print', MLP, '-o', absent, has=[absent])
        self.refused('E061', 'print', MLP, '-o', self.directory)
        self.refused('E143', 'partition', MLP, '--plugin=' + absent + '.json')
        os.mkdir(self.path('folder.json'))
        self.refused('E143', 'targets', '--plugin=' + self.path('folder.json'))
        for path in (absent, self.directory):
            self.check(INPUT, 'run', MLP, '--inputs=' + path)
            self.check(INPUT, 'run', MLP, '--outputs=' + path)
        self.check(INPUT, 'partition', MLP, '-o', self.path('x'), '--report=' + absent)
        self.assertEqual(['folder.json', 'x'], sorted(os.listdir(self.directory)))

    def peak(self, *args):
        """(the exit status, stderr, the most memory in MiB) of a run."""
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen((os.environ['SHARDCALL_COMMAND'], *args), stdout=subprocess.DEVNULL,
                                       stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            err.seek(0)
            return process.returncode, err.read().decode(), usage.ru_maxrss >> 10

    def test_a_file_that_is_too_large_is_not_read(self):
        paths = {}
        for name in ('x.hlo', 'x.pb', 'x.mlirbc', 'x.json', 'x.npz'):
            paths[name] = self.path(name)
            with open(paths[name], 'wb') as f:
                f.truncate(100 << 30)  # sparse: reading it would fill the memory
        for args in (('print', paths['x.hlo']), ('print', paths['x.pb']),
                     ('print', paths['x.mlirbc']), ('targets', '--plugin=' + paths['x.json']),
                     ('run', MLP, '--inputs=' + paths['x.npz'])):
            code, err, mib = self.peak(*args)
            self.assertEqual((INPUT, 'E064 '), (code, err[:5]))
            self.assertIn('expected at most 4.00 GiB, found 100.00 GiB', err)
            self.assertIn('Fix: ', err)
            self.assertLess(mib, 400)
        self.refused('E064', 'print', '/dev/zero', '--max-input=1MB', has=['found more'])

    def test_the_limit_of_what_is_read_is_a_size_with_a_unit(self):
        self.assertGreater(len(SMALL), 100)
        for size in ('100', '100B', '0.1KB', '0.05KiB'):
            self.refused('E064', 'print', '-', '--max-input=' + size, stdin=SMALL)
        for size in (str(len(SMALL)), '1KiB', '1.5MB', '2TiB'):
            self.check(OK, 'print', '-', '--max-input=' + size, stdin=SMALL)
        self.refused('E064', 'run', MLP, '--inputs=' + MLP_INPUTS, '--max-input=100')

    def test_an_array_is_compared_before_it_is_inflated(self):
        program = self.path('x.hlo', 'HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n'
                                     '  ROOT y = f32[8] negate(x)\n}\n')
        for name, descr, shape, diagnostic in (('arg0', '<f4', '(8,)', 'E202'),
                                               ('arg0', '<f4', '(67108864,)', 'E204'),
                                               ('arg0', '<f8', '(8,)', 'E205'),
                                               ('arg9', '<f4', '(67108864,)', 'E203'),
                                               ('dtypes', '<U16', '(4194304,)', 'E202')):
            head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
            path = self.path('x.npz')
            with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                if name == 'arg9':
                    archive.writestr('arg0.npy', b'\x93NUMPY\x01\x00' + struct.pack('<H', 64)
                                     + b"{'descr': '<f4', 'fortran_order': False, 'shape': (8,), }"
                                     .ljust(64) + bytes(32))
                with archive.open(name + '.npy', 'w') as f:
                    f.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head)
                    for _ in range(256):
                        f.write(bytes(1 << 20))
            code, err, mib = self.peak('run', program, '--num-partitions=1', '--inputs=' + path)
            self.assertEqual((INPUT, diagnostic), (code, err[:4]), err)
            self.assertLess(mib, 400)

    def device(self, name, minor):
        """A device of the test's own: one that a wrong command would replace."""
        path = self.path(name)
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            with open(path, 'rb'):
                return path
        except OSError:
            self.skipTest('devices cannot be made here')

    def test_a_full_device_is_an_error_and_nothing_is_left_behind(self):
        full = self.device('full', 7)
        for args in (['print', MLP, '-o', full], ['partition', MLP, '-o', full],
                     ['partition', MLP, '-o', self.path('out.hlo'), '--report=' + full]):
            self.assertEqual('E061', self.check(INPUT, *args).diagnostic, args)
        run = self.check(INPUT, 'run', MLP, '--inputs=' + MLP_INPUTS, '--outputs=' + full)
        self.assertEqual('E207', run.diagnostic, run.err)
        self.assertTrue(stat.S_ISCHR(os.stat(full).st_mode))
        self.assertEqual(['full', 'out.hlo'], sorted(os.listdir(self.directory)))

    def test_results_that_standard_output_does_not_take_are_an_error(self):
        if not os.path.exists('/dev/full'):
            self.skipTest('no /dev/full here')
        for args in (['print', MLP], ['explain', MLP], ['verify', MLP], ['targets'], ['--help'],
                     ['reshard', '--shape=f32[8,8]', '--from={devices=[2,1]<=[2]}',
                      '--to={replicated}', '--num-partitions=2']):
            with open('/dev/full', 'wb') as full:
                done = subprocess.run([command.command_path(), *args], stdout=full,
                                      stderr=subprocess.PIPE, check=False)
            self.assertEqual(INPUT, done.returncode, (args, done.stderr[-300:]))
            self.assertRegex(done.stderr.decode(), r'^E061 ', args)

    def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(self):
        # As root a file beside it could be renamed to it.
        null = self.device('null', 3)
        for args in (['print', MLP, '-o', null],
                     ['run', MLP, '--inputs=' + MLP_INPUTS, '--outputs=' + null]):
            self.check(OK, *args)
            self.assertTrue(stat.S_ISCHR(os.stat(null).st_mode), args)
        pipe = self.path('pipe')
        os.mkfifo(pipe)
        reader = subprocess.Popen(['cat', pipe], stdout=subprocess.PIPE)
        self.check(OK, 'print', MLP, '-o', pipe)
        self.assertEqual(self.check(OK, 'print', MLP).out, reader.communicate()[0].decode())
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_an_unreadable_file_is_refused(self):
        path = self.path('secret.hlo', SMALL)
        os.chmod(path, 0)
        if os.access(path, os.R_OK):
            self.skipTest('this user reads everything')
        self.refused('E060', 'print', path)
        os.chmod(path, stat.S_IRUSR)

    def test_binary_files_hold_the_same_program(self):
        text = self.check(OK, 'print', MLP).out
        for name in ('model.pb', 'model.hlo.pb'):
            binary = self.path(name)
            self.check(OK, 'print', MLP, '-o', binary)
            self.assertEqual(text, self.check(OK, 'print', binary).out)
            again = self.path('again.pb')
            self.check(OK, 'print', binary, '-o', again)
            with open(binary, 'rb') as a, open(again, 'rb') as b:
                self.assertEqual(a.read(), b.read())
            local = self.check(OK, 'partition', MLP).out
            self.assertEqual(local, self.check(OK, 'partition', binary).out)
            out = self.path('local.pb')
            for verb in ('partition', 'propagate'):
                expected = self.check(OK, verb, MLP).out
                self.check(OK, verb, binary, '-o', out)
                self.assertEqual(expected, self.check(OK, 'print', out).out)

    def test_binary_standard_input_is_told_by_its_content(self):
        binary = self.path('model.pb')
        self.check(OK, 'print', MLP, '-o', binary)
        with open(binary, 'rb') as f:
            found = command.run(('print', '-'), stdin=f.read())
        self.assertEqual(OK, found.code, found.err)
        self.assertEqual(self.check(OK, 'print', MLP).out, found.out)

    def test_a_damaged_binary_file_is_refused(self):
        self.refused('E030', 'print', self.path('model.pb', 'HloModule x'), has=['.hlo'])
        self.refused('E030', 'print', self.path('empty.pb', ''))
        binary = self.path('model.pb')
        self.check(OK, 'print', MLP, '-o', binary)
        with open(binary, 'rb') as f:
            data = f.read()
        with open(binary, 'wb') as f:
            f.write(data[:len(data) // 2])
        self.refused('E030', 'run', binary, has=[binary])

    def test_the_report_is_json_with_the_documented_keys(self):
        report = self.path('report.json')
        self.check(OK, 'partition', MLP, '-o', os.devnull, '--report=' + report)
        with open(report, encoding='utf-8') as f:
            found = json.load(f)
        for key in ('num_partitions', 'instructions_in', 'instructions_out', 'time_us',
                    'peak_bytes', 'collectives', 'totals', 'fallbacks'):
            self.assertIn(key, found)
        self.assertEqual(8, found['num_partitions'])
        self.assertEqual({'parse', 'import', 'propagate', 'partition', 'cleanup', 'print'},
                         set(found['time_us']))
        self.assertEqual(['all-reduce'], [c['opcode'] for c in found['collectives']])
        for key in ('name', 'opcode', 'group_size', 'groups', 'bytes_in', 'bytes_moved',
                    'trip_count', 'cause'):
            self.assertIn(key, found['collectives'][0])


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
