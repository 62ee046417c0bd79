#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with custom calls: each partitions with the manifests of tests/data/plugins,
which have one rule per target; without them E101 lists every missing target at once;
and those with a kernel and inputs do what one device does.

  SHARDCALL_COMMAND=build/bin/shardcall custom_call_corpus.py [NAME_PART...]

Over tests/data/hlo, and SHARDCALL_CORPUS where that is set.
"""

import collections
import concurrent.futures
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402

FAMILY = re.compile(r'^(custom_call_api_|linalg_|fft_custom_)|_calls_|_ruled_')
CALL = re.compile(r'^\s*(?:ROOT )?%?([\w.-]+) = .*custom-call\(.*custom_call_target="([^"]+)"')
# What is no computation: annotations and where manual regions begin and end.
ANNOTATIONS = re.compile(r'^(Sharding|SPMD(FullToShard|ShardToFull)Shape|xla\.sdy\..*|'
                         r'annotate_device_placement|InspectSharding)$')
# The call says its rule, or that it runs on one device.
RULED = re.compile(r'xla\.sdy\.sharding_rule=|num_batch_dims=|sharding=\{\{?(?:maximal|single_device)')
MISSING = re.compile(r'E101 target "([^"]+)" \(%([\w.-]+)\)')

FOUR_UNKNOWN = """HloModule four, num_partitions=4

body {
  p = (s32[], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8,4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8,4] custom-call(x), custom_call_target="in_a_loop"
  ROOT t = (s32[], f32[8,4], f32[8,4]) tuple(j, x, y)
}

condition {
  p = (s32[], f32[8,4], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  a = f32[8,4] custom-call(x), custom_call_target="first"
  known = f32[8,4] custom-call(a), custom_call_target="custom_relu"
  b = (f32[8,4], f32[8]) custom-call(x, a), custom_call_target="second"
  c = f32[8,4] get-tuple-element(b), index=0
  again = f32[8,4] custom-call(x), custom_call_target="first"
  zero = s32[] constant(0)
  s = (s32[], f32[8,4], f32[8,4]) tuple(zero, x, a)
  w = (s32[], f32[8,4], f32[8,4]) while(s), condition=condition, body=body
  d = f32[8,4] get-tuple-element(w), index=2
  ROOT r = (f32[8,4], f32[8,4], f32[8,4], f32[8,4]) tuple(known, c, again, d)
}
"""


def calls(text):
    """[(instruction, target, line)] of all custom calls that compute."""
    found = [(m, line) for line in text.splitlines() if (m := CALL.match(line))]
    return [(m.group(1), m.group(2), line) for m, line in found
            if not ANNOTATIONS.match(m.group(2))]


def known_targets():
    """Names that the command itself has rules for, and those of the manifests."""
    own = set(re.findall(r'^(\S+)\s', command.run(['targets']).out, re.M))
    manifests = set()
    for path in command.RULES:
        with open(path, encoding='utf-8') as f:
            names = [t['name'] for t in json.load(f)['targets'] if 'backend_config' not in t]
        repeated = [n for n, count in collections.Counter(names).items() if count > 1]
        if repeated:
            raise SystemExit(f'{os.path.basename(path)} has several rules for {repeated}')
        manifests |= set(names)
    return own, manifests


def examine(path, own, manifests):
    """What is wrong with one file: a list of texts."""
    wrong = []
    with open(path, encoding='utf-8', newline='') as f:
        text = f.read()
    flags = command.device_flags(path)
    all_calls = calls(text)
    for name, target, _ in all_calls:
        if target not in own | manifests and target != 'CustomSPMDPartitioning':
            wrong.append(f'no manifest has a rule for {target} (%{name})')

    with tempfile.TemporaryDirectory() as directory:
        report = os.path.join(directory, 'report.json')
        args = ['partition', path, *flags, '-o', os.path.join(directory, 'local.hlo')]
        result = command.run([*args, *command.RULE_FLAGS, '--report=' + report], timeout=30)
        if result.code != 0:
            wrong.append(f'with its rules: {result.fault or result.err[:300]}')
        else:
            with open(report, encoding='utf-8') as f:
                wrong += [f'a custom call falls back: {x}' for x in json.load(f)['fallbacks']
                          if x['opcode'] == 'custom-call']

        result = command.run(args, timeout=30)
        missing = {target for target, _ in MISSING.findall(result.err)}
        expected = {t for _, t, line in all_calls if t not in own and not RULED.search(line)}
        # In a manual region every device has all that the call needs.
        if 'manual' in os.path.basename(path):
            expected = set()
        if missing != expected or (result.code != 0) != bool(expected):
            wrong.append(f'E101 for {sorted(missing)}, expected for {sorted(expected)}: '
                         f'{result.fault or result.err[:300]}')

    if command.numerics(path, 'inputs'):
        result = command.run(['verify', path, *flags, *command.RULE_FLAGS], timeout=60)
        if result.code != 0:
            wrong.append(f'verify: {result.fault or result.out[:300] + result.err[:300]}')
    return wrong


def four_unknown():
    """E101 for each of a program's unknown calls, in a loop too, in one run."""
    result = command.run(['partition', '-', '-o', os.devnull], stdin=FOUR_UNKNOWN.encode())
    found = sorted(MISSING.findall(result.err))
    expected = [('first', 'a'), ('first', 'again'), ('in_a_loop', 'y'), ('second', 'b')]
    return [] if found == expected and result.code == 1 else [f'{found}: {result.err[:500]}']


def main():
    own, manifests = known_targets()
    files = [f for f in command.hlo_files() if FAMILY.search(os.path.basename(f))
             and (not sys.argv[1:] or any(part in f for part in sys.argv[1:]))]
    failures = [('four unknown targets', text) for text in four_unknown()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, wrong in zip(files, pool.map(lambda f: examine(f, own, manifests), files)):
            failures += [(os.path.basename(path), text) for text in wrong]
    for name, text in failures:
        print(f'{name}: {text}')
    print(f'{len(files)} files, {len(failures)} failures')
    return 1 if failures or not files else 0


if __name__ == '__main__':
    sys.exit(main())
