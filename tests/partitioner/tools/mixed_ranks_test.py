#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of one MPI job that are started differently are told so before they compute, with E308;
a mixture never ends with status 0.

usage: mixed_ranks_test.py PLUGIN_FOLDER [--mpiexec=PATH]"""

import os
import re
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
# Parameter 0 is cut, parameter 1 is whole on both devices; the kernel of the call, which doubles,
# is a library's.
PROGRAM = """HloModule m, num_partitions=2
ENTRY main {
  x = f32[4,2] parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[2] parameter(1), sharding={replicated}
  c = f32[4,2] custom-call(x), custom_call_target="faulty_none"
  b = f32[4,2] broadcast(y), dimensions={1}
  s = f32[4,2] add(c, b)
  ROOT t = f32[4,2] copy(s), sharding={replicated}
}
"""


class MixedRanks(unittest.TestCase):

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.program = self.path('m.hlo')
        with open(self.program, 'w') as f:
            f.write(PROGRAM)
        self.plugin = os.path.join(FOLDER, 'libfaulty_plugin.so')
        self.x = np.arange(8, dtype=np.float32).reshape(4, 2)
        self.y = np.array([1, 2], np.float32)

    def tearDown(self):
        self.directory.cleanup()

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def inputs(self, name, x, y):
        np.savez(self.path(name), arg0=x, arg1=y)
        return '--inputs=' + self.path(name)

    def start(self, first, second, verb='run', timeout=60.0):
        """Both ranks, each with its arguments."""
        common = [verb, self.program, '--backend=mpi']
        plugin = '--plugin=' + self.plugin
        ranks = [common + (a if any(f.startswith('--plugin') for f in a) else a + [plugin])
                 for a in (first, second)]
        return command.run(ranks[0] + [':', '-np', '1', command.command_path()] + ranks[1],
                           prefix=(MPIEXEC, '-np', '1'), timeout=timeout)

    def told(self, result, *texts):
        self.assertEqual(result.fault, '', result.err)
        self.assertNotEqual(result.code, 0, result.err)
        for text in texts:
            self.assertRegex(result.err, text)
        self.assertNotIn('ran on', result.err)

    def test_equal_ranks_run(self):
        given = self.inputs('a.npz', self.x, self.y)
        out = self.path('out.npz')
        result = self.start([given, '--outputs=' + out], [given, '--outputs=' + out])
        self.assertEqual((result.code, result.fault), (0, ''), result.err)
        with np.load(out) as got:
            self.assertTrue(np.array_equal(got['out0'], 2 * self.x + self.y))

    def test_seeds_that_differ_are_told(self):
        for verb, flag in (('run', '--random-inputs'), ('verify', '--seed')):
            self.told(self.start([flag + '=1'], [flag + '=2'], verb),
                      r'E308 .* differ in input 0, f32\[4,2\] \(rank 0 has values with hash ',
                      r'Fix: Give every rank the same inputs')

    def test_a_rank_without_inputs_is_told(self):
        given = self.inputs('a.npz', self.x, self.y)
        self.told(self.start([given], []), 'E308 .* differ in input 0')

    def test_one_bit_of_one_value_is_told(self):
        other = self.y.copy()
        other[1] = -other[1]
        for x, y, k in ((self.x, other, 1), (self.x * [[1], [1], [1], [-1]], self.y, 0)):
            self.told(self.start([self.inputs('a.npz', self.x, self.y)],
                                 [self.inputs('b.npz', x.astype(np.float32), y)]),
                      rf'E308 .* differ in input {k},')

    def test_ranks_may_have_their_own_shards_where_they_say_so(self):
        own = [self.x.copy(), self.x.copy()]
        own[0][2:] = 77
        own[1][:2] = -77
        given = [self.inputs(f'{k}.npz', own[k], self.y) for k in (0, 1)]
        self.told(self.start([given[0]], [given[1]]), 'E308')
        out = '--outputs=' + self.path('out.npz')
        result = self.start([given[0], '--own-shards-only', out],
                            [given[1], '--own-shards-only', out])
        self.assertEqual((result.code, result.fault), (0, ''), result.err)
        with np.load(self.path('out.npz')) as got:
            self.assertTrue(np.array_equal(got['out0'], 2 * self.x + self.y))
        # What both have must be the same still.
        given[1] = self.inputs('1.npz', own[1], self.y + 1)
        self.told(self.start([given[0], '--own-shards-only'], [given[1], '--own-shards-only']),
                  r'E308 .* differ in input 1, f32\[2\], part 0 ')

    def test_flags_that_change_the_program_are_told(self):
        self.told(self.start([], ['--no-propagate', '--allow-replicate=all']),
                  'E308 the ranks run different programs: rank 0 has program ')

    def test_a_plugin_that_is_another_file_is_told(self):
        other = self.path('libother.so')
        with open(self.plugin, 'rb') as f, open(other, 'wb') as g:
            g.write(f.read())
        result = self.start([], ['--plugin=' + other])  # the same file elsewhere
        self.assertEqual((result.code, result.fault), (0, ''), result.err)
        with open(other, 'ab') as g:
            g.write(b'another build')
        self.told(self.start([], ['--plugin=' + other]),
                  r'E308 .* differ in the handler of "faulty_none" \(rank 0 has a library of \d+ ')

    def test_outputs_for_some_ranks_only_are_told(self):
        out = '--outputs=' + self.path('out.npz')
        for first, second in (([out], []), ([], [out])):
            self.told(self.start(first, second), 'E308 --outputs is given on rank [01] and not on')
        self.assertFalse(os.path.exists(self.path('out.npz')))

    def test_the_deadline_holds_while_ranks_connect(self):
        began = time.monotonic()
        result = command.run(['run', self.program, '--backend=mpi', '--deadline=1',
                              '--plugin=' + self.plugin, ':', '-np', '1', 'sleep', '30'],
                             prefix=(MPIEXEC, '-np', '1'), timeout=60.0)
        self.told(result, 'E301 not all ranks have connected over MPI within 1s')
        self.assertLess(time.monotonic() - began, 20)

    def test_a_disagreement_is_printed_once(self):
        result = self.start(['--random-inputs=1'], ['--random-inputs=2'])
        self.assertEqual(len(re.findall('E308', result.err)), 1, result.err)


if __name__ == '__main__':
    if not MPIEXEC:
        print('SKIPPED: this build has no MPI')
        sys.exit(command.SKIPPED)
    unittest.main(argv=sys.argv[:1])
