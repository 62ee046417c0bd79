#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Overlap by the command: what it prints, and the same bytes with and without it,
on threads and over MPI (--mpiexec)."""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../../support'), os.path.join(HERE, '../../differential')]
import command  # noqa: E402
import xla_verifier  # noqa: E402

# Two layers, the contracted dimension of each cut over 4 devices; the gradients of
# the weights need no sum, so they are made while sums are under way.
LAYERS = """HloModule layers, num_partitions=4

ENTRY main {
  y = f32[256,512] parameter(0), sharding={devices=[1,4]<=[4]}
  w = f32[512,512] parameter(1), sharding={devices=[4,1]<=[4]}
  x = f32[256,512] parameter(2), sharding={devices=[1,4]<=[4]}
  z = f32[256,512] parameter(3), sharding={replicated}
  sum = f32[256,512] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
  dw = f32[512,512] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}, sharding={devices=[4,1]<=[4]}
  act = f32[256,512] negate(sum), sharding={replicated}
  ROOT out = (f32[256,512], f32[512,512]) tuple(act, dw), sharding={{replicated}, {devices=[4,1]<=[4]}}
}
"""
# The same again and again, on 2 devices.
LOOP = """HloModule loop, num_partitions=2

body {
  t = (s32[], f32[128,256], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  y = f32[128,256] get-tuple-element(t), index=1
  w = f32[256,256] get-tuple-element(t), index=2
  dw = f32[256,256] get-tuple-element(t), index=3
  total = f32[128,256] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={replicated}
  next = f32[128,256] tanh(total), sharding={replicated}
  grad = f32[256,256] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}, sharding={devices=[2,1]<=[2]}
  acc = f32[256,256] add(dw, grad), sharding={devices=[2,1]<=[2]}
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[128,256], f32[256,256], f32[256,256]) tuple(j, next, w, acc)
}

go {
  t = (s32[], f32[128,256], f32[256,256], f32[256,256]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(100000000)
  ROOT l = pred[] compare(i, n), direction=LT
}

ENTRY main {
  y = f32[128,256] parameter(0), sharding={replicated}
  w = f32[256,256] parameter(1), sharding={devices=[2,1]<=[2]}
  zero = s32[] constant(0)
  t = (s32[], f32[128,256], f32[256,256], f32[256,256]) tuple(zero, y, w, w)
  l = (s32[], f32[128,256], f32[256,256], f32[256,256]) while(t), condition=go, body=body
  ROOT out = f32[128,256] get-tuple-element(l), index=1
}
"""
MPIEXEC = None


def children(pid):
    """Processes that `pid` started, by their ids."""
    found = []
    for name in os.listdir('/proc'):
        try:
            with open(f'/proc/{name}/stat', encoding='ascii', errors='replace') as f:
                if int(f.read().rpartition(')')[2].split()[1]) == pid:
                    found.append(int(name))
        except (OSError, ValueError, IndexError):
            pass
    return found


def cpu_seconds(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
            fields = f.read().rpartition(')')[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


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

    def test_xla_accepts_it(self):
        try:
            verifier = xla_verifier.XlaVerifier()
        except (xla_verifier.Unavailable, ImportError) as e:
            self.skipTest(f'no XLA to ask: {e}')
        texts = [self.run_ok('partition', self.program, '--overlap')]
        for name in ('llama_4layer_train_tiny_calls_d4m2.sdy.hlo', 'mlp_train_d4m2.gspmd.hlo'):
            path = os.path.join(command.DATA, 'hlo', name)
            if os.path.exists(path):
                texts.append(self.run_ok('partition', path, '--overlap', *command.RULE_FLAGS))
        self.assertIn('-start(', texts[0])
        self.assertEqual(['ok'] * len(texts), verifier.check_all(texts))

    def test_over_mpi_a_stopped_rank_is_named_with_the_collective(self):
        if not MPIEXEC:
            self.skipTest('no MPI')
        path = self.path('loop.hlo')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(LOOP)
        text = self.run_ok('partition', path, '--overlap', '--search=none')
        name = re.search(r'%(\S+) = \S+ all-reduce-start\(', text).group(1)
        with subprocess.Popen([MPIEXEC, '-np', '2', command.command_path(), 'run', path,
                               '--random-inputs=1', '--backend=mpi', '--wait=2',
                               '--search=none'],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              start_new_session=True) as job:
            try:
                ranks = []
                # Start-up takes a fraction of that, the loop takes all it can get.
                while len(ranks) < 2 or min(map(cpu_seconds, ranks)) < 2:
                    self.assertIsNone(job.poll(), 'the job has ended')
                    time.sleep(0.1)
                    ranks = children(job.pid)
                os.kill(max(ranks), signal.SIGSTOP)
                out, _ = job.communicate(timeout=60)
            finally:
                for pid in children(job.pid):
                    os.kill(pid, signal.SIGKILL)
                job.kill()
        self.assertIn('E301', out)
        self.assertIn(f'({name})', out)
        self.assertRegex(out, r'rank [01] is stopped')

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
