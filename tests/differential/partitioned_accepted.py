#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XLA accepts what `shardcall partition` writes.

Every *.hlo file of tests/data/hlo, and of the folder SHARDCALL_CORPUS, is
partitioned. In the families that must work without exception that succeeds (with
a manifest where only that can supply a custom call's rule), and every output
passes jaxlib's parser and its HLO verifier: the text is read, converted to
StableHLO (which verifies collectives and shapes) and handed to the CPU compiler
with all passes off, so that little but the verifier at the head of each pipeline
runs; a transform that raises stops it before code generation. The devices are not
needed: all partitions are assigned to device 0.

The entry layout does not survive the conversion, so its shapes are compared with
the entry computation's here. Broken programs are checked to be refused.

  SHARDCALL_COMMAND=build/bin/shardcall partitioned_accepted.py [NAME_PART...]

Exit status 77: jaxlib is not there.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402
import jaxlib_parser  # noqa: E402

STOP = 'STOPPED_BEFORE_CODE_GENERATION'
SECONDS_A_FILE = 60

# Replacements in a partitioned program with collectives that make it invalid:
# a test that could not fail would prove nothing.
BREAKAGES = [
    (r'source_target_pairs=\{\{(\d+),(\d+)\},\{(\d+),\d+\}',
     r'source_target_pairs={{\1,\2},{\3,\2}'),
    (r'replica_groups=\{\{0,2,4,6\}', r'replica_groups={{0,2,4,4}'),
    (r'= f32\[8,2\](\S* all-gather)', r'= f32[7,2]\1'),
    (r'entry_computation_layout=\{\(f32\[2,2\]', r'entry_computation_layout={(f32[2,3]'),
]
BREAKABLE = 'shard_map_collectives_d4m2.sdy.hlo'


def entry_shapes_differ(text):
    """What is wrong between the header's entry layout and ENTRY's own shapes; ''."""
    bare = re.sub(r'/\*.*?\*/', '', text)
    layout = re.search(r'entry_computation_layout=\{\((.*)\)->', bare.split('\n', 1)[0])
    entry = re.search(r'^ENTRY [^\n(]*\((.*)\) -> ', bare, re.M)
    if not layout or not entry:
        return '' if not layout else 'no ENTRY line with shapes'
    arrays = r'\b[a-z]\w*\[[^\]]*\]'
    said, is_ = re.findall(arrays, layout.group(1)), re.findall(arrays, entry.group(1))
    return '' if said == is_ else f'entry layout has parameters {said}, ENTRY has {is_}'


def verify(text):
    """'' if XLA accepts the text, else the reason. May abort the process."""
    import numpy as np
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import _hlo, _jax, _xla
    from jaxlib.mlir import ir
    try:
        module = _hlo.hlo_module_from_text(text)
    except Exception as e:  # pylint: disable=broad-except
        return f'parser: {e}'
    differ = entry_shapes_differ(text)
    if differ:
        return differ
    found = re.search(r'num_partitions=(\d+)', text.split('\n', 1)[0])
    n = int(found.group(1)) if found else 1
    options = _jax.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = n
    build.use_spmd_partitioning = n > 1
    options.device_assignment = _jax.DeviceAssignment.create(np.zeros((1, n), np.int32))
    build.debug_options.xla_enable_hlo_passes_only = 'HLO passes after scheduling'

    def stop(_):
        raise RuntimeError(STOP)

    client = jax.devices('cpu')[0].client
    _xla.register_xla_transform('stop', 1, stop)
    try:
        stablehlo = _jax.mlir.xla_computation_to_mlir_module(
            _hlo.XlaComputation(module.as_serialized_hlo_module_proto()))
        with mlir.make_ir_context():
            parsed = ir.Module.parse(stablehlo)
            client.compile_and_load(parsed, _jax.DeviceList((client.devices()[0],)), options)
    except Exception as e:  # pylint: disable=broad-except
        return '' if STOP in str(e) else f'verifier: {e}'
    finally:
        _xla.clear_xla_transform('stop', 1)
    return 'the compiler was not stopped before code generation'


def worker():
    """Reads paths, answers one line of JSON each."""
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what XLA prints is no answer
    for line in sys.stdin:
        with open(line.rstrip('\n'), encoding='utf-8', newline='') as f:
            answers.write(json.dumps(verify(f.read())) + '\n')
        answers.flush()


class Oracle:
    """XLA in a process of its own, which it may abort: the next call gets another."""

    def __init__(self):
        self.process = self.log = None

    def start(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), '--worker'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=dict(os.environ, JAX_PLATFORMS='cpu', TF_CPP_MIN_LOG_LEVEL='2'))

    def close(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.log.close()
            self.process = None

    def ask(self, path):
        if self.process is None:
            self.start()
        self.process.stdin.write(path + '\n')
        self.process.stdin.flush()
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            answer = reader.submit(self.process.stdout.readline)
            try:
                line = answer.result(timeout=SECONDS_A_FILE)
            except concurrent.futures.TimeoutError:
                self.process.kill()  # ends the reader's line too
                line = None
        if line:
            return json.loads(line)
        status = self.process.wait()
        self.log.seek(0)
        told = [x for x in self.log.read().decode(errors='replace').splitlines() if 'F0000' in x
                or 'Check failed' in x]
        self.close()
        if line is None:
            return f'XLA took more than {SECONDS_A_FILE} s'
        return f'XLA ended with status {status}: ' + ' '.join(told[-1:])


def check_refusals(oracle, text, directory):
    """How many broken programs XLA took for good ones."""
    missed = 0
    for k, (pattern, replacement) in enumerate(BREAKAGES):
        broken, count = re.subn(pattern, replacement, text, count=1)
        path = os.path.join(directory, f'broken_{k}.hlo')
        with open(path, 'w', encoding='utf-8', newline='') as f:
            f.write(broken)
        if count != 1:
            print(f'{BREAKABLE}: there is no place to break by {pattern}')
            missed += 1
        elif not oracle.ask(path):
            print(f'{BREAKABLE}: accepted although broken by {replacement}')
            missed += 1
    return missed


def main():
    if sys.argv[1:] == ['--worker']:
        worker()
        return 0
    try:
        from jaxlib import _hlo, _jax, _xla  # noqa: F401
        import jax  # noqa: F401
        _hlo.hlo_module_from_text, _xla.register_xla_transform  # pylint: disable=pointless-statement
    except (ImportError, AttributeError) as e:
        print(f'SKIPPED: jaxlib with an HLO parser and a compiler cannot be imported ({e}); '
              'pip install jax')
        return command.SKIPPED
    newer = jaxlib_parser.writes_elements_without_names()
    files = [f for f in command.hlo_files() if command.is_of_newest(f) == newer
             if not sys.argv[1:] or any(part in f for part in sys.argv[1:])]
    failures = accepted = refused = 0
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as directory:
        def partition(path):
            out = os.path.join(directory, os.path.basename(path))
            args = ['partition', path, '-o', out, *command.device_flags(path)]
            result = command.run(args, timeout=30)
            if result.diagnostic == 'E101':
                result = command.run([*args, *command.RULE_FLAGS], timeout=30)
            return path, out, result

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, out, result in pool.map(partition, files):
                name = os.path.basename(path)
                if result.code != 0:
                    if result.fault or command.in_families(path) or result.diagnostic == 'E101':
                        print(f'{name}: {result.fault or "not partitioned"}: {result.err[:500]}')
                        failures += 1
                    refused += 1
                    continue
                reason = oracle.ask(out)
                if reason:
                    print(f'{name}: rejected by XLA: {reason[:1000]}')
                    failures += 1
                else:
                    accepted += 1
        example = os.path.join(directory, BREAKABLE)
        if os.path.exists(example):
            with open(example, encoding='utf-8', newline='') as f:
                failures += check_refusals(oracle, f.read(), directory)
        oracle.close()
    print(f'{len(files)} files: {accepted} partitioned and accepted by XLA, '
          f'{refused} not partitioned, {failures} failures')
    return 1 if failures or not files else 0


if __name__ == '__main__':
    sys.exit(main())
