#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Propagation and partitioning: our time against XLA's, on the same files.

    compare_xla.py --bench=build/bin/bench_partition --oracle=TOOL.py [--json=OUT] FILE...

TOOL.py measures XLA: `python3 TOOL.py partition FILE -n N [--shardy] --repeat R`
prints JSON that holds "time_us", the microseconds of XLA's sharding propagation
and partitioning alone. --shardy is given for files named *.sdy.hlo and *.jax12.hlo. Ours is the
CPU time from import to clean-up, XLA's is wall-clock time, so the ratio means
something on a quiet machine only. Exit code 0 whatever the ratio.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile


def xla_microseconds(tool, path, repeat):
    with open(path) as f:
        partitions = int(re.search(r'num_partitions=(\d+)', f.read()).group(1))
    command = [sys.executable, tool, 'partition', path, '-n', str(partitions), '--repeat', str(repeat)]
    if path.endswith(('.sdy.hlo', '.jax12.hlo')):
        command.append('--shardy')
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return json.loads(out[out.index('{'):])['time_us']


def our_microseconds(bench, paths, rounds):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'bench.json')
        subprocess.run([bench, f'--json={out}', f'--rounds={rounds}', '--max-allocations=1e9', *paths],
                       stdout=subprocess.DEVNULL, check=True)
        with open(out) as f:
            return [p['us']['import to clean-up'] for p in json.load(f)['programs']]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+')
    parser.add_argument('--bench', required=True, help='the program bench_partition')
    parser.add_argument('--oracle', required=True, help='the tool that measures XLA')
    parser.add_argument('--repeat', type=int, default=5)
    parser.add_argument('--json')
    args = parser.parse_args()
    ours = our_microseconds(args.bench, args.files, 15)
    rows = []
    print(f'{"XLA ms":>10} {"ours ms":>10} {"ratio":>8}')
    for path, mine in zip(args.files, ours):
        xla = xla_microseconds(args.oracle, path, args.repeat)
        rows.append({'file': os.path.basename(path), 'xla_us': xla, 'ours_us': mine, 'ratio': xla / mine})
        print(f'{xla / 1e3:10.2f} {mine / 1e3:10.2f} {xla / mine:8.1f}  {os.path.basename(path)}')
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(rows, f, indent=1)


if __name__ == '__main__':
    main()
