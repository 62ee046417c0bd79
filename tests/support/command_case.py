# SPDX-License-Identifier: Apache-2.0
"""What tests of the command's contract share: exit codes, a small program, and what must hold of a
run."""

import os
import tempfile
import unittest

import command

OK, INPUT, USAGE, DIFFERENT, ENVIRONMENT = range(5)
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
