#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random faults of MPI jobs: ranks that are killed, stopped or told to end at any time, and ranks
that are started with other inputs, seeds, flags or kernels.

    mpi_faults.py [--seed=S] [--seconds=T] [--count=N] [--plugins=FOLDER] [--mpiexec=PATH]

A job with a fault ends in time, with another status than 0, and one of its ranks says why; one
without ends with 0 and right results. Nothing ever ends with 0 and wrong results. A failure prints
its seed, and `--seed=S --count=1` runs it again. Status 1 if any job failed. SHARDCALL_COMMAND names
the command.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60
DEADLINE_S = 10  # of a job, which takes a second on a machine that has little else to do


def program(ranks, turns):
    """Sums over the devices `turns` times, so that a job lasts; with a kernel of a library."""
    return f"""HloModule m, num_partitions={ranks}
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
condition {{
  p = (s32[], f32[{2 * ranks},64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({turns})
  ROOT t = pred[] compare(i, n), direction=LT
}}
body {{
  p = (s32[], f32[{2 * ranks},64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[{2 * ranks},64] get-tuple-element(p), index=1
  z = f32[] constant(0)
  s = f32[64] reduce(x, z), dimensions={{0}}, to_apply=add
  k = f32[] constant({2 * ranks})
  kk = f32[64] broadcast(k), dimensions={{}}
  m = f32[64] divide(s, kk)
  y = f32[{2 * ranks},64] broadcast(m), dimensions={{1}}
  ROOT t = (s32[], f32[{2 * ranks},64]) tuple(j, y)
}}
ENTRY main {{
  x = f32[{2 * ranks},64] parameter(0), sharding={{devices=[{ranks},1]<=[{ranks}]}}
  c = f32[{2 * ranks},64] custom-call(x), custom_call_target="faulty_none"
  z = s32[] constant(0)
  t = (s32[], f32[{2 * ranks},64]) tuple(z, c)
  w = (s32[], f32[{2 * ranks},64]) while(t), condition=condition, body=body
  ROOT r = f32[{2 * ranks},64] get-tuple-element(w), index=1
}}
"""


