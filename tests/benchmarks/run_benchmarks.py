#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and prints their tables; JSON goes to --out.

    run_benchmarks.py --programs=build/bin --out=build/benchmarks [--corpus=DIR] [--oracle=TOOL.py]

The programs are the llama_* files of --corpus, by default $SHARDCALL_CORPUS, else
the small ones in tests/data/hlo. With llama_scan126_train_plain_d64m8 among them
its mesh is scaled to 65,536 devices; with --oracle (or $SHARDCALL_XLA_ORACLE) XLA
is measured too (compare_xla.py). Exit code 1 where a count of allocations or of
memo misses is above its limit, callbacks are asked too often, or costs grow faster than
programs (measure_costs.py); other times are only shown.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCALED = 'llama_scan126_train_plain_d64m8'
COMPARED = ['llama_4layer_train_plain_d4m2', SCALED]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--programs', required=True, help='folder of the benchmark programs')
    parser.add_argument('--out', required=True)
    parser.add_argument('--corpus', default=os.environ.get('SHARDCALL_CORPUS') or
                        os.path.join(HERE, '..', 'data', 'hlo'))
    parser.add_argument('--mpiexec', default='', help="MPI's launcher, for the collectives over MPI")
    parser.add_argument('--oracle', default=os.environ.get('SHARDCALL_XLA_ORACLE'))
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    bench = os.path.join(args.programs, 'bench_partition')
    failed = False

    def table(title, name, command):
        nonlocal failed
        print(f'\n== {title}', flush=True)
        out = os.path.join(args.out, name)
        failed |= subprocess.run([*command, f'--json={out}']).returncode != 0
        return out

    files = sorted(glob.glob(os.path.join(args.corpus, 'llama_*.hlo')))
    if not files:
        print(f'no llama_*.hlo in {args.corpus}', file=sys.stderr)
        return 2
    print('== Parsing and printing', flush=True)
    failed |= subprocess.run([os.path.join(args.programs, 'bench_ir_text'), *files]).returncode != 0
    table('Stages', 'stages.json', [bench, *files])
    out = table('Chains: time per instruction must not grow', 'chains.json',
                [bench, '--rounds=5', 'chain:1000', 'chain:10000', 'chain:100000'])
    with open(out) as f:
        chains = json.load(f)['programs']
    print('time per instruction against the chain of 1000')
    for p in chains:
        ratios = [f'{s} {p["us"][s] / p["instructions"] * chains[0]["instructions"] / t:.2f}'
                  for s, t in chains[0]['us'].items()]
        print(f'  {p["name"]:14}', ', '.join(ratios))

    print('\n== Plans of reshards', flush=True)
    failed |= subprocess.run([os.path.join(args.programs, 'bench_reshard')]).returncode != 0

    command = os.path.join(args.programs, 'shardcall')
    table('Costs against sizes: no exponent may reach 1.15', 'costs.json',
          [sys.executable, os.path.join(HERE, 'measure_costs.py'), f'--command={command}'])

    table('Custom calls', 'custom_calls.json', [os.path.join(args.programs, 'bench_custom_calls')])

    for kind in ('sdy', 'gspmd'):
        small = os.path.join(args.corpus, f'{SCALED}.{kind}.hlo')
        if not os.path.exists(small):
            continue
        scaled = []
        for factor in (1, 16, 128):
            path = os.path.join(args.out, f'scaled_{512 * factor}_devices.{kind}.hlo')
            subprocess.run([sys.executable, os.path.join(HERE, 'scale_devices.py'), small, '--axis=64',
                            '--batch=256', f'--factor={factor}', '-o', path], check=True)
            scaled.append(path)
        table(f'512 to 65,536 devices, {kind} (the ratio should stay under 1.2)',
              f'devices_{kind}.json', [bench, '--rounds=41', *scaled])
    bench = os.path.join(args.programs, 'bench_collectives')
    results = [table('Collectives of 4 devices in one process', 'collectives_inprocess.json', [bench])]
    if args.mpiexec:
        results.append(table('Collectives of 4 ranks over MPI, beside raw MPI', 'collectives_mpi.json',
                             [args.mpiexec, '-np', '4', bench, '--backend=mpi']))
    results = [path for path in results if os.path.exists(path)]
    if results:
        plot = os.path.join(args.out, 'collectives.svg')
        subprocess.run([sys.executable, os.path.join(HERE, 'plot_collectives.py'), *results, '-o', plot],
                       check=True)
        print(f'drawn in {plot}')

    bench = os.path.join(args.programs, 'bench_overlap')
    for link in ([], ['--link=1']):
        what = ', over an emulated link of 1 GB/s' if link else ''
        name = 'overlap_link' if link else 'overlap'
        table('Computing while collectives are under way' + what, f'{name}_inprocess.json', [bench, *link])
        if args.mpiexec:
            table('The same over MPI' + what, f'{name}_mpi.json',
                  [args.mpiexec, '-np', '2', bench, '--backend=mpi', *link])

    bench = os.path.join(args.programs, 'bench_partition')
    if args.oracle:
        paths = [os.path.join(args.corpus, f'{n}.{k}.hlo') for n in COMPARED for k in ('sdy', 'gspmd')]
        paths = [p for p in paths if os.path.exists(p)]
        if paths:
            table('Against XLA', 'xla.json', [sys.executable, os.path.join(HERE, 'compare_xla.py'),
                                             f'--bench={bench}', f'--oracle={args.oracle}', *paths])
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
