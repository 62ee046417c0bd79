#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs and inputs load nothing that they name (partitioner/TRUST.md). The dynamic loader says
what is loaded, and the same library named by --plugin shows that it would say so."""

import os
import _ctypes
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

# Every place of a program that holds a name or a path.
PROGRAM = """HloModule {lib}, num_partitions=2

ENTRY %main (x: f32[4]) -> f32[4] {{
  %x = f32[4]{{0}} parameter(0), sharding={{devices=[2]<=[2]}}
  %c = f32[4]{{0}} custom-call(%x), custom_call_target="{target}", {api}backend_config="{config}", \
metadata={{op_name="{lib}" source_file="{lib}" source_line=1}}, \
frontend_attributes={{library="{lib}",plugin="{lib}",symbol="{lib}"}}
  ROOT %r = f32[4]{{0}} add(%c, %x), sharding={{devices=[2]<=[2]}}
}}
"""
TYPED = 'api_version=API_VERSION_TYPED_FFI, '


class TrustTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.library = shutil.copy(_ctypes.__file__, os.path.join(self.directory, 'libnamed.so'))

    def loads(self, *args):
        """Whether the command loads the library, and what it says."""
        done = subprocess.run([command.command_path(), *args], capture_output=True, check=False,
                              cwd=self.directory, env=dict(os.environ, LD_DEBUG='files'))
        said = done.stderr.decode(errors='replace')
        if 'dynamically loaded' not in said and 'needed by' not in said:
            self.skipTest('this dynamic loader does not say what it loads')
        return 'libnamed.so [0]' in said

    def test_a_plugin_is_loaded(self):
        self.assertTrue(self.loads('targets', '--plugin=' + self.library))

    def test_a_program_that_names_a_library_does_not_load_it(self):
        path = os.path.join(self.directory, 'program.hlo')
        for target in (self.library, 'libnamed.so', './libnamed.so', 'rms_norm'):
            for config, api in (('{library = \\"%s\\"}' % self.library, TYPED),
                                (self.library, '')):
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(PROGRAM.format(lib=self.library, target=target, config=config,
                                           api=api))
                for verb in ('print', 'propagate', 'partition', 'explain', 'run', 'verify'):
                    with self.subTest(target=target, api=api, verb=verb):
                        self.assertFalse(self.loads(verb, path, '--allow-replicate=' + target))

    def test_a_file_that_is_a_library_is_no_program_and_no_input(self):
        self.assertFalse(self.loads('print', self.library))
        mlp = os.path.join(command.DATA, 'hlo', 'mlp_fwd_d4m2.sdy.hlo')
        self.assertFalse(self.loads('run', mlp, '--inputs=' + self.library))

    def test_a_manifest_of_rules_alone_loads_nothing(self):
        manifest = os.path.join(self.directory, 'rules.json')
        with open(manifest, 'w', encoding='utf-8') as f:
            f.write('{"targets": [{"name": "%s", "rule": "b -> b"}]}' % self.library)
        self.assertFalse(self.loads('targets', '--plugin=' + manifest))


if __name__ == '__main__':
    unittest.main()
