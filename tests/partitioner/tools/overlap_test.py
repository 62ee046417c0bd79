#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overlap by the command: what it prints, and the same bytes with and without it,
on threads and over MPI (--mpiexec)."""

import argparse
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

# Two layers, the contracted dimension of each cut over 4 devices; the gradients of
# the weights need no sum, so they are made while sums are under way.
LAYERS = """HloModule layers, num_partitions=4

ENTRY main {
  y = f32[256,512] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[512,512] parameter(1), sharding={devices=[4,1]<=[4]}
  x = f32[256,512] parameter(2), sharding={devices=[1,4]<=[4]}
  sum = f32[256,512] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
  dw = f32[512,512] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
  act = f32[256,512] negate(sum), sharding={replicated}
  ROOT out = (f32[256,512], f32[512,512]) tuple(act, dw), sharding={{replicated}, {devices=[4,1]<=[4]}}
}
"""
MPIEXEC = None


class Overlap(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.program = self.path('layers.hlo')
        with open(self.program, 'w', encoding='utf-8') as f:
            f.write(LAYERS)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run_ok(self, *args, **kwargs):
        result = command.run(args, timeout=120, **kwargs)
        self.assertEqual(('', 0), (result.fault, result.code), (args, result.err[-800:]))
        return result.out

    def outputs(self, *args, **kwargs):
        path = self.path('out.npz')
        self.run_ok('run', self.program, '--random-inputs=3', f'--outputs={path}', *args, **kwargs)
        with open(path, 'rb') as f:
            return f.read()

    def test_the_program_is_printed_as_it_runs(self):
        plain = self.run_ok('partition', self.program)
        self.assertNotIn('-start(', plain)
        text = self.run_ok('partition', self.program, '--overlap', '--dump=' + self.path('stages'))
        start, done = text.index('all-reduce-start('), text.index('all-reduce-done(')
        self.assertLess(start, done)
        self.assertIn(' dot(', text[start:done])
        dumped = sorted(os.listdir(self.path('stages')))[-1]
        self.assertIn('overlap', dumped)
        self.assertEqual(text, self.run_ok('print', '-', stdin=text.encode()))

    def test_results_have_the_same_bytes_with_and_without(self):
        self.assertEqual(self.outputs(), self.outputs('--no-overlap'))
        self.assertIn('"status": "ok"', self.run_ok('verify', self.program))
        self.assertIn('"status": "ok"', self.run_ok('verify', self.program, '--no-overlap'))

    def test_over_mpi_too(self):
        if not MPIEXEC:
            self.skipTest('no MPI')
        over_mpi = {'prefix': (MPIEXEC, '-np', '4')}
        threads = self.outputs()
        self.assertEqual(threads, self.outputs('--backend=mpi', **over_mpi))
        self.assertEqual(threads, self.outputs('--backend=mpi', '--no-overlap', **over_mpi))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--mpiexec')
    known, rest = parser.parse_known_args()
    MPIEXEC = known.mpiexec
    unittest.main(argv=[sys.argv[0], *rest])
