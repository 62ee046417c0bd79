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


# Every way in which arrays lie on a device and come back: bits, nothing, layouts, tuples,
# and what is donated by one device and lent by all.
KINDS = {
    'narrow': """HloModule narrow, num_partitions=2

ENTRY main {
  x = TYPE[8]{0} parameter(0), sharding={devices=[2]<=[2]}
  p = pred[8]{0} parameter(1)
  z = f32[0,3]{1,0} parameter(2)
  s = f32[] parameter(3)
  d = TYPE[8]{0} add(x, x)
  w = f32[0,3]{1,0} negate(z)
  ROOT y = (TYPE[8]{0}, pred[8]{0}, f32[0,3]{1,0}, f32[]) tuple(d, p, w, s)
}
""",
    'layouts': """HloModule layouts, num_partitions=2, entry_computation_layout={(f32[4,6]{0,1}, f32[4,6]{1,0})->f32[4,6]{0,1}}

ENTRY main {
  x = f32[4,6]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}
  y = f32[4,6]{1,0} parameter(1)
  ROOT z = f32[4,6]{0,1} add(x, y)
}
""",
    'tuple': """HloModule parts, num_partitions=2

ENTRY main {
  t = (f32[8]{0}, f32[4]{0}) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}
  a = f32[8]{0} get-tuple-element(t), index=0
  b = f32[4]{0} get-tuple-element(t), index=1
  c = f32[8]{0} add(a, a)
  ROOT y = (f32[8]{0}, f32[4]{0}) tuple(c, b)
}
""",
    'donated': """HloModule donated, num_partitions=4, input_output_alias={ {}: (0, {}, must-alias) }

ENTRY main {
  x = f32[65536]{0} parameter(0), sharding={replicated}
  o = f32[] constant(1)
  b = f32[65536]{0} broadcast(o), dimensions={}
  ROOT y = f32[65536]{0} add(x, b), sharding={replicated}
}
"""}
TYPES = ('s4', 'u4', 's8', 'u8', 's16', 's64', 'u64', 'f16', 'bf16', 'f64', 'f8e4m3fn', 'f8e5m2',
         'f4e2m1fn', 'c64', 'c128')


def verified(plugin):
    """What is wrong with small programs of all kinds, by name."""
    wrong = []
    texts = [(name, text) for name, text in KINDS.items() if 'TYPE' not in text]
    texts += [(f'{name} {t}', text.replace('TYPE', t))
              for name, text in KINDS.items() if 'TYPE' in text for t in TYPES]
    for name, text in texts:
        result = command.run(['verify', '-', '--backend=pjrt', f'--pjrt-plugin={plugin}'],
                             stdin=text.encode())
        if result.code != 0:
            wrong.append(f'{name}: {(result.out + result.err)[-300:]}')
    # A plugin that does not know a type is not asked.
    result = command.run(['run', '-', '--backend=pjrt', f'--pjrt-plugin={plugin}'],
                         stdin=KINDS['narrow'].replace('TYPE', 'u1').encode())
    if result.code != 1 or 'E336' not in result.err:
        wrong.append(f'u1: {result.code} {result.err[-300:]}')
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--plugin', default=os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', ''))
    parser.add_argument('--folder')
    parser.add_argument('--only', default='')
    args = parser.parse_args()
    if not os.path.exists(args.plugin):
        print('SKIPPED: SHARDCALL_PJRT_CPU_PLUGIN names no plugin; tests/support/fetch_pjrt_plugin.py has one')
        return command.SKIPPED
    folder = args.folder or os.environ.get('SHARDCALL_CORPUS') or os.path.join(command.DATA, 'hlo')
    paths = [p for p in sorted(glob.glob(os.path.join(folder, '*.hlo')))
             if re.search(args.only, p) and
             os.path.exists(re.sub(r'(\.gspmd|\.sdy|\.v3)?\.hlo$', '.outputs.npz', p))]
    ran, failed = 0, verified(args.plugin)
    paths = command.sampled(paths)
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
