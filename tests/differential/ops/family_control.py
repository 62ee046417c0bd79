# SPDX-License-Identifier: Apache-2.0
"""Ops that call computations or hand values on: while, conditional, call, fusion,
map, scan, sort, topk, asynchronous pairs, tokens; and bits of generators."""

import numpy as np

import hlo_types as T
from structured import NUMBERS, PLAIN, braces, shape, small
from suite import Case, bitwise


def control(add, name):
    x = small(name, [4], 'control', least=0, most=3)
    one = '(1, 0)' if name[0] == 'c' else '1'
    t = shape(name, [4])
    double = f'''
d {{
  d_x = {t} parameter(0)
  ROOT d_r = {t} add(d_x, d_x)
}}'''
    step = f'''
b {{
  b_s = ({t}, s32[]) parameter(0)
  b_x = {t} get-tuple-element(b_s), index=0
  b_i = s32[] get-tuple-element(b_s), index=1
  b_1 = s32[] constant(1)
  b_j = s32[] add(b_i, b_1)
  b_y = {t} add(b_x, b_x)
  ROOT b_r = ({t}, s32[]) tuple(b_y, b_j)
}}
c {{
  c_s = ({t}, s32[]) parameter(0)
  c_i = s32[] get-tuple-element(c_s), index=1
  c_n = s32[] constant(3)
  ROOT c_r = pred[] compare(c_i, c_n), direction=LT
}}'''
    p = f'\n  x = {t} parameter(0)\n'
    add(Case('while', name, p + f'''  i = s32[] constant(0)
  s = ({t}, s32[]) tuple(x, i)
  ROOT r = ({t}, s32[]) while(s), condition=c, body=b''', [x], bitwise(), helpers=step))
    add(Case('call', name, p + f'  ROOT r = {t} call(x), to_apply=d', [x], bitwise(),
             helpers=double))
    refused = name == 's32'  # by XLA on CPU: one type is enough to look at ours
    for kind in ('kLoop', 'kInput', 'kOutput') if refused else ('kLoop',):
        add(Case('fusion', name, p + f'  ROOT r = {t} fusion(x), kind={kind}, calls=d', [x],
                 bitwise(), helpers=double, label=kind, reference=lambda x: x + x))
    branches = double + ''.join(f'''
e{k} {{
  e{k}_x = {t} parameter(0)
  e{k}_c = {name}[] constant({one})
  e{k}_b = {t} broadcast(e{k}_c), dimensions={{}}
  ROOT e{k}_r = {t} {op}(e{k}_x, e{k}_b)
}}''' for k, op in enumerate(('add', 'subtract', 'multiply')))
    for k in (-1, 0, 1, 2, 3, 100):
        add(Case('conditional', name, p + f'''  k = s32[] parameter(1)
  ROOT r = {t} conditional(k, x, x, x), branch_computations={{e0, e1, e2}}''',
                 [x, np.int32(k)], bitwise(), helpers=branches, label=str(k)))
    for k in (False, True):
        add(Case('conditional', name, p + f'''  k = pred[] parameter(1)
  ROOT r = {t} conditional(k, x, x), true_computation=e0, false_computation=d''',
                 [x, np.bool_(k)], bitwise(), helpers=branches, label=str(k)))
    sums = f'''
m {{
  m_x = {name}[] parameter(0)
  m_y = {name}[] parameter(1)
  m_z = {name}[] multiply(m_x, m_y)
  ROOT m_r = {name}[] add(m_z, m_x)
}}'''
    add(Case('map', name, p + f'  ROOT r = {t} map(x, x), dimensions={{0}}, to_apply=m', [x],
             bitwise(), helpers=sums))
    add(Case('opt-barrier', name, p + f'''  s = ({t}, {t}) tuple(x, x)
  ROOT r = ({t}, {t}) opt-barrier(s)''', [x], bitwise()))
    add(Case('after-all, add-dependency', name, p + f'''  t = token[] after-all()
  ROOT r = {t} add-dependency(x, t)''', [x], bitwise(), reference=lambda x: x))
    if refused:
        add(Case('copy-start, copy-done', name, p + f'''  s = ({t}, {t}, u32[]) copy-start(x)
  ROOT r = {t} copy-done(s)''', [x], bitwise(), reference=lambda x: x))
        add(Case('async-start, async-update, async-done', name, p + f'''  s = (({t}), {t}, s32[]) async-start(x), calls=d
  u = (({t}), {t}, s32[]) async-update(s)
  ROOT r = {t} async-done(u)''', [x], bitwise(), helpers=double,
                 reference=lambda x: x + x))
    add(Case('get-dimension-size', name, p + '''  ROOT r = s32[] get-dimension-size(x), dimensions={0}''',
             [x], bitwise()))
    add(Case('set-dimension-size', name, p + f'''  n = s32[] constant(4)
  s = {name}[<=4] set-dimension-size(x, n), dimensions={{0}}
  ROOT r = s32[] get-dimension-size(s), dimensions={{0}}''', [x], bitwise(),
             reference=lambda x: np.int32(4)))
    add(Case('dynamic-reshape', name, p + f'''  n = s32[] constant(2)
  s = {name}[2,<=2] dynamic-reshape(x, n, n)
  ROOT r = s32[] get-dimension-size(s), dimensions={{1}}''', [x], bitwise(),
             reference=lambda x: np.int32(2)))


