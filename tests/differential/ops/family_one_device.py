# SPDX-License-Identifier: Apache-2.0
"""Ops of a group of devices, on a group of one; values that are handed on as they
are; and who the device is."""

import numpy as np

import hlo_types as T
from structured import PLAIN, reducer, shape, small
from suite import Case, bitwise


def collectives(add, name):
    x = small(name, [4], 'one device', least=0, most=1)
    t = shape(name, [4])
    p = f'\n  x = {t} parameter(0)\n'
    op = 'or' if name == 'pred' else 'add'

    def case(op, text, reference=lambda x: x, helpers='', label=''):
        add(Case(op, name, p + text, [x], bitwise(), helpers=helpers, reference=reference,
                 label=label))
    one = 'replica_groups={{0}}'
    case('all-reduce', f'  ROOT r = {t} all-reduce(x), {one}, to_apply=f',
         helpers=reducer(op, name))
    case('all-reduce-start, all-reduce-done', f'''  s = {t} all-reduce-start(x), {one}, to_apply=f
  ROOT r = {t} all-reduce-done(s)''', helpers=reducer(op, name))
    case('reduce-scatter', f'  ROOT r = {t} reduce-scatter(x), {one}, dimensions={{0}}, to_apply=f',
         helpers=reducer(op, name))
    case('all-gather', f'  ROOT r = {t} all-gather(x), {one}, dimensions={{0}}')
    case('all-gather-start, all-gather-done',
         f'''  s = ({t}, {t}) all-gather-start(x), {one}, dimensions={{0}}
  ROOT r = {t} all-gather-done(s)''')
    case('all-to-all', f'  ROOT r = {t} all-to-all(x), {one}, dimensions={{0}}')
    case('collective-broadcast', f'  ROOT r = {t} collective-broadcast(x), {one}')
    ints = [f'{k} = s32[1] constant({{{v}}})' for k, v in
            (('from', 1), ('size', 2), ('to', 0), ('got', 2))]
    if name == 's32':  # XLA aborts, which takes time
        case('ragged-all-to-all', '  ' + '\n  '.join(ints) + f'''
  ROOT r = {t} ragged-all-to-all(x, x, from, size, to, got), {one}''',
             reference=lambda x: np.concatenate([x[1:3], x[2:]]))
    for pairs in ('{0,0}', ''):
        case('collective-permute',
             f'  ROOT r = {t} collective-permute(x), source_target_pairs={{{pairs}}}',
             reference=lambda x, pairs=pairs: x if pairs else np.zeros_like(x), label=pairs)
    case('collective-permute-start, collective-permute-done',
         f'''  s = ({t}, {t}, u32[], u32[]) collective-permute-start(x), source_target_pairs={{{{0,0}}}}
  ROOT r = {t} collective-permute-done(s)''')


def handed_on(add, name):
    x, y = small(name, [2, 3], 'x'), small(name, [2, 3], 'y')
    t = shape(name, [2, 3])
    p = f'\n  x = {t} parameter(0)\n  y = {t} parameter(1)\n'
    add(Case('parameter, tuple', name, p + f'  ROOT r = ({t}, {t}) tuple(y, x)', [x, y],
             bitwise(), reference=lambda x, y: [y, x]))
    add(Case('get-tuple-element', name, p + f'''  n = ({t}, {t}) tuple(x, y)
  s = ({t}, ({t}, {t})) tuple(x, n)
  m = ({t}, {t}) get-tuple-element(s), index=1
  ROOT r = {t} get-tuple-element(m), index=1''', [x, y], bitwise(), reference=lambda x, y: y))
    add(Case('bitcast', name, f'''
  x = {t} parameter(0)
  ROOT r = {shape(name, [6])} bitcast(x)''', [x], bitwise(), reference=lambda x: x.reshape(6)))


def constant(add, name):
    x = small(name, [3], 'constant', least=int(name == 'f8e8m0fnu'), most=1)  # it has no 0

    def text(v):
        if name == 'pred':
            return str(bool(v)).lower()
        if name in T.COMPLEX:
            return f'({int(v.real)}, {int(v.imag)})'
        return str(int(v))
    values = ', '.join(text(v) for v in x)
    add(Case('constant', name, f'''
  x = {shape(name, [3])} parameter(0)
  c = {shape(name, [3])} constant({{{values}}})
  ROOT r = ({shape(name, [3])}, {shape(name, [3])}) tuple(c, x)''', [x], bitwise(),
             reference=lambda x: [x, x]))


def register(add, full):
    for name in PLAIN:
        collectives(add, name)
    for name in T.ALL:
        handed_on(add, name)
        constant(add, name)
    for op in ('partition-id', 'replica-id'):
        add(Case(op, 'u32', f'\n  ROOT r = u32[] {op}()', [], bitwise(),
                 reference=lambda: np.uint32(0)))
