#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reading HLO text: our speed and memory against the parser of jaxlib.

    compare_parser.py --bench=build/bin/bench_ir_text [--json=OUT] [--largest=8] [--big=MB] FILE_OR_DIR...

Ours is reading and verifying, XLA's reading alone, which verifies less. Times are
CPU times, the smallest of several runs. Memory is what stands beside the input: for
us the peak of the heap, the text included; for XLA the growth of the peak resident
set of a fresh process. Both as multiples of the text. From folders the --largest
files are taken. --big adds a module of that many megabytes, made of copies of the
largest file's computations; each side reads it once. Wants jaxlib (exit code 77
without it). The goal is a ratio of 3 and at most 10 times the text; the exit code
is 0 whatever the figures.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

GOAL_RATIO, GOAL_MEMORY = 3.0, 10.0


def peak_bytes():
    with open('/proc/self/status', encoding='ascii') as f:
        return int(re.search(r'VmHWM:\s+(\d+)', f.read()).group(1)) * 1024


def measure_xla(path, once):
    """In a process of its own: prints the seconds and the bytes as JSON."""
    from jaxlib import _hlo as hlo
    hlo.hlo_module_from_text('HloModule m\nENTRY e { p = f32[] parameter(0) }')
    with open(path, encoding='utf-8', newline='') as f:
        text = f.read()
    before = peak_bytes()
    start = time.process_time()
    module = hlo.hlo_module_from_text(text)
    best = time.process_time() - start
    grown = peak_bytes() - before
    end, rounds = time.monotonic() + 1.0, 0
    while not once and (rounds < 3 or time.monotonic() < end):
        start = time.process_time()
        module = hlo.hlo_module_from_text(text)
        best = min(best, time.process_time() - start)
        rounds += 1
    del module
    print(json.dumps({'seconds': best, 'bytes': grown}))


def make_big(source, path, megabytes):
    """Copies of the source's entry, which call its other computations, and an entry."""
    with open(source, encoding='utf-8', newline='') as f:
        text = f.read()
    at = text.index('\nENTRY ')
    end = text.index('\n}\n', at) + 3
    entry = text[at + 1:end]
    name = re.match(r'ENTRY %([\w.\-]+)', entry).group(1)
    copy = entry[len('ENTRY '):]
    count = max(1, (megabytes * 1000000 - len(text)) // len(copy))
    with open(path, 'w', encoding='utf-8', newline='') as f:
        f.write(text[:at + 1])
        for k in range(count):
            f.write(copy.replace(f'%{name} ', f'%copy_{k} ', 1))
            f.write('\n')
        f.write(text[at + 1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('paths', nargs='+')
    parser.add_argument('--bench', help='the program bench_ir_text')
    parser.add_argument('--largest', type=int, default=8)
    parser.add_argument('--big', type=int, default=0, metavar='MB')
    parser.add_argument('--json')
    parser.add_argument('--measure-xla', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('--once', action='store_true', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure_xla:
        measure_xla(args.paths[0], args.once)
        return 0
    try:
        from jaxlib import _hlo  # noqa: F401, pylint: disable=unused-import
    except ImportError as e:
        print(f'SKIPPED: jaxlib with an HLO parser cannot be imported ({e}); '
              'pip install jaxlib')
        return 77
    files = [p for p in args.paths if not os.path.isdir(p)]
    for folder in (p for p in args.paths if os.path.isdir(p)):
        found = sorted(glob.glob(os.path.join(folder, '*.hlo')), key=os.path.getsize)
        files += found[::-1][:args.largest]
    rows = []
    print(f'{"bytes":>11} {"XLA ms":>10} {"ours ms":>10} {"ratio":>7} {"XLA mem":>8} {"our mem":>8}')
    with tempfile.TemporaryDirectory() as folder:
        measured = [(f, []) for f in files]
        if args.big:
            big = os.path.join(folder, f'big_{args.big}MB.hlo')
            make_big(max(files, key=os.path.getsize), big, args.big)
            measured.append((big, ['--once']))
        for path, once in measured:
            out = os.path.join(folder, 'bench.json')
            subprocess.run([args.bench, f'--json={out}', *once, path], stdout=subprocess.DEVNULL,
                           check=True)
            with open(out, encoding='utf-8') as f:
                ours = json.load(f)[0]
            xla = json.loads(subprocess.run(
                [sys.executable, __file__, '--measure-xla', *once, path], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, check=True, text=True).stdout)
            seconds = ours['parse_s'] + ours['verify_s']
            row = {'file': os.path.basename(path), 'bytes': ours['bytes'],
                   'xla_s': xla['seconds'], 'ours_s': seconds, 'ratio': xla['seconds'] / seconds,
                   'xla_memory': xla['bytes'] / ours['bytes'], 'our_memory': ours['memory']}
            rows.append(row)
            short = row['ratio'] < GOAL_RATIO or row['our_memory'] > GOAL_MEMORY
            print(f'{row["bytes"]:11.0f} {row["xla_s"] * 1e3:10.2f} {row["ours_s"] * 1e3:10.2f} '
                  f'{row["ratio"]:7.1f} {row["xla_memory"]:7.1f}x {row["our_memory"]:7.1f}x  '
                  f'{row["file"]}{"  FALLS SHORT" if short else ""}', flush=True)
    if args.json:
        with open(args.json, 'w', encoding='utf-8') as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == '__main__':
    sys.exit(main())
