#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what commands take for programs that grow, and holds that it grows linearly.

    measure_costs.py --command=build/bin/shardcall [--all | --only=WORD,...] [--rounds=3] [--json=FILE]

Each row is a kind of program (cost_programs.py) of several sizes n and a verb. Measured are
processor time and peak memory of the command, as the least of all rounds, without those of the
smallest program. The exponent is the slope of a line through (log n, log cost), by least
squares. Exit code 1 where an exponent is 1.15 or more; costs below 100 ms
or 16 MB do not count.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

import cost_programs

MOST = 1.15
LEAST_SECONDS, LEAST_BYTES = 0.1, 16 << 20
VERBS = ('print', 'propagate', 'partition', 'explain')
# What a `run` computes grows with the program: arrays are small, and so are these sizes.
RUN_SIZES = (1000, 2000, 4000, 8000)
# No size fits the caches of a processor: from one that does to one that does not, all costs grow.
SIZES = (40000, 80000, 160000, 320000)
# Rows of the plans of a reshard, whose size is not a number of ops, and of devices.
RESHARD_AXES = (10, 12, 16, 20)
DEVICES = (1024, 2048, 4096, 8192)
SUB_AXES = (10, 20, 40)
# What is measured by default, in some minutes; --all takes half an hour.
USUAL = {f'partition {name}' for name in ('concatenate', 'tuple_of', 'while_loop', 'branches', 'parameters',
                                          'parameters_donated', 'called_results')}
USUAL |= {f'propagate {name}' for name in ('chain', 'chain_backwards', 'tree', 'tree_backwards', 'ladder',
                                           'ladder_of_products')}
USUAL |= {f'explain {name}' for name in ('chain_with_collectives', 'chain_of_halos')}
USUAL |= {'run on n devices', 'reshard of rank 8, k axes of 2', 'uneven reshard of rank 8, k axes of 2',
          'partition with sub-axis reshards, 7 axes of 4'}


