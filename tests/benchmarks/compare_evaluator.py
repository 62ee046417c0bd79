#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The evaluator's speed and memory against jaxlib's CPU client, both on one thread.

    compare_evaluator.py --bench=build/bin/bench_evaluator [--json=OUT] [--only=A,B]
                         [--seconds=S] [--turns=N] [--no-fusion]

Times are CPU times of one execution, the smallest of several. The two sides run
in N turns each, one after the other, so that both see the machine's quiet and
busy moments; S is the time of each turn. Memory is the resident set above what
it was before for us, and arguments, results and temporaries of the compiled
program for XLA. A ratio above 1 means that we are faster, or need more memory.
Wants jax (pip install jax). The goal is 0.8 of XLA's speed in programs of kind
"products" and 0.4 in those of kind "elementwise", with at most 1.5 of its
memory; the exit code is 0 whatever the ratios.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ['XLA_FLAGS'] = (os.environ.get('XLA_FLAGS', '') +
                           ' --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1')
os.environ['OPENBLAS_NUM_THREADS'] = '1'
os.environ['JAX_PLATFORMS'] = 'cpu'

GOALS = {'products': 0.8, 'elementwise': 0.4}


class Xla:
    """A compiled program with its arguments; writes its HLO text."""

    def __init__(self, function, arguments, text_path):
        import jax
        import numpy as np

        lowered = jax.jit(function, keep_unused=True).lower(*arguments)
        with open(text_path, 'w') as f:
            f.write(lowered.compiler_ir('hlo').as_hlo_text(True))
        self.compiled = lowered.compile()
        memory = self.compiled.memory_analysis()
        self.bytes = (memory.argument_size_in_bytes + memory.output_size_in_bytes +
                      memory.temp_size_in_bytes)
        rng = np.random.default_rng(1)

        def value(s):
            if s.dtype.kind in 'iu':
                return rng.integers(0, 8, s.shape).astype(s.dtype)
            return (rng.integers(-4, 5, s.shape) / 16).astype(s.dtype)

        self.values = jax.tree.map(lambda s: jax.device_put(value(s)), arguments)

    def seconds(self, least):
        """CPU seconds of the fastest of at least 3 runs in `least` seconds."""
        import jax

        best, end, rounds = float('inf'), time.monotonic() + least, 0
        while rounds < 3 or time.monotonic() < end:
            start = time.process_time()
            jax.block_until_ready(self.compiled(*self.values))
            best = min(best, time.process_time() - start)
            rounds += 1
        return best


def measure_ours(command, out):
    """{'seconds', 'peak_bytes'}, or the error as text."""
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return done.stderr.strip()
    with open(out) as f:
        return json.load(f)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bench', required=True, help='the program bench_evaluator')
    parser.add_argument('--only', help='names of programs, separated by commas')
    parser.add_argument('--seconds', type=float, default=0.3, help='least time of a turn')
    parser.add_argument('--turns', type=int, default=4, help='of each side')
    parser.add_argument('--no-fusion', action='store_true')
    parser.add_argument('--json')
    args = parser.parse_args()
    if hasattr(os, 'sched_setaffinity'):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    from evaluator_programs import programs

    rows = []
    print(f'{"XLA ms":>10} {"ours ms":>10} {"speed":>6} {"goal":>5} '
          f'{"XLA MB":>8} {"ours MB":>8} {"memory":>6}')
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, function, arguments in programs():
            if args.only and name not in args.only.split(','):
                continue
            text, out = os.path.join(folder, f'{name}.hlo'), os.path.join(folder, 'out.json')
            xla = Xla(function, arguments, text)
            command = [args.bench, f'--json={out}', f'--seconds={args.seconds}', text]
            if args.no_fusion:
                command.append('--no-fusion')
            xla_seconds, ours = float('inf'), None
            for _ in range(args.turns):
                xla_seconds = min(xla_seconds, xla.seconds(args.seconds))
                turn = measure_ours(command, out)
                if isinstance(turn, str):
                    ours = turn
                    break
                ours = ours or turn
                ours['seconds'] = min(ours['seconds'], turn['seconds'])
                ours['peak_bytes'] = max(ours['peak_bytes'], turn['peak_bytes'])
            if not isinstance(ours, dict):
                print(f'{name}: {ours}')
                continue
            speed, memory = xla_seconds / ours['seconds'], ours['peak_bytes'] / xla.bytes
            rows.append(dict(name=name, kind=kind, xla_seconds=xla_seconds, speed=speed,
                             xla_bytes=xla.bytes, memory=memory, **ours))
            short = ' <' if speed < GOALS[kind] or memory > 1.5 else ''
            print(f'{xla_seconds * 1e3:10.3f} {ours["seconds"] * 1e3:10.3f} {speed:6.2f} '
                  f'{GOALS[kind]:5.1f} {xla.bytes / 1e6:8.1f} {ours["peak_bytes"] / 1e6:8.1f} '
                  f'{memory:6.2f}  {name}{short}', flush=True)
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(rows, f, indent=1)


if __name__ == '__main__':
    sys.exit(main())
