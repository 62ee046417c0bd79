# SPDX-License-Identifier: Apache-2.0
"""Ops over windows: convolution, reduce-window, select-and-scatter, pad."""

import numpy as np

import hlo_types as T
from structured import NUMBERS, PLAIN, Window, joined, reducer, shape, small
from suite import Case, bitwise


def labels(rng, first, spatial, last):
    """A random order of the roles, e.g. "0bf1"."""
    out = [first, last, *map(str, range(spatial))]
    rng.shuffle(out)
    return ''.join(out)


def laid(text, sizes):
    return [sizes[c] for c in text]


def convolution(name, result, k, space):
    rng = T.rng('convolution', name, result, k, space)
    dims = [int(rng.integers(3, 7)) for _ in range(space)]
    window = Window(rng, dims, largest=3, reversal=True)
    groups, batches = 1, 1
    if k % 3 == 1:
        groups = int(rng.integers(2, 4))
    elif k % 3 == 2:
        batches = int(rng.integers(2, 4))
    inner, outer = int(rng.integers(1, 4)), int(rng.integers(1, 4)) * max(groups, batches)
    batch = int(rng.integers(1, 3)) * batches
    lhs, rhs, out = labels(rng, 'b', space, 'f'), labels(rng, 'i', space, 'o'), labels(
        rng, 'b', space, 'f')
    sizes = {str(d): n for d, n in enumerate(dims)}
    kernel = {str(d): n for d, n in enumerate(window.size)}
    made = {str(d): n for d, n in enumerate(window.result)}
    x = small(name, laid(lhs, {**sizes, 'b': batch, 'f': inner * groups}), 'x', k)
    w = small(name, laid(rhs, {**kernel, 'i': inner, 'o': outer}), 'w', k)
    dims_out = laid(out, {**made, 'b': batch // batches, 'f': outer})
    extra = f', feature_group_count={groups}' if groups > 1 else ''
    extra += f', batch_group_count={batches}' if batches > 1 else ''
    return Case('convolution', name if name == result else f'{name}->{result}', f'''
  x = {shape(name, x.shape)} parameter(0)
  w = {shape(name, w.shape)} parameter(1)
  ROOT r = {shape(result, dims_out)} convolution(x, w), {window.text(True)}dim_labels={lhs}_{rhs}->{out}{extra}''',
                [x, w], bitwise(), label=f'{space}d {k}')


def init_value(op, name):
    if op == 'add':
        return 'false' if name == 'pred' else '(0, 0)' if name[0] == 'c' else '0'
    if op == 'multiply':
        return '(1, 0)' if name[0] == 'c' else '1'
    if op in ('and', 'or'):
        return 'true' if op == 'and' else 'false'
    if name in T.INTEGERS:
        low, high = T.integer_range(name)
        return str(low if op == 'maximum' else high)
    return '-inf' if op == 'maximum' else 'inf'


def complex_products(x, window):
    """The elements of each window of complex x times each other, in row-major order."""
    parts = np.ones((*window.result, 2), x.real.dtype)
    parts[..., 1] = 0
    for out in np.ndindex(*window.result):
        a, b = parts[out]
        for at in np.ndindex(*window.size):
            place = window.reads(out, at)
            if place is not None:
                c, d = x[place].real, x[place].imag
                a, b = a * c - b * d, a * d + b * c
        parts[out] = a, b
    return parts.view(x.dtype)[..., 0]


def reduce_window(name, op, k, plain=False):
    rng = T.rng('reduce-window', name, op, k, plain)
    dims = [int(rng.integers(2, 6)) for _ in range(int(rng.integers(1, 4)))]
    window = Window(rng, dims, dilated=not plain, negative=not plain)
    x = small(name, dims, op, k, least=-2, most=2)
    # Exact in any order but for the signs of zero parts.
    by_order = name in T.COMPLEX and op == 'multiply'
    return Case('reduce-window', name, f'''
  x = {shape(name, dims)} parameter(0)
  i = {name}[] constant({init_value(op, name)})
  ROOT r = {shape(name, window.result)} reduce-window(x, i), {window.text()}to_apply=f''',
                [x], bitwise(), helpers=reducer(op, name), label=f'{op} {k}',
                reference=(lambda x: complex_products(x, window)) if by_order else None,
                freedom='XLA takes the elements of a window in another order')


def reduce_windows(k):
    """Two operands: the largest number and where it stood."""
    rng = T.rng('reduce-windows', k)
    dims = [int(rng.integers(3, 6)) for _ in range(2)]
    window = Window(rng, dims)
    x, at = small('f32', dims, k), np.arange(np.prod(dims), dtype=np.int32).reshape(dims)
    out = f'({shape("f32", window.result)}, {shape("s32", window.result)})'
    helpers = '''
f {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  more = pred[] compare(c, a), direction=GT
  value = f32[] select(more, c, a)
  place = s32[] select(more, d, b)
  ROOT both = (f32[], s32[]) tuple(value, place)
}'''
    return Case('reduce-window', 'f32 s32', f'''
  x = {shape("f32", dims)} parameter(0)
  y = {shape("s32", dims)} parameter(1)
  i = f32[] constant(-inf)
  j = s32[] constant(-1)
  ROOT r = {out} reduce-window(x, y, i, j), {window.text()}to_apply=f''',
                [x, at], bitwise(), helpers=helpers, label=f'two operands {k}')


def select_and_scatter(name, direction, k):
    rng = T.rng('select-and-scatter', name, k)
    dims = [int(rng.integers(3, 6)) for _ in range(int(rng.integers(1, 4)))]
    window = Window(rng, dims, dilated=False, negative=False)
    # Windows must lie over at least one element.
    window.low = [min(a, s - 1) for a, s in zip(window.low, window.size)]
    window.high = [min(a, s - 1) for a, s in zip(window.high, window.size)]
    window.result = [window.places(d) for d in range(len(dims))]
    if min(window.result) < 1:
        return None
    # Which of equal elements is chosen is free: there are none.
    x = rng.permutation(int(np.prod(dims))).reshape(dims).astype(T.DTYPES[name])
    y = small(name, window.result, 'y', k)
    helpers = reducer('add', name) + f'''
s {{
  s_x = {name}[] parameter(0)
  s_y = {name}[] parameter(1)
  ROOT s_r = pred[] compare(s_x, s_y), direction={direction}
}}'''
    zero = '(0, 0)' if name[0] == 'c' else '0'
    text = f'window={{size={joined(window.size, "x")} stride={joined(window.stride, "x")} pad=' + \
        'x'.join(f'{a}_{b}' for a, b in zip(window.low, window.high)) + '}'
    return Case('select-and-scatter', name, f'''
  x = {shape(name, dims)} parameter(0)
  y = {shape(name, window.result)} parameter(1)
  i = {name}[] constant({zero})
  ROOT r = {shape(name, dims)} select-and-scatter(x, y, i), {text}, select=s, scatter=f''',
                [x, y], bitwise(), helpers=helpers, label=f'{direction} {k}')


def pad(name, k):
    rng = T.rng('pad', name, k)
    dims = [int(rng.integers(0 if k % 4 == 3 else 1, 6)) for _ in range(int(rng.integers(1, 4)))]
    low, high, inner, out = [], [], [], []
    for n in dims:
        while True:
            a, b, c = (int(v) for v in rng.integers((-3, -3, 0), (4, 4, 3)))
            size = n + max(n - 1, 0) * c + a + b
            if size >= 0:
                break
        low.append(a), high.append(b), inner.append(c), out.append(size)
    x, v = small(name, dims, 'x', k), small(name, (), 'v', k)
    config = 'x'.join(f'{a}_{b}_{c}' for a, b, c in zip(low, high, inner))
    return Case('pad', name, f'''
  x = {shape(name, dims)} parameter(0)
  v = {name}[] parameter(1)
  ROOT r = {shape(name, out)} pad(x, v), padding={config}''', [x, v], bitwise(), label=str(k))


def register(add, full):
    few = 12 if full else 3
    for name in NUMBERS:
        for space in (0, 1, 2, 3) if full else (1, 2) if name != 'f32' else (0, 1, 2, 3):
            for k in range(few):
                add(convolution(name, name, k, space))
    for name, result in (('s8', 's32'), ('bf16', 'f32'), ('f16', 'f32'), ('f32', 'f64')):
        for k in range(few):
            add(convolution(name, result, k, 2))
    for name in PLAIN:
        ops = ('and', 'or') if name == 'pred' else ('add', 'multiply') if name[0] == 'c' else (
            'add', 'maximum', 'minimum', 'multiply')
        for op in ops:
            for k in range(few):
                add(reduce_window(name, op, k, k == 0))
    for k in range(few):
        add(reduce_windows(k))
    for name in NUMBERS:
        if name[0] == 'c':
            continue
        for direction in ('GE', 'LT'):
            for k in range(few):
                case = select_and_scatter(name, direction, k)
                if case is not None:
                    add(case)
    for name in T.ALL:
        for k in range(4 * few if full else 4):
            add(pad(name, k))
