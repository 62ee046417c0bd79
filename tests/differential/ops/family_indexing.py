# SPDX-License-Identifier: Apache-2.0
"""Ops that choose or place elements by index: gather, scatter, dynamic slices,
slice, reverse, transpose, broadcast, concatenate, iota."""

import numpy as np

import hlo_types as T
from structured import NUMBERS, PLAIN, braces, joined, reducer, shape, small
from suite import Case, bitwise

INDEX_TYPES = ('s32', 's64', 'u8', 's8', 'u32', 'u64', 's16')


class Indexing:
    """Random dimension numbers that gather and scatter share: windows of an operand
    and the array that they lie in."""

    def __init__(self, rng, batching, fewest=0):
        rank = int(rng.integers(1, 5))
        self.operand = [int(rng.integers(1, 5)) for _ in range(rank)]
        roles = [str(rng.choice(['window', 'dropped', 'batching' if batching else 'dropped']))
                 for _ in range(rank)]
        self.batching = [d for d in range(rank) if roles[d] == 'batching']
        self.dropped = [d for d in range(rank) if roles[d] == 'dropped']
        windows = [d for d in range(rank) if roles[d] == 'window']
        free = [d for d in range(rank) if d not in self.batching]
        self.window = [1 if roles[d] != 'window' else int(rng.integers(1, self.operand[d] + 1))
                       for d in range(rank)]
        count = int(rng.integers(min(fewest, len(free)), len(free) + 1))
        self.map = [int(d) for d in rng.permutation(free)[:count]]
        # Indices: the batch, with the vector of components somewhere.
        batch = [self.operand[d] for d in self.batching]
        batch += [int(rng.integers(1, 4)) for _ in range(int(rng.integers(0, 3)))]
        order = [int(i) for i in rng.permutation(len(batch))]
        self.batch = [batch[i] for i in order]
        where = [order.index(i) for i in range(len(self.batching))]
        self.vector = int(rng.integers(0, len(batch) + 1))
        self.indices = list(self.batch)
        if count != 1 or rng.integers(0, 2):
            self.indices.insert(self.vector, count)
        else:
            self.vector = len(batch)
        self.index_batching = [w + (len(self.indices) > len(batch) and w >= self.vector)
                               for w in where]
        # The array of windows: window dimensions at random places, in order.
        total = len(batch) + len(windows)
        self.window_dims = sorted(int(d) for d in rng.permutation(total)[:len(windows)])
        sizes, rest = iter(self.window[d] for d in windows), iter(self.batch)
        self.array = [next(sizes) if d in self.window_dims else next(rest) for d in range(total)]

    def start(self, rng, name):
        """Indices, some of them out of bounds."""
        low, high = T.integer_range(name)
        return rng.integers(max(low, -2), min(high, 5) + 1, self.indices).astype(T.DTYPES[name])


def gather(name, index, k):
    rng = T.rng('gather', name, index, k)
    g = Indexing(rng, k % 2 == 1)
    x, at = small(name, g.operand, 'x', k, least=-100, most=100), g.start(rng, index)
    extra = '' if not g.batching else (
        f', operand_batching_dims={braces(g.batching)}, '
        f'start_indices_batching_dims={braces(g.index_batching)}')
    return Case('gather', name, f'''
  x = {shape(name, x.shape)} parameter(0)
  i = {shape(index, at.shape)} parameter(1)
  ROOT r = {shape(name, g.array)} gather(x, i), offset_dims={braces(g.window_dims)}, collapsed_slice_dims={braces(g.dropped)}, start_index_map={braces(g.map)}{extra}, index_vector_dim={g.vector}, slice_sizes={braces(g.window)}''',
                [x, at], bitwise(), label=f'{index} {k}')


ORDERLESS = {'add': np.add, 'multiply': np.multiply, 'maximum': np.maximum,
             'minimum': np.minimum}
LAST_ALONE = ('without index components XLA applies the last update alone in some programs, '
              'every one in others')