def scan(name, k, reverse):
    rng = T.rng('scan', name, k)
    n, m = (int(v) for v in rng.integers(1, 5, 2))
    d = k % 2
    dims = [m, m]
    dims[d] = n
    x, c = small(name, dims, 'x', k), small(name, [m], 'c', k)
    helpers = f'''
f {{
  f_x = {name}[{m}] parameter(0)
  f_c = {name}[{m}] parameter(1)
  f_s = {name}[{m}] add(f_c, f_x)
  f_y = {name}[{m}] multiply(f_s, f_x)
  ROOT f_r = ({name}[{m}], {name}[{m}]) tuple(f_y, f_s)
}}'''

    def reference(x, c):
        x, out = np.moveaxis(x, d, 0), []
        for i in range(n)[::-1] if reverse else range(n):
            c = c + x[i]
            out.append(c * x[i])
        return [np.moveaxis(np.stack(out[::-1] if reverse else out), 0, d), c]
    return Case('scan', name, f'''
  x = {shape(name, dims)} parameter(0)
  c = {name}[{m}] parameter(1)
  ROOT r = ({shape(name, dims)}, {name}[{m}]) scan(x, c), dimensions={{{d}}}, num_carries=1, {"is_reverse=true, " if reverse else ""}is_associative=false, to_apply=f''',
                [x, c], bitwise(), helpers=helpers, reference=reference, label=f'{reverse} {k}')


def sort(name, k):
    """Keys with equals, and where they stood: stable, so there is one right answer."""
    rng = T.rng('sort', name, k)
    dims = [int(rng.integers(1, 30)) for _ in range(int(rng.integers(1, 3)))]
    d = int(rng.integers(0, len(dims)))
    x = small(name, dims, 'x', k)
    at = np.arange(x.size, dtype=np.int32).reshape(dims)
    helpers = f'''
f {{
  f_a = {name}[] parameter(0)
  f_b = {name}[] parameter(1)
  f_c = s32[] parameter(2)
  f_d = s32[] parameter(3)
  ROOT f_r = pred[] compare(f_a, f_b), direction={("LT", "GT")[k % 2]}
}}'''
    out = f'({shape(name, dims)}, {shape("s32", dims)})'
    return Case('sort', name, f'''
  x = {shape(name, dims)} parameter(0)
  y = {shape("s32", dims)} parameter(1)
  ROOT r = {out} sort(x, y), dimensions={{{d}}}, is_stable=true, to_apply=f''', [x, at], bitwise(),
                helpers=helpers, label=str(k))


def topk(name, k, largest):
    rng = T.rng('topk', name, k)
    dims = [int(rng.integers(1, 4)), int(rng.integers(4, 40))]
    x = small(name, dims, 'x', k, least=-50, most=50)
    count = int(rng.integers(1, 5))

    def reference(x):
        key = x.astype(np.float64) if name != 'u64' else x
        order = np.argsort(-key if largest else key, axis=1, kind='stable')[:, :count]
        return [np.take_along_axis(x, order, 1), order]
    out = f'({shape(name, [dims[0], count])}, {shape("s32", [dims[0], count])})'
    return Case('topk', name, f'''
  x = {shape(name, dims)} parameter(0)
  ROOT r = {out} topk(x), k={count}, largest={"true" if largest else "false"}''', [x], bitwise(),
                reference=reference, label=f'{largest} {k}',
                freedom='the order of equal elements is free')


def generator(algorithm, name, dims, words, k):
    """The same bits and next states; floats have the bits of integers."""
    state = T.rng('bits', k).integers(0, 1 << 63, words).astype(np.uint64)
    if k % 3 == 2:
        state[1:] = np.uint64((1 << 64) - 2)  # the counter passes its end
    out = f'(u64[{words}], {shape(name, dims)})'
    return Case('rng-bit-generator', name, f'''
  s = u64[{words}] parameter(0)
  ROOT r = {out} rng-bit-generator(s), algorithm={algorithm}''', [state], bitwise(payload=True),
                label=f'{algorithm} {words} {dims} {k}')


def register(add, full):
    few = 12 if full else 3
    for name in NUMBERS:
        control(add, name)
        for k in range(few):
            for reverse in (False, True):
                add(scan(name, k, reverse))
    for name in PLAIN:
        if name[0] == 'c':
            continue
        for k in range(few):
            add(sort(name, k))
    for name in ('s32', 'bf16', 'f32', 'f64', 's8', 'u32'):
        for k in range(few):
            for largest in (True, False):
                add(topk(name, k, largest))
    k = 0
    for name in [*T.INTEGERS[1:7], *T.INTEGERS[8:], *T.FLOATS]:  # XLA has no s1 and u1
        for dims in ([], [1], [2], [7], [8], [3, 5], [5, 4], [4, 3], [2, 3, 3], [33], [0],
                     [3, 4, 5]):
            if name not in ('u8', 'u32', 's64', 'f64') and not full and len(dims) != 2:
                continue
            for algorithm, words in (('rng_three_fry', 2), ('rng_philox', 2), ('rng_philox', 3),
                                     ('rng_default', 2), ('rng_default', 3)):
                k += 1
                add(generator(algorithm, name, dims, words, k))
    add(Case('rng-get-and-update-state', 'u64', '''
  a = u64[2] rng-get-and-update-state(), delta=7
  ROOT r = u64[2] copy(a)''', [], bitwise()))
