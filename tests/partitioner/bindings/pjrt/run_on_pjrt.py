#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with JAX's numbers, run by `shardcall run --backend=pjrt` on XLA's own CPU
backend, a PJRT plugin; with JAX's results.

    run_on_pjrt.py --plugin=FILE [--folder=DIR] [--only=REGEX]

The folder is tests/data/hlo, and SHARDCALL_CORPUS where that is set. Exit status 77
without a plugin.
"""
import argparse
import glob
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../support'))
import command  # noqa: E402
import numerics  # noqa: E402

# XLA's order of sums and its functions are its own, and so are they in a plugin that is
# older than the JAX that made the numbers.
LIMIT = 4e-6

def run(path, plugin, folder):
    """'' or what is wrong."""
    stem = re.sub(r'(\.gspmd|\.sdy|\.v3)?\.hlo$', '', path)
    out = os.path.join(folder, 'out.npz')
    result = command.run(['run', path, f'--inputs={stem}.inputs.npz', f'--outputs={out}',
                          '--backend=pjrt', f'--pjrt-plugin={plugin}', *command.RULE_FLAGS])
    if result.fault:
        return result.fault
    if result.code != 0:
        return result.err.strip().splitlines()[-1] if result.err.strip() else f'exit {result.code}'
    with open(path, encoding='utf-8') as f:
        text = f.read()
    return numerics.difference(numerics.read(f'{stem}.outputs.npz'), numerics.read(out), False,
                               max(LIMIT, numerics.limit_of(text)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--plugin', default=os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', ''))
    parser.add_argument('--folder')
    parser.add_argument('--only', default='')
    args = parser.parse_args()
    if not os.path.exists(args.plugin):
        print('SKIPPED: SHARDCALL_PJRT_CPU_PLUGIN names no plugin; fetch_cpu_plugin.py has one')
        return command.SKIPPED
    folder = args.folder or os.environ.get('SHARDCALL_CORPUS') or os.path.join(command.DATA, 'hlo')
    paths = [p for p in sorted(glob.glob(os.path.join(folder, '*.hlo')))
             if re.search(args.only, p) and
             os.path.exists(re.sub(r'(\.gspmd|\.sdy|\.v3)?\.hlo$', '.outputs.npz', p))]
    ran, failed = 0, []
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            wrong = run(path, args.plugin, scratch)
            ran += not wrong
            if wrong:
                failed.append(f'{os.path.basename(path)}: {wrong}')
    for line in failed:
        print(line)
    print(f'{ran} of {len(paths)} programs ran with JAX\'s numbers')
    return 1 if failed or ran == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