def scatter(name, index, op, k, fewest=1):
    rng = T.rng('scatter', name, index, op, k)
    g = Indexing(rng, k % 2 == 1, fewest)
    if bool(g.map) != bool(fewest) or (not g.map and op not in ORDERLESS):
        return None
    x, at = small(name, g.operand, 'x', k), g.start(rng, index)
    y = small(name, g.array, 'y', k)
    extra = '' if not g.batching else (
        f', input_batching_dims={braces(g.batching)}, '
        f'scatter_indices_batching_dims={braces(g.index_batching)}')
    helpers = reducer(op, name) if op != 'set' else f'''
f {{
  f_x = {name}[] parameter(0)
  ROOT f_y = {name}[] parameter(1)
}}'''
    return Case('scatter', name, f'''
  x = {shape(name, x.shape)} parameter(0)
  i = {shape(index, at.shape)} parameter(1)
  y = {shape(name, y.shape)} parameter(2)
  ROOT r = {shape(name, g.operand)} scatter(x, i, y), update_window_dims={braces(g.window_dims)}, inserted_window_dims={braces(g.dropped)}, scatter_dims_to_operand_dims={braces(g.map)}{extra}, index_vector_dim={g.vector}, to_apply=f''',
                [x, at, y], bitwise(), helpers=helpers, label=f'{op} {index} {k}',
                reference=None if g.map else every_update(g, op), freedom=LAST_ALONE)


def every_update(g, op):
    """By the definition: without index components all updates meet at the origin."""
    def compute(x, at, y):
        del at
        out = x.copy()
        others = [d for d in range(y.ndim) if d not in g.window_dims]
        windows = np.moveaxis(y, others, range(len(others)))
        at_origin = tuple(0 if d in g.dropped else slice(0, n) for d, n in enumerate(g.window))
        for batch in np.ndindex(windows.shape[:len(others)]):
            out[at_origin] = ORDERLESS[op](out[at_origin], windows[batch])
        return out
    return None if g.batching else compute


def scatter_two(k):
    rng = T.rng('scatter two', k)
    g = Indexing(rng, False, 1)
    while not g.map:
        g = Indexing(rng, False, 1)
    x, y = small('f32', g.operand, 'x', k), small('s32', g.operand, 'y', k)
    u, v = small('f32', g.array, 'u', k), small('s32', g.array, 'v', k)
    at = g.start(rng, 's32')
    out = f'({shape("f32", g.operand)}, {shape("s32", g.operand)})'
    helpers = '''
f {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  s = f32[] add(a, c)
  t = s32[] maximum(b, d)
  ROOT both = (f32[], s32[]) tuple(s, t)
}'''
    return Case('scatter', 'f32 s32', f'''
  x = {shape("f32", x.shape)} parameter(0)
  y = {shape("s32", y.shape)} parameter(1)
  i = {shape("s32", at.shape)} parameter(2)
  u = {shape("f32", u.shape)} parameter(3)
  v = {shape("s32", v.shape)} parameter(4)
  ROOT r = {out} scatter(x, y, i, u, v), update_window_dims={braces(g.window_dims)}, inserted_window_dims={braces(g.dropped)}, scatter_dims_to_operand_dims={braces(g.map)}, index_vector_dim={g.vector}, to_apply=f''',
                [x, y, at, u, v], bitwise(), helpers=helpers, label=f'two operands {k}')


def dynamic(name, index, update, k):
    rng = T.rng('dynamic', name, index, update, k)
    dims = [int(rng.integers(1, 6)) for _ in range(int(rng.integers(1, 4)))]
    part = [int(rng.integers(1, n + 1)) for n in dims]
    low, high = T.integer_range(index)
    starts = [np.array(rng.integers(max(low, -3), min(high, 8) + 1)).astype(T.DTYPES[index])
              for _ in dims]
    if k % 4 == 3:
        starts[0] = np.array(rng.choice([low, high])).astype(T.DTYPES[index])
    x, y = small(name, dims, 'x', k, least=-100, most=100), small(name, part, 'y', k)
    inputs = [x, y, *starts] if update else [x, *starts]
    first = 2 if update else 1
    lines = [f'  i{d} = {index}[] parameter({first + d})' for d in range(len(dims))]
    names = joined((f'i{d}' for d in range(len(dims))), ', ')
    if update:
        lines.insert(0, f'  y = {shape(name, part)} parameter(1)')
        root = f'{shape(name, dims)} dynamic-update-slice(x, y, {names})'
    else:
        root = (f'{shape(name, part)} dynamic-slice(x, {names}), '
                f'dynamic_slice_sizes={braces(part)}')
    body = '\n'.join(lines)
    return Case('dynamic-update-slice' if update else 'dynamic-slice', name, f'''
  x = {shape(name, dims)} parameter(0)
{body}
  ROOT r = {root}''', inputs, bitwise(), label=f'{index} {k}')


