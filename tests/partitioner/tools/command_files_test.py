#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the command reads and writes: files, standard input and output, limits, reports."""

import json
import os
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402
from command_case import INPUT, MLP, MLP_INPUTS, OK, SMALL, CommandTest  # noqa: E402


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


if __name__ == '__main__':
    unittest.main()
