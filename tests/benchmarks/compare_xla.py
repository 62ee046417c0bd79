#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Propagation and partitioning: our time against XLA's, on the same files.

    compare_xla.py --bench=build/bin/bench_partition --oracle=TOOL.py [--propagation] [--json=OUT] FILE...

TOOL.py measures XLA: `python3 TOOL.py partition FILE -n N [--shardy] --repeat R`
prints JSON that holds "time_us", the microseconds of XLA's sharding propagation
and partitioning alone, and "passes_us", those of each pass. --shardy is given for files named
*.sdy.hlo and *.jax12.hlo. Ours is the CPU time from import to clean-up, XLA's is wall-clock time,
so the ratio means something on a quiet machine only. Exit code 0 whatever the ratio.

--propagation compares the propagation alone: ours from the imported program to the shardings,
rules included, with XLA's pass `sharding-propagation`, or `shardy-xla` where Shardy propagates,
which also converts the program to Shardy's form and back. Both are the least of all runs. Of a
program with conflicts over axes, "one order" is a single propagation, as XLA's is, and "ours" has
those in all orders and the plans that choose between them. The last column is the share of import
in our time from import to clean-up.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile


PROPAGATION_PASSES = ('sharding-propagation', 'shardy-xla')


def xla_microseconds(tool, path, repeat):
    """(propagation and partitioning, propagation alone)."""
    with open(path) as f:
        partitions = int(re.search(r'num_partitions=(\d+)', f.read()).group(1))
    command = [sys.executable, tool, 'partition', path, '-n', str(partitions), '--repeat', str(repeat)]
    if path.endswith(('.sdy.hlo', '.jax12.hlo')):
        command.append('--shardy')
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    told = json.loads(out[out.index('{'):])
    return told['time_us'], sum(told['passes_us'].get(name, 0) for name in PROPAGATION_PASSES)


def our_microseconds(bench, paths, rounds, options=()):
    """The median time of each stage, and the least ones, by program."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'bench.json')
        subprocess.run([bench, f'--json={out}', f'--rounds={rounds}', '--max-allocations=1e9', *options, *paths],
                       stdout=subprocess.DEVNULL, check=True)
        with open(out) as f:
            return [(p['us'], p['least_us']) for p in json.load(f)['programs']]


def compare_all(args):
    rows = []
    print(f'{"XLA ms":>10} {"ours ms":>10} {"ratio":>8}')
    for path, (us, _) in zip(args.files, our_microseconds(args.bench, args.files, args.rounds)):
        xla, mine = xla_microseconds(args.oracle, path, args.repeat)[0], us['import to clean-up']
        rows.append({'file': os.path.basename(path), 'xla_us': xla, 'ours_us': mine, 'ratio': xla / mine})
        print(f'{xla / 1e3:10.2f} {mine / 1e3:10.2f} {xla / mine:8.1f}  {os.path.basename(path)}', flush=True)
    return rows


def compare_propagation(args):
    rows = []
    print(f'{"XLA ms":>10} {"one order":>10} {"ratio":>8} {"ours ms":>10} {"ratio":>8} {"import ms":>10} {"share":>6}')
    for path in args.files:
        # In turns with XLA, so that what else the machine does meets both.
        xla = xla_microseconds(args.oracle, path, args.repeat)[1]
        [(us, least)] = our_microseconds(args.bench, [path], args.rounds)
        [(_, one)] = our_microseconds(args.bench, [path], args.rounds, ['--conflicts=wait'])
        row = {'file': os.path.basename(path), 'xla_us': xla, 'one_order_us': one['propagate'],
               'ours_us': least['propagate'], 'import_us': us['import'],
               'import_share': us['import'] / us['import to clean-up']}
        rows.append(row)
        print(f'{xla / 1e3:10.2f} {row["one_order_us"] / 1e3:10.2f} {xla / row["one_order_us"]:8.1f} '
              f'{row["ours_us"] / 1e3:10.2f} {xla / row["ours_us"]:8.1f} {row["import_us"] / 1e3:10.2f} '
              f'{row["import_share"]:6.2f}  {row["file"]}', flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+')
    parser.add_argument('--bench', required=True, help='the program bench_partition')
    parser.add_argument('--oracle', required=True, help='the tool that measures XLA')
    parser.add_argument('--propagation', action='store_true', help='the propagation alone')
    parser.add_argument('--repeat', type=int, default=5, help='runs of XLA')
    parser.add_argument('--rounds', type=int, default=15, help='our runs')
    parser.add_argument('--json')
    args = parser.parse_args()
    rows = compare_propagation(args) if args.propagation else compare_all(args)
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(rows, f, indent=1)


if __name__ == '__main__':
    main()