def slope(points):
    """The slope of log y over log x, by least squares; None where a cost is too small."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return (sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) /
            sum((x - mean_x) ** 2 for x in xs))


def reshard_of_axes(k, size):
    """Shardings of eight dimensions of `size` over k axes of 2, each axis at another one afterwards."""
    def placed(dim_of):
        dims = [[a for a in range(k) if dim_of(a) == d] for d in range(8)]
        tiles = ','.join(str(2 ** len(axes)) for axes in dims)
        order = ','.join(str(a) for axes in dims for a in axes)
        return f'{{devices=[{tiles}]<=[{",".join(["2"] * k)}]T({order})}}'
    return ['reshard', f'--shape=f32[{",".join([str(size)] * 8)}]', f'--num-partitions={2 ** k}',
            f'--from={placed(lambda a: a % 8)}', f'--to={placed(lambda a: (3 * a + 1) % 8)}']


def rows():
    """(name, sizes, n -> (arguments, text of the program or None), is it held)."""
    def verb(v, make):
        options = {'print': [], 'run': ['--random-inputs=1']}.get(v, [])
        allow = [] if v == 'print' else ['--plugin=MANIFEST', '--allow-replicate=unknown']
        return lambda n: ([v, 'PROGRAM', *options, *allow], make(n))
    for name, make in cost_programs.all_programs().items():
        for v in VERBS:
            yield f'{v} {name}', SIZES, verb(v, make)
        if name not in cost_programs.WITHOUT_KERNEL:
            yield f'run {name}', RUN_SIZES, verb('run', make)
    yield 'reshard of rank 8, k axes of 2', RESHARD_AXES, lambda k: (reshard_of_axes(k, 64), None)
    yield 'uneven reshard of rank 8, k axes of 2', RESHARD_AXES, lambda k: (reshard_of_axes(k, 50), None)
    yield ('partition with sub-axis reshards, 7 axes of 4', SUB_AXES,
           lambda n: (['partition', 'PROGRAM'], cost_programs.sub_axis_reshards(n)))
    yield ('run on n devices', DEVICES,
           lambda n: (['run', 'PROGRAM', '--random-inputs=1'], cost_programs.summed_over_devices(n)))


# Runs a command from a small process: the peak of memory that the system tells of a command is at
# least that of the process that started it.
LAUNCHER = '''
import json, os, resource, sys
child = os.fork()
if child == 0:
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime,
                  usage.ru_maxrss * 1024]))
'''


class Meter:
    """Runs the command and keeps the least costs of each run."""

    def __init__(self, command, folder):
        self.command, self.folder = command, folder
        self.manifest = os.path.join(folder, 'many.json')
        with open(self.manifest, 'w') as f:
            json.dump({'targets': [{'name': 'many', 'batch_dims': 1}]}, f)

    def once(self, arguments, text):
        """(processor seconds, bytes) of one run; raises where it fails."""
        program = os.path.join(self.folder, 'program.hlo')
        if text is not None:
            with open(program, 'w') as f:
                f.write(text)
        places = {'PROGRAM': program, '--plugin=MANIFEST': f'--plugin={self.manifest}'}
        errors = os.path.join(self.folder, 'errors.txt')
        told = subprocess.run([sys.executable, '-S', '-c', LAUNCHER, errors, self.command,
                               *[places.get(a, a) for a in arguments]],
                              stdout=subprocess.PIPE, check=True).stdout
        code, seconds, size = json.loads(told)
        if code != 0:
            with open(errors) as f:
                raise RuntimeError(f'ended with {code}: {f.read(300).strip()}')
        return seconds, size

    def least(self, arguments, text, rounds):
        costs = [self.once(arguments, text) for _ in range(rounds)]
        return min(c[0] for c in costs), min(c[1] for c in costs)


def exponent(sizes, costs, least):
    """Of the costs that are not lost in the noise; None with fewer than two of them."""
    points = [(n, c) for n, c in zip(sizes, costs) if c >= least]
    return slope(points) if len(points) > 1 else None


def measure(meter, name, sizes, make, rounds):
    """The row's figures, with an error in place of the exponents where a run failed."""
    row = {'name': name, 'sizes': list(sizes), 'seconds': [], 'bytes': []}
    try:
        base = meter.least(*make(8), rounds) if sizes[0] > 100 else (0, 0)
        for n in sizes:
            seconds, size = meter.least(*make(n), rounds)
            row['seconds'].append(max(seconds - base[0], 0))
            row['bytes'].append(max(size - base[1], 0))
    except RuntimeError as error:
        row['error'] = str(error)
        return row
    row['time_exponent'] = exponent(sizes, row['seconds'], LEAST_SECONDS)
    row['memory_exponent'] = exponent(sizes, row['bytes'], LEAST_BYTES)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--command', required=True, help='the shardcall command')
    parser.add_argument('--only', default='', help='rows that have one of these words in their name')
    parser.add_argument('--all', action='store_true', help='every program and verb')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', default='')
    args = parser.parse_args()
    words = [w for w in args.only.split(',') if w]
    results, failed = [], False
    print(f'{"row":44} {"sizes":>14} {"seconds":>16} {"MB":>14} {"time n^":>8} {"memory n^":>9}')
    with tempfile.TemporaryDirectory() as folder:
        meter = Meter(args.command, folder)
        for name, sizes, make in rows():
            if not any(w in name for w in words) if words else not args.all and name not in USUAL:
                continue
            row = measure(meter, name, sizes, make, args.rounds)
            results.append(row)
            if 'error' in row:
                failed = True
                print(f'{name:44} {row["error"]}', flush=True)
                continue
            held = all(row[k] is None or row[k] < MOST for k in ('time_exponent', 'memory_exponent'))
            failed |= not held
            shown = ['-' if row[k] is None else f'{row[k]:.2f}' for k in ('time_exponent', 'memory_exponent')]
            print(f'{name:44} {sizes[0]:>6}..{sizes[-1]:<6} {row["seconds"][0]:7.2f}..{row["seconds"][-1]:<7.2f} '
                  f'{row["bytes"][0] / 1e6:6.0f}..{row["bytes"][-1] / 1e6:<6.0f} {shown[0]:>8} {shown[1]:>9}'
                  f'{"" if held else "   above " + str(MOST)}', flush=True)
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(results, f, indent=1)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
