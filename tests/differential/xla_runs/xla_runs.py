#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XLA runs what `shardcall partition` writes, with our numbers and JAX's.

  SHARDCALL_COMMAND=build/bin/shardcall xla_runs.py --handlers=LIBRARY [--full] [--cases=DIR]
                                                    [NAME_PART...]

Without --full a choice of tests/data/hlo, or where jaxlib is of 0.12 or later, what has numbers in
tests/data/hlo_jax_0_12. With it all of the files of the JAX of that version, in SHARDCALL_CORPUS or
SHARDCALL_NEWEST_CORPUS, too.
--cases: a folder of cases that random_programs --cases or the tests of
tests/partitioner/spmd wrote. README.md tells the rest. Exit status 77: jaxlib is not there.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'support'), os.path.join(HERE, '..', 'ops')]
import command  # noqa: E402
import jaxlib_parser  # noqa: E402

# In every run: a program of each kind, in one of its forms.
SLICE = [
    'mlp_train_d4m2.sdy', 'mlp_uneven_b3_d4m2.gspmd', 'mlp_unreduced_m4.v3', 'mlp_permuted_d8.gspmd',
    'moe_onehot_tiny_e4m2.gspmd', 'embed_cross_entropy_d4m2.gspmd',
    'shard_map_collectives_d4m2.sdy', 'shard_map_pipeline_s4m2.gspmd', 'shard_map_nested_d4m2.v3',
    'llama_scan4_train_tiny_calls_d4m2.sdy', 'fft_custom_partitioning_last_d8.sdy',
    'conv_kinds_h4w2.sdy', 'embed_decode_tiny_d4m2.gspmd', 'embed_indexed_d4m2.sdy',
    'embed_order_d4m2.gspmd', 'linalg_lu_d8.sdy', 'linalg_eigh_rows_d4m2.gspmd',
    'random_draws_threefry2x32_d4m2.sdy', 'custom_call_api_v4_tuple.sdy', 'custom_call_api_v4.gspmd',
]


def known():
    """{program: {"why", ...}}: "says", of what XLA refuses or answers otherwise, parts of
    what it says, by its versions; "limit", how far floats may be apart; "integers", for the arguments."""
    with open(os.path.join(HERE, 'known.json'), encoding='utf-8') as f:
        return json.load(f)


def program_of(path):
    """The name without the form: mlp_train_d4m2."""
    return os.path.basename(path).split('.')[0]


class Judges:
    """One worker a thread."""

    def __init__(self, devices, handlers, timeout):
        self.make = lambda: engine().Worker(devices, handlers, timeout)
        self.local, self.all = threading.local(), []

    def worker(self):
        if not hasattr(self.local, 'worker'):
            self.local.worker = self.make()
            self.all.append(self.local.worker)
        return self.local.worker

    def close(self):
        for w in self.all:
            w.close()


def engine():
    import engine as module
    return module


def judge_corpus(paths, judges, args):
    import judge
    exceptions = known()
    with tempfile.TemporaryDirectory() as directory, \
            concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        def one(path):
            started = time.time()
            outcome = judge.judge(path, directory, judges.worker(), args.handlers,
                                  exceptions.get(program_of(path)))
            outcome.seconds = time.time() - started
            return outcome
        return list(pool.map(one, paths))


def judge_cases(folder, judges, args):
    """Cases of files: NAME.local.hlo, NAME.json, NAME.inputs.npz, NAME.outputs.npz."""
    import judge
    import known_kinds
    names = sorted(n[:-len('.local.hlo')] for n in os.listdir(folder) if n.endswith('.local.hlo'))

    def ask(place, around=()):
        return judges.worker().ask({
            'local': place + '.local.hlo', 'report': place + '.json',
            'inputs': place + '.inputs.npz', 'expected': [['ours', place + '.outputs.npz']],
            'compile_only': '', 'limit': None, 'elements': 0, 'of_tests': True,
            'around': sorted(around)})

    def one(name):
        place = os.path.join(folder, name)
        answer = ask(place)
        if answer['status'] == 'ok':
            return judge.Outcome(name, 'ran', 'ours')
        outcome = judge.Outcome(name, 'failed', answer['reason'], answer['stage'])
        with open(place + '.local.hlo', encoding='utf-8', newline='') as f:
            text = f.read()
        outcome.around = known_kinds.workarounds_of(
            text, lambda around: ask(place, around)['status'] == 'ok')
        outcome.kind = known_kinds.named(outcome.around) or known_kinds.kind_of(text, outcome.text)
        faults = known_kinds.faults_of(text)
        if faults and not outcome.kind:  # a fault in front of what XLA does not run
            again = ask(place, faults)
            outcome.kind = known_kinds.kind_of(text, again.get('reason', ''))
        if not outcome.kind:
            print(f'{name}: {outcome.stage}: {outcome.text}'[:300], file=sys.stderr, flush=True)
        return outcome
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return list(pool.map(one, names))