def moved(name, k):
    """slice, reverse, transpose, broadcast, concatenate of random dimensions."""
    rng = T.rng('moved', name, k)
    dims = [int(rng.integers(1, 6)) for _ in range(int(rng.integers(1, 5)))]
    x = small(name, dims, 'x', k, least=-100, most=100)
    parameter = f'\n  x = {shape(name, dims)} parameter(0)\n  ROOT r = '
    low = [int(rng.integers(0, n + 1)) for n in dims]
    high = [int(rng.integers(a, n + 1)) for a, n in zip(low, dims)]
    step = [int(rng.integers(1, 4)) for _ in dims]
    out = [-(-(b - a) // s) for a, b, s in zip(low, high, step)]
    ranges = joined((f'[{a}:{b}:{s}]' for a, b, s in zip(low, high, step)), ', ')
    yield Case('slice', name, parameter + f'{shape(name, out)} slice(x), slice={{{ranges}}}', [x],
               bitwise(), label=str(k))
    turned = [d for d in range(len(dims)) if rng.integers(0, 2)]
    yield Case('reverse', name,
               parameter + f'{shape(name, dims)} reverse(x), dimensions={braces(turned)}', [x],
               bitwise(), label=str(k))
    perm = [int(d) for d in rng.permutation(len(dims))]
    out = [dims[d] for d in perm]
    yield Case('transpose', name,
               parameter + f'{shape(name, out)} transpose(x), dimensions={braces(perm)}', [x],
               bitwise(), label=str(k))
    rank = len(dims) + int(rng.integers(0, 3))
    to = sorted(int(d) for d in rng.permutation(rank)[:len(dims)])
    out = [int(n) for n in rng.integers(1, 4, rank)]
    for d, n in zip(to, dims):
        out[d] = n
    yield Case('broadcast', name,
               parameter + f'{shape(name, out)} broadcast(x), dimensions={braces(to)}', [x],
               bitwise(), label=str(k))
    along = int(rng.integers(0, len(dims)))
    parts = [x]
    for p in range(int(rng.integers(0, 3))):
        part = list(dims)
        part[along] = int(rng.integers(0, 4))
        parts.append(small(name, part, 'part', p, k))
    lines = ''.join(f'\n  p{i} = {shape(name, p.shape)} parameter({i})'
                    for i, p in enumerate(parts))
    out = list(dims)
    out[along] = sum(p.shape[along] for p in parts)
    names = joined((f'p{i}' for i in range(len(parts))), ', ')
    yield Case('concatenate', name, f'''{lines}
  ROOT r = {shape(name, out)} concatenate({names}), dimensions={{{along}}}''', parts, bitwise(),
               label=str(k))


def iota(name, k):
    rng = T.rng('iota', name, k)
    dims = [int(rng.integers(1, 20)) for _ in range(int(rng.integers(1, 4)))]
    d = int(rng.integers(0, len(dims)))
    return Case('iota', name, f'''
  ROOT r = {shape(name, dims)} iota(), iota_dimension={d}''', [], bitwise(), label=str(k))


def register(add, full):
    few = 24 if full else 4
    for n, name in enumerate(PLAIN):
        for k in range(2 * few):
            add(gather(name, INDEX_TYPES[(k + n) % len(INDEX_TYPES)], k))
    for n, name in enumerate(PLAIN):
        for op in ('set', 'or' if name == 'pred' else 'add') + (
                ('maximum',) if name not in ('pred', 'c64', 'c128') else ()):
            for k in range(few):
                if op == 'set' and k % 2:
                    continue  # which of equal indices comes last is free
                case = scatter(name, INDEX_TYPES[(k + n) % len(INDEX_TYPES)], op, k)
                if case is not None:
                    add(case)
    for name in ('s32', 'f32'):  # without index components
        for k in range(16 * few):
            case = scatter(name, 's32', ('add', 'maximum')[k // 2 % 2], k, 0)
            if case is not None:
                add(case)
    for k in range(few):
        add(scatter_two(k))
    for n, name in enumerate(PLAIN):
        for update in (False, True):
            for k in range(few):
                add(dynamic(name, INDEX_TYPES[(k + n) % len(INDEX_TYPES)], update, k))
    for name in T.ALL:
        for k in range(few if full else 2):
            for case in moved(name, k):
                add(case)
    for name in NUMBERS:
        for k in range(2):
            add(iota(name, k))
