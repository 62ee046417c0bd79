# SPDX-License-Identifier: Apache-2.0
"""The two that are compared: XLA in a worker process, and the shardcall command."""

import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading

import numpy as np

import command
import hlo_types as T
import suite

HERE = os.path.dirname(os.path.abspath(__file__))


class Refused(Exception):
    """The engine cannot run the program; the text says why."""


class Died(Refused):
    """The engine's process ended, or hung, over the program."""


class Xla:
    def __init__(self, timeout):
        self.timeout = timeout
        self.process = None

    def run(self, text, inputs, results):
        if {name for name, _ in results} & {'s1', 'u1'} or re.search(r'\b[su]1\[', text):
            raise Refused('StableHLO, the way into it, has no integers of one bit')
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, os.path.join(HERE, 'xla_worker.py')], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        timer = threading.Timer(self.timeout, self.process.kill)
        timer.start()
        try:
            pickle.dump((text, inputs), self.process.stdin)
            self.process.stdin.flush()
            status, answer = pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            code = self.process.wait()
            self.process = None
            if code >= 0:
                raise Died(f'its process ended with status {code}') from None
            raise Died(f'aborts (signal {-code})' if timer.is_alive() else 'hangs') from None
        finally:
            timer.cancel()
        if status != 'ok':
            raise Refused(re.sub(r'\s+', ' ', answer)[:200])
        return answer

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def stored(array):
    """As `shardcall run` reads it: types that numpy lacks by their bits."""
    name = T.NAMES[array.dtype]
    if name in T.INTEGERS and T.bits(name) < 8:
        return array.astype(np.int8 if name[0] == 's' else np.uint8)
    return T.raw(array) if array.dtype.isbuiltin != 1 else array


def loaded(array, name):
    dtype = T.DTYPES[name]
    if array.dtype == dtype:
        return array
    if name in T.INTEGERS:
        return array.astype(dtype)
    return array.view(dtype)


class Ours:
    def __init__(self, timeout):
        self.timeout = timeout

    def run(self, text, inputs, results):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, n) for n in ('ops.hlo', 'in.npz', 'out.npz')]
            with open(paths[0], 'w', encoding='utf-8') as f:
                f.write(text)
            arrays = {f'arg{k}': stored(np.asarray(x)) for k, x in enumerate(inputs)}
            np.savez(paths[1], dtypes=np.array([T.NAMES[np.asarray(x).dtype] for x in inputs]),
                     **arrays)
            result = command.run(['run', paths[0], '--num-partitions=1', '--inputs=' + paths[1],
                                  '--outputs=' + paths[2]], timeout=self.timeout)
            if result.fault:
                raise Refused('**' + result.fault + '**')
            if result.code != 0:
                raise Refused(re.sub(r'\s+', ' ', result.err)[:300])
            with np.load(paths[2]) as out:
                return [loaded(out[f'out{k}'], t) for k, (t, _) in enumerate(results)]


def run_all(engine, cases):
    """{id(case): list of arrays, or Refused}. What one program of all cases cannot
    do is found by halving it."""
    if not cases:
        return {}
    text, inputs, leaves = suite.merge(cases)
    results = [r for c in cases for r in c.result_types()]
    try:
        arrays = engine.run(text, inputs, results)
        if len(arrays) != len(results):
            raise Refused(f'{len(arrays)} results in place of {len(results)}')
    except Refused as e:
        if len(cases) == 1:
            return {id(cases[0]): e}
        half = len(cases) // 2
        return {**run_all(engine, cases[:half]), **run_all(engine, cases[half:])}
    out, at = {}, 0
    for case, count in zip(cases, leaves):
        out[id(case)] = arrays[at:at + count]
        at += count
    return out