def settle(outcomes, exceptions, only_these):
    """Lines of what is wrong: failures without an exception, exceptions without a failure."""
    wrong = []
    for o in outcomes:
        entry = exceptions.get(program_of(o.name))
        says = entry.get('says') if entry else None
        if getattr(o, 'kind', ''):
            continue
        if o.verdict == 'failed' and says is None:
            wrong.append(f'{o.name}: {o.stage}: {o.text}')
        elif o.verdict == 'failed' and not any(part in o.text for part in says):
            wrong.append(f'{o.name}: known to say {says!r}, but says: {o.stage}: {o.text}')
        elif o.verdict != 'failed' and says is not None:
            wrong.append(f'{o.name}: stands in known.json, but {o.verdict}: {says!r}')
    if not only_these:
        missing = set(exceptions) - {program_of(o.name) for o in outcomes}
        wrong += [f'{name}: stands in known.json, but there is no such program'
                  for name in sorted(missing)]
    return wrong


def chosen(args):
    """The files that are judged."""
    newer = jaxlib_parser.writes_elements_without_names()
    paths = [f for f in command.hlo_files() if command.is_of_newest(f) == newer
             and (not args.names or any(part in f for part in args.names))]
    if args.full or args.names:
        return paths
    if newer:
        return [f for f in paths if os.path.dirname(f).startswith(command.DATA)
                and command.numerics(f, 'outputs')]
    paths = [f for f in paths if os.path.basename(f)[:-len('.hlo')] in SLICE]
    assert len(paths) == len(SLICE), 'a program of the slice is gone'
    return paths


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--handlers', default='', help='the library xla_runs_handlers')
    parser.add_argument('--full', action='store_true')
    parser.add_argument('--cases', metavar='DIR')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--devices', type=int, default=16, help='host devices of a worker')
    parser.add_argument('--timeout', type=float, default=300, help='seconds for one program')
    parser.add_argument('--table', help='write {file: verdict} here, as JSON')
    parser.add_argument('--verbose', action='store_true')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    try:
        import jax  # noqa: F401
        import ml_dtypes  # noqa: F401
        from jaxlib import _hlo, _jax
        _hlo.hlo_module_from_text, _jax.mlir.hlo_to_stablehlo  # pylint: disable=pointless-statement
    except (ImportError, AttributeError) as e:
        print(f'SKIPPED: {e}; pip install jax')
        return command.SKIPPED
    judges = Judges(args.devices, args.handlers, args.timeout)
    started = time.time()
    try:
        if args.cases:
            outcomes, exceptions = judge_cases(args.cases, judges, args), {}
        else:
            paths = chosen(args)
            outcomes, exceptions = judge_corpus(paths, judges, args), known()
    finally:
        judges.close()
    newer = jaxlib_parser.writes_elements_without_names()
    whole = args.full and not args.names and os.environ.get(
        'SHARDCALL_NEWEST_CORPUS' if newer else 'SHARDCALL_CORPUS')
    wrong = settle(outcomes, exceptions, only_these=not whole)
    print('\n'.join(wrong))
    if args.verbose:
        for o in outcomes:
            print(f'{o.name}: {o.verdict} {o.text} {getattr(o, "seconds", 0):.2f} s')
    if args.table:
        with open(args.table, 'w', encoding='utf-8') as f:
            json.dump({o.name: [o.verdict, o.stage, o.text] for o in outcomes}, f, indent=1)
    by_kind = collections.Counter(getattr(o, 'kind', '') for o in outcomes)
    for why, count in sorted(by_kind.items()):
        if why:
            print(f'{count} known: {why}')
    counts = {v: sum(o.verdict == v for o in outcomes) for v in ('ran', 'compiled', 'failed')}
    around = sum(bool(getattr(o, 'around', ())) for o in outcomes)
    if around:
        print(f'{around} of those that failed ran with our numbers once rewritten (workarounds.py)')
    print('%d programs: %d ran, %d only compiled, %d failed, %d of them known; %d workers died; '
          '%d findings; %.0f s' % (
              len(outcomes), counts['ran'], counts['compiled'], counts['failed'],
              sum(o.verdict == 'failed' and (program_of(o.name) in exceptions or
                                             bool(getattr(o, 'kind', ''))) for o in outcomes),
              sum(w.deaths for w in judges.all), len(wrong), time.time() - started))
    return 1 if wrong or not outcomes else 0


if __name__ == '__main__':
    sys.exit(main())
