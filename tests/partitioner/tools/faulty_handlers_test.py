#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Handlers and plugins that crash, throw or never return: the command names them, and
ends with a status, in time. Sizes that no machine has are a diagnostic.

usage: faulty_handlers_test.py PLUGIN_FOLDER [--mpiexec=PATH]"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402
try:
    import numpy as np
except ImportError:
    print('SKIPPED: numpy cannot be imported; pip install numpy')
    sys.exit(command.SKIPPED)

FOLDER = sys.argv[1]
MPIEXEC = ''.join(a.split('=', 1)[1] for a in sys.argv[2:] if a.startswith('--mpiexec='))
PLUGIN = '--plugin=' + os.path.join(FOLDER, 'libfaulty_plugin.so')


def program(target, devices=2, rows=4):
    return f"""HloModule m, num_partitions={devices}
ENTRY main {{
  x = f32[{rows},2] parameter(0), sharding={{devices=[{devices},1]<=[{devices}]}}
  ROOT c = f32[{rows},2] custom-call(x), custom_call_target="{target}"
}}
""".encode()


class FaultyHandlers(unittest.TestCase):

    def told(self, args, stdin, code, *texts, prefix=(), timeout=20.0):
        r = command.run(args, stdin=stdin, timeout=timeout, prefix=prefix)
        self.assertEqual(r.fault, '', r.err)
        self.assertEqual(r.code, code, r.out + r.err)
        for text in texts:
            self.assertIn(text, r.out + r.err)

    def test_a_handler_without_a_fault_runs(self):
        self.told(['verify', '-', PLUGIN], program('faulty_none'), 0, '"status": "ok"')

    def test_what_a_handler_prints_is_not_in_the_result(self):
        for args, stdin, key in ((['verify', '-', PLUGIN], program('faulty_prints'), 'status'),
                                 (['check-rule', '--target=faulty_prints', PLUGIN], b'',
                                  'verdict')):
            r = command.run(args, stdin=stdin, timeout=20.0)
            self.assertEqual(r.code, 0, r.out + r.err)
            self.assertIn(key, json.loads(r.out))
            if key == 'status':  # a check calls it in a process of its own
                self.assertIn('a kernel prints', r.err)

    def test_a_crash_names_target_and_call(self):
        for devices in (1, 2):
            for target, name in (('faulty_segv', 'SIGSEGV'), ('faulty_abort', 'SIGABRT')):
                for verb in ('run', 'verify'):
                    self.told([verb, '-', PLUGIN, f'--num-partitions={devices}'],
                              program(target, devices), 1,
                              f'E323 the handler of "{target}" crashed ({name}) at %c')

    def test_a_throw_is_a_diagnostic(self):
        self.told(['run', '-', PLUGIN], program('faulty_throw'), 1, 'E317', 'faulty_throw')

    def test_a_handler_that_never_returns_is_named_in_time(self):
        for devices in (1, 2):
            for verb in ('run', 'verify'):
                self.told(
                    [verb, '-', PLUGIN, f'--num-partitions={devices}', '--deadline=0.5'],
                    program('faulty_never', devices), 1,
                    'E319 the handler of "faulty_never" has not returned within 500ms', '%c',
                    timeout=10.0)
        # The verification's reference passes here.
        self.told(['run', '-', PLUGIN, '--deadline=0.5'], program('faulty_never_on_1'), 1,
                  'E319', 'on device 1')

    def test_check_rule_reports_them(self):
        self.told(['check-rule', '--target=faulty_segv', PLUGIN], b'', 3,
                  '"verdict": "handler_fault"', 'crashes (SIGSEGV)', '(f32[4,6]) -> f32[4,6]')
        self.told(['check-rule', '--target=faulty_never', PLUGIN, '--deadline=0.5'], b'', 3,
                  '"verdict": "handler_fault"', 'has not returned within')
        self.told(['check-rule', '--target=faulty_none', PLUGIN], b'', 0, '"verdict": "holds"')

    def manifest(self, targets):
        file = tempfile.NamedTemporaryFile('w', suffix='.json', delete=False)
        self.addCleanup(os.remove, file.name)
        with file:
            json.dump({'targets': targets}, file)
        return '--plugin=' + file.name

    def test_sizes_and_ranges_are_kept(self):
        gates = {'name': 'bare_gates', 'rule': 'b h, b g -> b h', 'need_replication': ['h', 'g']}
        take = {'name': 'bare_take', 'rule': 's d, n -> n d', 'need_replication': ['s'],
                'pad': {'n': 0}}
        for name in ('limited_gates', 'limited_take'):  # by the C interface
            self.told(['check-rule', '--target=' + name, PLUGIN], b'', 0, '"untested": []')
        limited = self.manifest([dict(gates, sizes={'g': '4 h'}),
                                 dict(take, ranges={'operand 1': [0, 's']})])
        for name in ('bare_gates', 'bare_take'):
            self.told(['check-rule', '--target=' + name, PLUGIN, limited], b'', 0,
                      '"verdict": "holds"', '"untested": []')
        without = self.manifest([gates, take])
        self.told(['check-rule', '--target=bare_gates', PLUGIN, without], b'', 3,
                  '"verdict": "handler_fault"', 'past the end of operand 1, f32[')
        for bad, text in (({'sizes': {'g': '4 q'}}, 'E105'), ({'sizes': {'g': '4 h h'}}, 'E105'),
                          ({'ranges': {'operand 9': [0, 'h']}}, 'E105'),
                          ({'ranges': {'result 0': [0, 'h']}}, 'E141'),
                          ({'ranges': {'operand 1': [0]}}, 'E141'), ({'ranges': []}, 'E141'),
                          ({'sizes': {'g': []}}, 'E141')):
            self.told(['check-rule', '--target=bare_gates', PLUGIN,
                       self.manifest([dict(gates, **bad)])], b'', 1, text)

    def test_inputs_of_a_call_are_taken_as_they_are(self):
        take = self.manifest([{'name': 'bare_take', 'rule': 's d, n -> n d',
                               'need_replication': ['s'], 'pad': {'n': 0}}])
        with tempfile.TemporaryDirectory() as folder:
            call, inputs = os.path.join(folder, 'call.hlo'), os.path.join(folder, 'in.npz')
            with open(call, 'w') as file:
                file.write('HloModule m\nENTRY e {\n  x = f32[3,5] parameter(0)\n'
                           '  i = s32[7] parameter(1)\n  ROOT c = f32[7,5] custom-call(x, i), '
                           'custom_call_target="bare_take", api_version=API_VERSION_TYPED_FFI\n}\n')
            args = ['check-rule', call, '--target=bare_take', PLUGIN, take]
            self.told(args, b'', 3, '"verdict": "handler_fault"', 'ranges', 'SIGSEGV')
            np.savez(inputs, arg0=np.arange(15, dtype=np.float32).reshape(3, 5),
                     arg1=np.array([0, 2, 1, 1, 2, 0, 2], np.int32))
            self.told(args + ['--inputs=' + inputs], b'', 0, '"verdict": "holds"')
            np.savez(inputs, arg0=np.zeros((3, 5), np.float32))
            self.told(args + ['--inputs=' + inputs], b'', 1, 'E20')

    def test_over_mpi(self):
        if not MPIEXEC:
            self.skipTest('no MPI launcher')
        prefix = (MPIEXEC, '-np', '2')
        with tempfile.NamedTemporaryFile(suffix='.hlo') as file:
            for target, text in (('faulty_never_on_1', 'E319 the handler of "faulty_never_on_1"'),
                                 ('faulty_segv', 'E323 the handler of "faulty_segv" crashed')):
                file.seek(0)
                file.truncate()
                file.write(program(target))
                file.flush()
                self.told(['run', file.name, PLUGIN, '--backend=mpi', '--deadline=1'], b'', 1,
                          text, prefix=prefix, timeout=40.0)

    def test_ranks_that_the_launcher_ends_say_what_they_compute(self):
        if not MPIEXEC:
            self.skipTest('no MPI launcher')
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'program.hlo')
            with open(path, 'wb') as file:
                file.write(program('faulty_never_and_says'))
            rank = os.path.join(folder, 'rank')
            # Open MPI kills ranks a second after it has told them to end. On a busy machine they
            # may not have said anything by then.
            environment = dict(os.environ, OMPI_MCA_odls_base_sigkill_timeout='4')
            job = subprocess.Popen(
                [MPIEXEC, '-np', '2', 'sh', '-c',
                 f'r={rank}$OMPI_COMM_WORLD_RANK; exec "$@" >$r.out 2>$r.err', '-',
                 command.command_path(), 'run', path, PLUGIN, '--backend=mpi', '--deadline=100'],
                env=environment)

            def said(end, number):
                try:
                    with open(f'{rank}{number}.{end}', encoding='utf-8') as file:
                        return file.read()
                except FileNotFoundError:
                    return ''
            while job.poll() is None and not all('entered' in said('out', r) for r in (0, 1)):
                time.sleep(0.02)
            job.terminate()
            job.wait()
            for r in (0, 1):
                self.assertIn('E304 the launcher ends this job (SIGTERM) while '
                              f'rank {r} computes %c', said('err', r))

    def test_a_plugin_that_crashes_is_named(self):
        for name, entry in (('bad_crash', 'register_targets'),
                            ('bad_entry_crash', 'shardcall_plugin')):
            path = os.path.join(FOLDER, f'lib{name}.so')
            self.told(['targets', '--plugin=' + path], b'', 1, f'E323 {entry} of the library',
                      name)
        path = os.path.join(FOLDER, 'libbad_start_crash.so')
        self.told(['targets', '--plugin=' + path], b'', 1,
                  'E323 the start-up code of', 'bad_start_crash', 'SIGSEGV')

    def test_a_callback_that_crashes_is_named(self):
        self.told(['partition', '-', PLUGIN], program('crashes_in_partition'), 1,
                  'E323 the partition callback of "crashes_in_partition" crashed (SIGSEGV) at %c')

    def test_sizes_that_no_machine_has_are_a_diagnostic(self):
        text = """HloModule m, num_partitions=2
ENTRY main {
  x = f32[1048576,262144] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT y = f32[1048576,262144] negate(x)
}
"""
        made = text.replace('parameter(0), sharding={devices=[2,1]<=[2]}', 'iota(), iota_dimension=0')
        for hlo in (text, made):
            for args in (['run', '-'], ['verify', '-'], ['run', '-', '--num-partitions=1']):
                self.told(args, hlo.encode(), 1, 'E314 out of memory: 1.00 TiB (1099511627776 bytes)')
        call = program('faulty_none', 2, rows=1 << 39)
        self.told(['run', '-', PLUGIN], call, 1, 'E314', 'bytes) were asked for')
        with tempfile.NamedTemporaryFile(suffix='.hlo') as file:
            file.write(call)
            file.flush()
            # Smaller sizes do.
            self.told(['check-rule', file.name, '--target=faulty_none', PLUGIN], b'', 0,
                      '"verdict": "holds"')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
