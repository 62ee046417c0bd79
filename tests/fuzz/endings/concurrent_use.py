#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random concurrent use of the Python package: threads that partition, run, verify and check,
forks, interrupts, limits, and exits at any time.

    concurrent_use.py [--seed=S] [--seconds=T] [--count=N] [--jobs=J]

Each case is a process with a plan made from its seed. It must end in time, with the status that the
plan says, and never by a signal or with the words of an abort; results that it has must be right.
A failure prints its seed, and `--seed=S --count=1` runs it again. Status 1 if any case failed.
"""
import argparse
import concurrent.futures
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
from endless_programs import loop, product  # noqa: E402

LIMIT_S = 240  # of a case, which takes a second on a machine that has little else to do
FAULT = re.compile(r'Fatal Python|terminate called|Segmentation|Abort|corrupt|double free|'
                   r'check failed|Sanitizer|E32[34] ')

class Case:
    """What one process does. Everything random is drawn before threads start."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def work(self, draw):
        """A function that uses the library once, and raises where a result is wrong."""
        import numpy as np
        import shardcall
        kind = draw.choice(['run', 'run', 'run', 'partition', 'verify', 'check', 'limit', 'bad'])
        n, devices = draw.choice([8, 64, 200, 512]), draw.choice([1, 2, 3, 4, 8])
        if kind == 'run':
            program = shardcall.partition(product(n, devices))
            x = np.arange(n * n, dtype=np.float32).reshape(n, n) % 7 - 3
            want = x @ x

            def run():
                got, = program.run([x, x])
                assert np.array_equal(got, want), 'a wrong product'
            return run
        if kind == 'partition':
            text = product(n, devices)
            return lambda: len(shardcall.partition(text).report.collectives)
        if kind == 'verify':
            text = product(min(n, 64), devices)

            def verify():
                assert shardcall.verify(text), 'verify failed'
            return verify
        if kind == 'check':
            def check():
                assert shardcall.check_rule('rms_norm'), 'a rule failed'
            return check
        wanted = 'E346' if kind == 'limit' else 'E001'
        text = loop() if kind == 'limit' else loop().replace('endless', 'f32')

        def fails():
            try:
                shardcall.run(text, [np.ones(8, np.float32)], deadline=0.1)
            except shardcall.Error as e:
                assert e.code == wanted, str(e)
            else:
                raise AssertionError('no error')
        return fails

    def run(self):
        import threading
        draw = self.random
        failed = []

        def use(function, times):
            import shardcall
            for _ in range(times):
                try:
                    function()
                except shardcall.Error as e:
                    if e.code != 'E346':  # the process exits
                        failed.append(e)
                        os._exit(98)
                except AssertionError as e:
                    print('WRONG:', e, file=sys.stderr, flush=True)
                    os._exit(97)

        daemons = []
        for _ in range(draw.randint(0, 4)):
            daemons.append(threading.Thread(target=use, args=(self.work(draw), 1 << 30), daemon=True))
        others = [threading.Thread(target=use, args=(self.work(draw), draw.randint(1, 5)))
                  for _ in range(draw.randint(0, 2))]
        for t in daemons + others:
            t.start()
        own = self.work(draw)
        interrupt = draw.random() < 0.4
        if interrupt:
            threading.Timer(draw.random() * 0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        end = time.monotonic() + draw.random() * 0.6
        try:
            while time.monotonic() < end:
                own()
                if draw.random() < 0.1:
                    self.fork(own)
            if interrupt:
                time.sleep(2)
        except KeyboardInterrupt:
            pass
        how, status = draw.choice(['return', 'exit', 'raise']), draw.randint(0, 50)
        print(f'PLAN {0 if how == "return" else 1 if how == "raise" else status}', flush=True)
        if how == 'exit':
            sys.exit(status)
        if how == 'raise':
            raise RuntimeError('planned')

    @staticmethod
    def fork(function):
        child = os.fork()
        if child == 0:
            try:
                function()
            finally:
                os._exit(0)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                if status != 0:
                    print(f'WRONG: a child ended with {status}', file=sys.stderr, flush=True)
                    os._exit(96)
                return
            time.sleep(0.005)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        print('WRONG: a child hangs', file=sys.stderr, flush=True)
        os._exit(95)


def judge(seed):
    """'' where the case is right, else what is wrong."""
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__), f'--case={seed}'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, 'OPENBLAS_NUM_THREADS': '1'})
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return 'it hangs'
    plan = re.search(r'PLAN (\d+)', out)
    # An interrupt may come while Python itself is at work, such as in its own exit.
    expected = [int(plan.group(1))] if plan else [1]
    if 'KeyboardInterrupt' in err:
        expected += [1, 130, -signal.SIGINT]
    if process.returncode not in expected or FAULT.search(err) or 'WRONG' in err:
        return f'status {process.returncode}, planned {expected}: {err[-1500:]}'
    return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=0)
    parser.add_argument('--count', type=int, default=20)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--case', type=int)
    options = parser.parse_args()
    if options.case is not None:
        Case(options.case).run()
        return 0
    try:
        import numpy  # noqa: F401
        import shardcall  # noqa: F401
    except ImportError as e:
        print(f'SKIPPED: {e}')
        return 77
    end = time.monotonic() + options.seconds
    seeds = iter(range(options.seed, 1 << 60))
    failed = done = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while done < options.count or time.monotonic() < end:
            batch = [next(seeds) for _ in range(min(4 * options.jobs, max(options.count - done, 1))
                                                if not options.seconds else 4 * options.jobs)]
            for seed, wrong in zip(batch, pool.map(judge, batch)):
                done += 1
                if wrong:
                    failed += 1
                    print(f'seed {seed}: {wrong}', flush=True)
    print(f'{done} cases, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
