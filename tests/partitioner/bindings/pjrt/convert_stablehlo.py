#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""StableHLO, as text and bytecode, is read by every verb with a plugin that converts it.

SHARDCALL_PJRT_CPU_PLUGIN and SHARDCALL_PJRT_PLUGIN name XLA:CPU's and XLA:GPU's plugins;
what neither is there for is not tried. Exit status 77 without both."""
import glob
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../support'))
import command  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../..')
FILES = sorted(glob.glob(os.path.join(ROOT, 'tests/data/stablehlo/step.*')))
PLUGINS = [p for p in (os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN'),
                       os.environ.get('SHARDCALL_PJRT_PLUGIN')) if p]


class ConvertStablehlo(unittest.TestCase):
    def run_command(self, arguments, code=0):
        result = command.run(arguments)
        self.assertEqual((result.fault, result.code), ('', code), result.err)
        return result

    def test_all_plugins_give_the_same_hlo_but_for_where_it_comes_from(self):
        self.assertEqual(len(FILES), 3)
        for path in FILES:
            texts = {self.run_command(['print', '--no-metadata', path, f'--converter={p}']).out
                     for p in PLUGINS}
            self.assertEqual(len(texts), 1, path)
            self.assertIn('input_output_alias={ {2}: (0, {}', texts.pop())

    def test_every_verb_reads_it(self):
        for path in FILES:
            flags = [path, f'--converter={PLUGINS[0]}']
            verdict = json.loads(self.run_command(['verify', *flags]).out)
            self.assertEqual((verdict['status'], verdict['num_partitions']), ('ok', 8))
            explained = self.run_command(['explain', *flags]).out
            self.assertIn('8 devices', explained)
            # c = a b is contracted over y: reduced, never gathered.
            self.assertNotIn('all-gather', explained)
            self.assertIn('num_partitions=8', self.run_command(['partition', *flags]).out)
            self.run_command(['run', *flags, '--random-inputs=1'])

    def test_the_dialects_of_shardy_and_gspmd_mean_the_same(self):
        totals = set()
        for path in FILES:
            report = self.run_command(['explain', path, f'--converter={PLUGINS[0]}',
                                       '--format=json']).out
            collectives = json.loads(report)['collectives']
            totals.add(str([(c['opcode'], c['bytes_moved']) for c in collectives]))
        self.assertEqual(len(totals), 1, totals)

    def test_the_plugin_may_be_named_by_the_environment(self):
        os.environ['SHARDCALL_CONVERTER'] = PLUGINS[0]
        try:
            self.run_command(['print', FILES[0]])
        finally:
            del os.environ['SHARDCALL_CONVERTER']

    def test_what_is_no_program_is_the_plugins_to_say(self):
        for text in ('module @f {\n  garbage\n}\n', 'ML\xefR garbage'):
            path = os.path.join(os.environ.get('TMPDIR', '/tmp'), f'bad.{os.getpid()}.mlir')
            with open(path, 'w', encoding='latin-1') as f:
                f.write(text)
            for plugin in PLUGINS:
                result = self.run_command(['print', path, f'--converter={plugin}'], 1)
                self.assertIn('E334', result.err)
            os.remove(path)

    def test_a_converter_that_is_none_is_told(self):
        result = self.run_command(['print', FILES[0], '--converter=/no/such/file.so'], 1)
        self.assertIn('E143', result.err)

    def test_a_converter_that_is_too_old_for_the_program_is_named_with_what_would_do(self):
        # Replica groups by the axes of a mesh, as JAX 0.12 writes them.
        program = os.path.join(ROOT, 'tests/data/stablehlo/bytecode/mesh_groups')
        plugin = os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN')
        if not plugin:
            self.skipTest("XLA:CPU's plugin is not there")
        for form in ('.mlir', '.mlirbc'):
            result = self.run_command(['print', program + form, f'--converter={plugin}'], 1)
            self.assertRegex(result.err, r'E334 the converter "\S+xla_cpu_pjrt.so" cannot parse this '
                             r'StableHLO, and may be too old for it at \S+mesh_groups')
            self.assertRegex(result.err, r'expected StableHLO as of v1\.\d+\.\d+, found .*unknown')
            self.assertIn('shardcall.partition', result.err)
        # Bytecode needs no converter.
        self.assertIn("replica_groups=mesh['a'=4,'b'=2] {'a':(1)2,'b'}",
                      self.run_command(['print', program + '.mlirbc']).out)

    def test_nothing_is_left_behind(self):
        self.run_command(['print', FILES[0], f'--converter={PLUGINS[0]}'])
        self.assertFalse(glob.glob('/dev/shm/shardcall.*'))


if __name__ == '__main__':
    if not PLUGINS:
        print('skipped: no PJRT plugin is named')
        sys.exit(77)
    unittest.main()
