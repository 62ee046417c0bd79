#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random JAX programs under sj.jit, with XLA's optimiser as it is.

    live_fuzz.py [--seed=1] [--count=200] [--jobs=1] [--keep=DIR] [--progress=N]

A program is wrong if its numbers are not those of the unpartitioned program in our evaluator, or if
it raises, ends the process or does not return where jax.jit does not. It is shrunk and printed; `--keep` writes it as a script, and
`--progress` prints the counts after every N programs. Exit status 1 with findings, 77 without JAX or
the package.
"""
import argparse
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TIMEOUT = 120  # seconds without an answer
PASS = {'right', 'refused', 'known'}  # kinds of verdicts that are no findings


def set_environment():
    """Before JAX is imported."""
    os.environ.setdefault('XLA_FLAGS', '--xla_force_host_platform_device_count=8')
    os.environ.setdefault('NPROC', '16')  # XLA:CPU stands still on few threads
    os.environ['JAX_PLATFORMS'] = 'cpu'


def worker(first, count, step):
    """Judges programs; a line of JSON for each."""
    set_environment()
    import gc
    import jax
    import judge
    import programs
    import shrink
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for k, seed in enumerate(range(first, first + count * step, step)):
        print(json.dumps({'begins': seed}), file=answers, flush=True)
        program = programs.generated(seed)
        verdict = judge.judge(program)
        answer = {'seed': seed, 'kind': verdict.kind, 'text': verdict.text,
                  'blames': verdict.blames}
        if verdict.kind in ('wrong', 'raised'):
            smaller, verdict = shrink.shrunk(program, verdict)
            answer.update(text=verdict.text, blames=verdict.blames,
                          script=shrink.script(smaller))
        print(json.dumps(answer), file=answers, flush=True)
        if k % 100 == 99:
            jax.clear_caches()
            gc.collect()


def under_jax(seed):
    """Runs a program through jax.jit alone."""
    set_environment()
    import jax
    import judge
    import programs
    judge.Live(programs.generated(seed)).under(jax.jit)


def ends_under_jax(seed):
    """Whether jax.jit ends the process too, or does not return."""
    command = [sys.executable, os.path.abspath(__file__), '--under-jax', f'--seed={seed}']
    try:
        return subprocess.run(command, timeout=TIMEOUT, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode < 0
    except subprocess.TimeoutExpired:
        return True


class Worker:
    """A process that judges every `step`th program; begun anew behind one that ends it."""

    def __init__(self, first, count, step):
        self.next, self.left, self.step = first, count, step
        self.begin()

    def begin(self):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), '--worker', f'--seed={self.next}',
             f'--count={self.left}', f'--step={self.step}'], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL)

    def answers(self):
        """Every answer; a process that ends, or that says nothing for long, is one."""
        import select
        while self.left > 0:
            ready, _, _ = select.select([self.process.stdout], [], [], TIMEOUT)
            line = self.process.stdout.readline() if ready else ''
            if line:
                answer = json.loads(line)
                if 'begins' in answer:
                    continue
            else:
                if not ready:
                    self.process.kill()
                status = self.process.wait()
                kind = 'ended' if ready else 'hangs'
                answer = {'seed': self.next, 'text': f'status {status}', 'blames': '',
                          'kind': 'refused' if ends_under_jax(self.next) else kind}
            self.next += self.step
            self.left -= 1
            yield answer
            if not line and self.left > 0:
                self.begin()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--step', type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument('--keep', help='a folder for the findings')
    parser.add_argument('--progress', type=int, default=0, help='programs between two counts')
    parser.add_argument('--worker', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('--under-jax', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.seed, options.count, options.step)
        return 0
    if options.under_jax:
        under_jax(options.seed)
        return 0
    try:
        import jax  # noqa: F401
        import shardcall.jax  # noqa: F401
    except ImportError as error:
        print(f'skipped: {error}')
        return 77
    import concurrent.futures
    counts = collections.Counter()

    def text():
        return ', '.join(f'{n} {kind}' for kind, n in sorted(counts.items()))

    def run(job):
        count = len(range(job, options.count, options.jobs))
        for answer in Worker(options.seed + job, count, options.jobs).answers():
            counts[answer['kind']] += 1
            if answer['kind'] not in PASS:
                found(answer, options.keep)
            if options.progress and sum(counts.values()) % options.progress == 0:
                print(text(), flush=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, range(options.jobs)))
    print(text())
    return 0 if set(counts) <= PASS else 1


def found(answer, keep):
    print(f'seed {answer["seed"]}: {answer["kind"]}: {answer["text"][:600]} [{answer["blames"]}]\n'
          f'{answer.get("script", "")}', flush=True)
    if keep and 'script' in answer:
        os.makedirs(keep, exist_ok=True)
        with open(os.path.join(keep, f'{answer["kind"]}_{answer["seed"]}.py'), 'w') as f:
            f.write(f'# {answer["text"]}\n# {answer["blames"]}\n{answer["script"]}')


if __name__ == '__main__':
    sys.exit(main())