class Job:
    """One job: how each rank is started, and what happens to it."""

    def __init__(self, seed, options, folder):
        import numpy as np
        self.random = random.Random(seed)
        self.launcher_hangs = False  # with no rank left
        draw = self.random
        self.ranks = draw.choice([2, 2, 3, 4])
        self.folder = folder
        self.program = os.path.join(folder, 'm.hlo')
        with open(self.program, 'w') as f:
            f.write(program(self.ranks, draw.choice([1, 10, 3000, 30000])))
        # Rows of equal whole numbers: their mean is exact, and the result is its rows.
        row = np.array([draw.randint(-9, 9) for _ in range(64)], np.float32)
        self.want = np.tile(2 * row, (2 * self.ranks, 1))
        self.inputs = os.path.join(folder, 'in.npz')
        np.savez(self.inputs, arg0=np.tile(row, (2 * self.ranks, 1)))
        self.outputs = os.path.join(folder, 'out.npz')
        plugin = os.path.join(options.plugins, 'libfaulty_plugin.so')
        common = [options.command, 'run', self.program, '--backend=mpi', f'--deadline={DEADLINE_S}']
        self.args = [common + ['--inputs=' + self.inputs, '--plugin=' + plugin,
                               '--outputs=' + self.outputs] for _ in range(self.ranks)]
        self.fault = draw.choice(['none', 'inputs', 'seed', 'flag', 'plugin', 'outputs', 'missing',
                                  'kill', 'kill', 'kill', 'stop', 'stop', 'term', 'launcher'])
        self.victim = draw.randrange(self.ranks)
        self.after = draw.random() * draw.choice([0.3, 1.5])
        self.mix(np, row)

    def mix(self, np, row):
        mine = self.args[self.victim]
        if self.fault == 'inputs':
            other = np.tile(row, (2 * self.ranks, 1))
            other[self.random.randrange(2 * self.ranks), self.random.randrange(64)] += 1
            path = os.path.join(self.folder, 'other.npz')
            np.savez(path, arg0=other)
            mine[5] = '--inputs=' + path
        elif self.fault == 'seed':
            mine[5] = f'--random-inputs={self.random.randint(1, 99)}'
        elif self.fault == 'flag':
            mine.append(self.random.choice(['--no-propagate', '--cost=latency=1']))
        elif self.fault == 'plugin':
            path = os.path.join(self.folder, 'libother.so')
            with open(mine[6].split('=')[1], 'rb') as f, open(path, 'wb') as g:
                g.write(f.read() + b'another build')
            mine[6] = '--plugin=' + path
        elif self.fault == 'outputs':
            del mine[7]
        elif self.fault == 'missing':
            mine[5] = '--inputs=' + os.path.join(self.folder, 'not_there.npz')

    def strike(self, process):
        """Does what the job's fault does while it runs. Whether it came in time."""
        signals = {'kill': signal.SIGKILL, 'stop': signal.SIGSTOP, 'term': signal.SIGTERM}
        if self.fault == 'launcher':
            time.sleep(self.after)
            if process.poll() is not None:
                return False
            process.send_signal(self.random.choice([signal.SIGTERM, signal.SIGINT]))
            return True
        if self.fault not in signals:
            return False
        time.sleep(self.after)
        found = self.living()
        if len(found) != self.ranks:
            return False
        try:
            os.kill(int(found[self.victim]), signals[self.fault])
        except ProcessLookupError:
            return False
        self.struck = int(found[self.victim])
        return True

    def living(self):
        return subprocess.run(['pgrep', '-f', f'^{re.escape(self.args[0][0])} run {self.program}'],
                              capture_output=True, text=True).stdout.split()

    def output(self, process, struck):
        """Standard output and error at the end, and what is wrong where that does not come."""
        for end in range(2):
            try:
                return *process.communicate(timeout=LIMIT_S / 2), ''
            except subprocess.TimeoutExpired:
                # The launcher waits for a stopped rank, whatever the others do.
                if end == 0 and struck and self.fault == 'stop' and len(self.living()) == 1:
                    os.kill(self.struck, signal.SIGKILL)
        # Open MPI's launcher does not always notice the end of its last rank.
        left = self.living()
        os.killpg(process.pid, signal.SIGKILL)
        subprocess.run(['pkill', '-KILL', '-f', self.program])
        out, err = process.communicate()
        if not left:
            self.launcher_hangs = True
            return out, err, ''
        return out, err, f'{len(left)} ranks hang'

    def run(self, mpiexec):
        """'' where the job did what it should, else what is wrong."""
        import numpy as np
        command = [mpiexec]
        for k, args in enumerate(self.args):
            command += ([':'] if k else []) + ['-np', '1', *args]
        environment = {**os.environ, 'OPENBLAS_NUM_THREADS': '1', 'OMPI_ALLOW_RUN_AS_ROOT': '1',
                       'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'OMPI_MCA_mpi_yield_when_idle': '1',
                       'OMPI_MCA_rmaps_base_oversubscribe': '1'}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment, start_new_session=True)
        struck = self.strike(process)
        out, err, hangs = self.output(process, struck)
        if hangs:
            return f'{hangs}: {err[-1500:]}'
        said = f'status {process.returncode}: {err[-1500:]}'
        if process.returncode == 0:
            if self.fault in ('inputs', 'seed', 'plugin', 'outputs', 'missing'):
                return f'a mixture ends with 0: {said}'
            with np.load(self.outputs) as got:
                if not np.array_equal(got['out0'], self.want):
                    return f'a wrong result: {said}'
            return ''
        # A flag may lead to the same program.
        if self.fault == 'none' or (not struck and self.fault in ('kill', 'stop', 'term', 'launcher')):
            return f'it fails without a fault: {said}'
        # A rank that is stopped as it leaves has done its work.
        if self.fault == 'stop' and 'ran on' in err:
            return ''
        if self.fault not in ('kill', 'term', 'launcher') and not re.search(r'\bE\d{3} ', err):
            return f'nobody says why: {said}'
        # The launcher may crash by itself, and says so with its own stack.
        own = err.split('*** Process received signal ***')[0]
        if re.search(r'E32[34] |check failed|Segmentation|terminate called', own):
            return f'a crash: {said}'
        return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=0)
    parser.add_argument('--count', type=int, default=10)
    parser.add_argument('--plugins', required=True)
    parser.add_argument('--mpiexec', default='mpiexec')
    options = parser.parse_args()
    options.command = os.path.abspath(os.environ['SHARDCALL_COMMAND'])
    try:
        import numpy  # noqa: F401
    except ImportError as e:
        print(f'SKIPPED: {e}')
        return 77
    end = time.monotonic() + options.seconds
    counts, done, failed, launchers, seed = {}, 0, 0, 0, options.seed
    while done < options.count or time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            job = Job(seed, options, folder)
            wrong = job.run(options.mpiexec)
        counts[job.fault] = counts.get(job.fault, 0) + 1
        launchers += job.launcher_hangs
        done += 1
        if wrong:
            failed += 1
            print(f'seed {seed}, {job.fault} on rank {job.victim} of {job.ranks}: {wrong}', flush=True)
        seed += 1
    print(f'{done} jobs, {failed} failed, {launchers} launchers left:',
          ', '.join(f'{k} {v}' for k, v in sorted(counts.items())))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
