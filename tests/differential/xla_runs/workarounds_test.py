#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each fault of workarounds.py in the smallest module that has it: XLA's numbers must be wrong,
and those of the rewritten module right. Of a newer jaxlib the numbers of those in GONE must be
right at once. Any other fault that XLA no longer has is a failure: its rewriting can go. What is
right follows from the definition of the op.

  workarounds_test.py --handlers=LIBRARY       Exit status 77: jaxlib is not there."""

import argparse
import json
import os
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'support'), os.path.join(HERE, '..', 'ops')]
import command  # noqa: E402
import jaxlib_parser  # noqa: E402

TWO = '%{op}.{t} (x: {t}[], y: {t}[]) -> {t}[] {{\n  %x = {t}[] parameter(0)\n' \
      '  %y = {t}[] parameter(1)\n  ROOT %xy = {t}[] {op}(%x, %y)\n}}\n'
ADD, ADD_I, MIN = (TWO.format(op=op, t=t) for op, t in (
    ('add', 'f32'), ('add', 's32'), ('minimum', 'f32')))
NAN = float('nan')

# fault: (devices, computations, the entry's instructions, arguments, results).
CASES = {
    # Every other element of rows 1 to 11, by elements 6 to 49.
    'overlapping_update': (1, ADD_I, '''
  %a = s32[2,96] parameter(0)
  %zero = s32[] constant(0)
  %sum = s32[96] reduce(%a, %zero), dimensions={0}, to_apply=%add.s32
  %rows = s32[12,4,2] reshape(%sum)
  %part = s32[44] slice(%sum), slice={[6:50]}
  %update = s32[11,4,1] reshape(%part)
  %one = s32[] constant(1)
  ROOT %done = s32[12,4,2] dynamic-update-slice(%rows, %update, %one, %zero, %one)''',
                           [('s32', [list(range(96)), [0] * 96])],
                           ('s32', [[[8 * r + 2 * c, 6 + 4 * (r - 1) + c if r else 2 * c + 1]
                                     for c in range(4)] for r in range(12)])),
    'bound_again': (1, '', '''
  %low = f32[2] parameter(0)
  %high = f32[2] parameter(1)
  %between = f32[2] clamp(%low, %low, %high)
  ROOT %most = f32[2] maximum(%between, %low)''',
                    [('f32', [2, -1]), ('f32', [1, 1])], ('f32', [2, -1])),
    'reduction_that_loses_nan': (2, MIN, '''
  %a = f32[2] parameter(0)
  %mine = f32[2] add(%a, %a)
  %id = u32[] partition-id()
  %place = f32[] convert(%id)
  %all = f32[2] broadcast(%place), dimensions={}
  %sum = f32[2] add(%mine, %all)
  ROOT %least = f32[2] all-reduce(%sum), channel_id=1, replica_groups={{0,1}}, \
use_global_device_ids=true, to_apply=%minimum.f32''', [('f32', [NAN, 1])], ('f32', [NAN, 2])),
    'integer_power': (1, '', '''
  %a = u32[2] parameter(0)
  %e = u32[2] parameter(1)
  ROOT %p = u32[2] power(%a, %e)''',
                      [('u32', [3, 5]), ('u32', [70, 4294967295])],
                      ('u32', [pow(3, 70, 2**32), pow(5, 2**32 - 1, 2**32)])),
    'bits_of_narrow': (1, '', '''
  %a = s4[3] parameter(0)
  ROOT %ones = s4[3] popcnt(%a)''', [('s4', [-8, -2, 5])], ('s4', [1, 3, 2])),
    'folded_zeros': (1, '', '''
  %a = s32[] constant(-2)
  ROOT %zeros = s32[] count-leading-zeros(%a)''', [], ('s32', 0)),
    'folded_division': (1, '', '''
  %a = s32[2] constant({3, 5})
  %b = s32[2] constant({0, 2})
  ROOT %left = s32[2] remainder(%a, %b)''', [], ('s32', [3, 1])),
    'negative_padding': (1, '', '''
  %a = f32[3,3,3] parameter(0)
  %k = f32[3,2,3] parameter(1)
  ROOT %c = f32[3,2,1] convolution(%a, %k), window={size=3 stride=2 pad=-1_1}, \
dim_labels=bf0_io0->bf0''', [('f32', [[[3 * c + x for x in range(3)] for c in range(3)]] * 3),
                             ('f32', [[[1] * 3] * 2] * 3)], ('f32', [[[27], [27]]] * 3)),
    'dilated_groups': (1, '', '''
  %a = f64[1,2,4,2] parameter(0)
  %k = f64[2,3,1,2] parameter(1)
  ROOT %c = f64[1,2,6,1] convolution(%a, %k), window={size=2x3 lhs_dilate=2x2}, \
dim_labels=bf01_01io->bf01, feature_group_count=2''',
                       [('f64', [[[[1, 2], [3, 4], [5, 6], [7, 8]]] * 2]),
                        ('f64', [[[[1, 2]]] * 3] * 2)],
                       ('f64', [[[[k * n] for n in (3, 7, 7, 11, 11, 15)] for k in (1, 2)]])),
    'scatter_without_indices': (1, ADD, '''
  %a = f32[1] parameter(0)
  %i = s32[3,0] parameter(1)
  %u = f32[3,1] parameter(2)
  ROOT %s = f32[1] scatter(%a, %i, %u), update_window_dims={1}, inserted_window_dims={}, \
scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=%add.f32''',
                                [('f32', [1]), ('s32', [[], [], []]), ('f32', [[1], [2], [4]])],
                                ('f32', [8])),
    'narrow_top': (1, '', '''
  %a = s4[3] parameter(0)
  %top = (s4[1], s32[1]) topk(%a), k=1, largest=true
  ROOT %place = s32[1] get-tuple-element(%top), index=1''', [('s4', [-8, 5, 1])], ('s32', [1])),
}

# What lies behind the operand may happen to be zeros.
UNSTEADY = ['negative_padding']


def write(folder, name, devices, computations, body, arguments, result):
    import files
    import hlo_types
    import numpy as np
    arrays = [np.asarray(v, hlo_types.DTYPES[t]) for t, v in [*arguments, result]]
    kinds = [(t, a.shape) for (t, _), a in zip([*arguments, result], arrays)]

    def place(suffix):
        return os.path.join(folder, name + suffix)
    leaves = [{'shape': f'{t}[{",".join(map(str, dims))}]', 'sharding': '{replicated}'}
              for t, dims in kinds]
    with open(place('.local.hlo'), 'w', encoding='utf-8') as f:
        f.write(f'HloModule {name}, num_partitions={devices}\n\n{computations}\n'
                'ENTRY %main {' + body + '\n}\n')
    with open(place('.json'), 'w', encoding='utf-8') as f:
        json.dump({'num_partitions': devices, 'parameters': leaves[:-1], 'results': leaves[-1:]}, f)
    files.save(place('.inputs.npz'), 'arg', arrays[:-1], kinds[:-1])
    files.save(place('.outputs.npz'), 'out', arrays[-1:], kinds[-1:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--handlers', default='')
    args = parser.parse_args()
    try:
        import jax  # noqa: F401
        import ml_dtypes  # noqa: F401
    except ImportError as e:
        print(f'SKIPPED: {e}')
        return command.SKIPPED
    import workarounds
    import xla_runs
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            write(folder, name, *case)
        judges = xla_runs.Judges(2, args.handlers, 60)
        try:
            outcomes = xla_runs.judge_cases(folder, judges, types.SimpleNamespace(jobs=2))
        finally:
            judges.close()
    names = [fault.__name__ for fault, _ in workarounds.FAULTS]
    newer = jaxlib_parser.writes_elements_without_names()
    gone = [fault.__name__ for fault in workarounds.GONE] if newer else []
    for o in outcomes:
        found = [names[k] for k in getattr(o, 'around', [])]
        right = o.name in gone if o.verdict == 'ran' else found == [o.name] and o.name not in gone
        if not right and not (o.name in UNSTEADY and o.verdict == 'ran'):
            wrong.append(f'{o.name}: {o.verdict} {o.text}; rewritten: {found}')
    wrong += [f'{name} has no case' for name in set(names) - set(CASES)]
    print('\n'.join([*wrong, f'{len(outcomes)} faults, {len(wrong)} findings']))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
