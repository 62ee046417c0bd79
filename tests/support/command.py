# SPDX-License-Identifier: Apache-2.0
"""What tests of the `shardcall` command share: running it with a time limit,
finding HLO files, and the families that must work without exception.

The command's path stands in the environment variable SHARDCALL_COMMAND.
"""

import glob
import math
import os
import re
import signal
import subprocess
import sys

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'data')
FAMILIES = ('mlp_', 'llama_', 'moe_onehot_', 'shard_map_', 'embed_cross_entropy')
SKIPPED = 77  # ctest's SKIP_RETURN_CODE

# Manifests with a rule for every target of the corpus that has none in the text.
# (The GSPMD form of a custom_partitioning call holds only the address of a Python
# object.) Without them such a program is E101.
RULES = [os.path.join(DATA, 'plugins', name)
         for name in ('custom_partitioning.json', 'custom_calls.json')]
RULE_FLAGS = ['--plugin=' + path for path in RULES]
# No form of such a call holds its function: the manifest names the kernels.
KERNEL_LOST = re.compile(r'fft_custom_partitioning')


RETRIED = []  # arguments of every command that was run again, see run()


class Result:
    """Exit status and output; `code` is None where the time limit passed, `retried` says
    that it had passed once."""

    def __init__(self, code, out, err, retried=False):
        self.code, self.out, self.err, self.retried = code, out, err, retried

    @property
    def fault(self):
        """Text for what is always a bug, a signal or a hang; else ''."""
        if self.code is None:
            return 'hang'
        # 128 + n: a launcher or a shell reports the signal of its child.
        number = -self.code if self.code < 0 else self.code - 128
        if self.code < 0 or self.code > 128:
            try:
                return 'signal ' + signal.Signals(number).name
            except ValueError:
                return f'exit {self.code}'
        return ''

    @property
    def diagnostic(self):
        """The code of the first error, such as E101; '' if there is none."""
        found = re.search(r'\bE\d{3}\b', self.err)
        return found.group(0) if found else ''


def command_path():
    path = os.environ.get('SHARDCALL_COMMAND')
    if not path:
        raise SystemExit('SHARDCALL_COMMAND does not name the shardcall command')
    return path


def run(args, stdin=b'', timeout=10.0, env=None, prefix=(), text=True):
    """Runs the command in a process group of its own, ended as one at the limit.

    What passed its limit runs once more with six times as long: a machine that
    stood still for a while is no hang, and a hang comes again. That is said on
    standard error, and noted in RETRIED and in the result."""
    full_env = dict(os.environ, OPENBLAS_NUM_THREADS='1', **(env or {}))
    retried = False
    for limit in (timeout, 6 * timeout):
        process = subprocess.Popen([*prefix, command_path(), *map(str, args)], env=full_env,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(stdin, timeout=limit)
            code = process.returncode
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            code = None
            if limit == timeout:
                retried = True
                RETRIED.append(args)
                print(f'RETRIED after {timeout:g} s: {" ".join(map(str, args))}', file=sys.stderr,
                      flush=True)
    if text:
        out, err = out.decode(errors='replace'), err.decode(errors='replace')
    else:
        err = err.decode(errors='replace')
    return Result(code, out, err, retried)


def hlo_files(corpus_only=False):
    """Paths of all *.hlo files by name: tests/data/hlo, the same programs as JAX 0.12 dumps them,
    SHARDCALL_CORPUS, and SHARDCALL_NEWEST_CORPUS, which is that of the newest JAX."""
    dirs = [] if corpus_only else [os.path.join(DATA, name) for name in ('hlo', 'hlo_jax_0_12')]
    dirs += [os.environ[name] for name in ('SHARDCALL_CORPUS', 'SHARDCALL_NEWEST_CORPUS')
             if os.environ.get(name)]
    files = {os.path.basename(f): f for d in dirs for f in glob.glob(os.path.join(d, '*.hlo'))}
    return [files[name] for name in sorted(files)]


def sampled(items, first=0):
    """Of the full corpus's programs, from the first-th on, every N-th, where
    SHARDCALL_CORPUS_EVERY=N: for tests that take seconds for each. An odd N, since most programs
    come in two forms one after the other."""
    return items[first::int(os.environ.get('SHARDCALL_CORPUS_EVERY') or 1)]


def in_families(path):
    return os.path.basename(path).startswith(FAMILIES)


def header(path):
    with open(path, encoding='utf-8', newline='') as f:
        return f.readline()


def device_flags(path):
    """Dumps of programs for other platforms lack num_partitions: as many devices
    as their first iota tiling has."""
    if 'num_partitions' in header(path):
        return []
    with open(path, encoding='utf-8', newline='') as f:
        text = f.read()
    found = re.search(r'<=\[([\d,]+)\]', text)
    devices = math.prod(int(n) for n in found.group(1).split(',')) if found else 1
    return [f'--num-partitions={devices}']


def plugin_flags(path):
    """What running the program needs beside it."""
    return RULE_FLAGS if KERNEL_LOST.search(os.path.basename(path)) else []


def twin(name):
    """The file of JAX 0.10.2 that holds the program of a file of JAX 0.12; else the name itself."""
    return name.replace('.jax12.hlo', '.sdy.hlo').replace('.gspmd12.hlo', '.gspmd.hlo')


def is_of_newest(name):
    """Whether JAX 0.12 dumped the file."""
    return twin(name) != name


def numerics(path, kind):
    """The npz file beside an HLO file, or beside its twin: kind is inputs or outputs; None if
    absent."""
    name = re.sub(r'(\.(sdy|gspmd|v3))?\.hlo$', f'.{kind}.npz', twin(os.path.basename(path)))
    for folder in (os.path.dirname(path), os.path.join(DATA, 'hlo')):
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None
