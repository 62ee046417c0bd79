# SPDX-License-Identifier: Apache-2.0
"""Products and transforms: dot, ragged-dot, fft, cholesky, triangular-solve,
batch norm."""

import numpy as np

import hlo_types as T
from structured import NUMBERS, PLAIN, braces, shape, small
from suite import Case, bitwise, close


def widened(x):
    """Exact sums: object integers for integers, wide floats for floats."""
    name = T.NAMES[x.dtype]
    if name == 'pred' or name in T.INTEGERS:
        return x.astype(np.int64)
    return x.astype(np.complex128 if name in T.COMPLEX else np.float64)


def dot(lhs_type, rhs_type, result, k, attributes='', batches=None):
    rng = T.rng('dot', lhs_type, rhs_type, result, k, attributes)
    sides = 'bklr'
    count = {'b': int(rng.integers(0, 3)) if batches is None else batches,
             'k': int(rng.integers(0, 3)) if k else 1, 'l': int(rng.integers(0, 3)),
             'r': int(rng.integers(0, 3))}
    names = {s: [f'{s}{i}' for i in range(count[s])] for s in sides}
    size = {d: int(rng.integers(1, 6)) for s in sides for d in names[s]}
    lhs = [str(d) for d in rng.permutation(names['b'] + names['k'] + names['l'])]
    rhs = [str(d) for d in rng.permutation(names['b'] + names['k'] + names['r'])]
    out = names['b'] + [d for d in lhs if d[0] == 'l'] + [d for d in rhs if d[0] == 'r']
    x = small(lhs_type, [size[d] for d in lhs], 'x', k, least=-2, most=2)
    y = small(rhs_type, [size[d] for d in rhs], 'y', k, least=-2, most=2)
    letters = {d: chr(97 + i) for i, d in enumerate(sorted(size))}
    spec = (''.join(letters[d] for d in lhs) + ',' + ''.join(letters[d] for d in rhs) + '->' +
            ''.join(letters[d] for d in out))

    def reference(x, y):
        if lhs_type == 'pred':
            return np.einsum(spec, x.astype(np.int64), y.astype(np.int64)) != 0
        return np.einsum(spec, widened(x), widened(y))
    numbers = ''
    for label, dims in (('lhs_batch_dims', [lhs.index(d) for d in names['b']]),
                        ('lhs_contracting_dims', [lhs.index(d) for d in names['k']]),
                        ('rhs_batch_dims', [rhs.index(d) for d in names['b']]),
                        ('rhs_contracting_dims', [rhs.index(d) for d in names['k']])):
        numbers += f', {label}={braces(dims)}'
    types = lhs_type if lhs_type == rhs_type == result else f'{lhs_type} {rhs_type}->{result}'
    return Case('dot', types, f'''
  x = {shape(lhs_type, x.shape)} parameter(0)
  y = {shape(rhs_type, y.shape)} parameter(1)
  ROOT r = {shape(result, [size[d] for d in out])} dot(x, y){numbers}{attributes}''', [x, y],
                bitwise(), reference=reference, label=f'{attributes.strip(", ")} {k}',
                freedom='XLA takes the operands for signed, or rounds partial sums')


def ragged(name, mode, k):
    rng = T.rng('ragged-dot', name, mode, k)
    b, m, n, d, g = (int(v) for v in rng.integers(1, 6, 5))
    batched = bool(k % 2)
    batch = [b] if batched or mode == 'batch' else []
    rows = m + 3 if mode == 'free' else m
    depth = d + 3 if mode == 'contracting' else d
    extent = {'free': rows, 'contracting': depth, 'batch': b}[mode]
    cuts = np.sort(rng.integers(0, extent + 1, g))
    if k % 3 == 0:
        cuts[-1] = extent
    sizes = np.diff(np.concatenate([[0], cuts])).astype(np.int32)
    x = small(name, [*batch, rows, depth], 'x', k)
    y = small(name, ([g] if mode == 'free' else []) + [*batch, depth, n], 'y', k)
    c = len(batch)
    out = ([g] if mode == 'contracting' else []) + [*batch, rows, n]
    group = np.repeat(np.arange(g), sizes)
    group = np.concatenate([group, np.full(extent - group.size, -1)])

    def reference(x, y, sizes):
        x, y = widened(x), widened(y)
        if mode == 'batch':
            return x @ y + 0  # a sum starts at +0: no -0
        if mode == 'contracting':
            return np.stack([(x * (group == i)) @ y for i in range(g)]) + 0
        return sum(((x * (group == i)[:, None]) @ y[i]) for i in range(g)) + 0
    first = [0] if batch else []
    numbers = (f'lhs_batch_dims={braces(first)}, lhs_contracting_dims={{{c + 1}}}, '
               f'rhs_batch_dims={braces([v + (mode == "free") for v in first])}, '
               f'rhs_contracting_dims={{{c + (mode == "free")}}}, lhs_ragged_dims='
               f'{{{ {"free": c, "contracting": c + 1, "batch": 0}[mode]}}}')
    if mode == 'free':
        numbers += ', rhs_group_dims={0}'
    return Case('ragged-dot', name, f'''
  x = {shape(name, x.shape)} parameter(0)
  y = {shape(name, y.shape)} parameter(1)
  s = {shape("s32", sizes.shape)} parameter(2)
  ROOT r = {shape(name, out)} ragged-dot(x, y, s), {numbers}''', [x, y, sizes], bitwise(),
                reference=reference, label=f'{mode} {k}')


LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 25, 27, 31, 32, 37, 60, 97, 128, 210, 211, 1000)


def fft(name, kind, lengths, k):
    real = {'c64': 'f32', 'c128': 'f64'}[name]
    rng = T.rng('fft', name, kind, lengths, k)
    signal = [2] * (k % 2) + list(lengths)
    spectrum = signal[:-1] + [signal[-1] // 2 + 1]
    given = spectrum if kind == 'IRFFT' else signal
    made = spectrum if kind == 'RFFT' else signal
    x = rng.standard_normal(given)
    if kind != 'RFFT':
        x = x + 1j * rng.standard_normal(given)
    x = x.astype(T.DTYPES[real if kind == 'RFFT' else name])
    result = real if kind == 'IRFFT' else name
    axes = tuple(range(len(signal) - len(lengths), len(signal)))
    transform = {'FFT': np.fft.fftn, 'IFFT': np.fft.ifftn, 'RFFT': np.fft.rfftn}.get(
        kind, lambda x, axes: np.fft.irfftn(x, lengths, axes))
    return Case('fft', name, f'''
  x = {shape(T.NAMES[x.dtype], given)} parameter(0)
  ROOT r = {shape(result, made)} fft(x), fft_type={kind}, fft_length={braces(lengths)}''', [x],
                close(1e-6 if name == 'c64' else 1e-14),
                reference=lambda x: transform(widened(x), axes=axes),
                label=f'{kind} {lengths} {k}')


def normal(rng, name, dims):
    x = rng.standard_normal(dims)
    if name in T.COMPLEX:
        x = x + 1j * rng.standard_normal(dims)
    return x.astype(T.DTYPES[name])


def linear_limit(name):
    return 2e-2 if name == 'bf16' else 2e-3 if name == 'f16' else 1e-5 if name in (
        'f32', 'c64') else 1e-13


def cholesky(name, lower, k):
    rng = T.rng('cholesky', name, lower, k)
    n = int(rng.integers(1, 9))
    a = normal(rng, 'c128' if name in T.COMPLEX else 'f64', [3, n, n])
    a = (a @ np.swapaxes(a, -1, -2).conj() + n * np.eye(n)).astype(T.DTYPES[name])

    def reference(a):
        f = np.linalg.cholesky(widened(a))
        return f if lower else np.swapaxes(f, -1, -2).conj()
    return Case('cholesky', name, f'''
  a = {shape(name, a.shape)} parameter(0)
  ROOT r = {shape(name, a.shape)} cholesky(a){", lower=true" if lower else ""}''', [a],
                close(linear_limit(name)), reference=reference, label=f'{lower} {k}')


def triangular(name, k):
    rng = T.rng('triangular', name, k)
    left, lower, unit = (bool(k >> i & 1) for i in range(3))
    turned = ('NO_TRANSPOSE', 'TRANSPOSE', 'ADJOINT')[k // 8 % 3]
    n, m = (int(v) for v in rng.integers(1, 7, 2))
    a = normal(rng, name, [2, n, n])
    a = (a / 4 + 2 * np.eye(n).astype(a.dtype)).astype(a.dtype)
    b = normal(rng, name, [2, n, m] if left else [2, m, n])
    flags = ''.join(f', {f}=true' for f, on in (('left_side', left), ('lower', lower),
                                                ('unit_diagonal', unit)) if on)

    def reference(a, b):
        a, b = widened(a), widened(b)
        a = np.tril(a) if lower else np.triu(a)
        if unit:
            a = a - a * np.eye(n) + np.eye(n)
        a = {'N': a, 'T': np.swapaxes(a, 1, 2), 'A': np.swapaxes(a, 1, 2).conj()}[turned[0]]
        if left:
            return np.linalg.solve(a, b)
        return np.swapaxes(np.linalg.solve(np.swapaxes(a, 1, 2), np.swapaxes(b, 1, 2)), 1, 2)
    return Case('triangular-solve', name, f'''
  a = {shape(name, a.shape)} parameter(0)
  b = {shape(name, b.shape)} parameter(1)
  ROOT r = {shape(name, b.shape)} triangular-solve(a, b){flags}, transpose_a={turned}''', [a, b],
                close(linear_limit(name)), reference=reference, label=f'{turned}{flags}')


def batch_norm(name, form, k):
    rng = T.rng('batch-norm', name, k)
    dims = [int(rng.integers(1, 6)) for _ in range(int(rng.integers(2, 5)))]
    feature = int(rng.integers(0, len(dims)))
    n = dims[feature]
    others = tuple(d for d in range(len(dims)) if d != feature)
    x, dy = normal(rng, name, dims), normal(rng, name, dims)
    scale, offset, mean = (normal(rng, name, [n]) for _ in range(3))
    variance = (np.abs(normal(rng, 'f64', [n])) + 0.1).astype(T.DTYPES[name])
    given = {'training': [x, scale, offset], 'inference': [x, scale, offset, mean, variance],
             'grad': [x, scale, mean, variance, dy]}[form]
    whole, part = shape(name, dims), shape(name, [n])
    out = {'training': f'({whole}, {part}, {part})', 'inference': whole,
           'grad': f'({whole}, {part}, {part})'}[form]
    epsilon = 0.01

    def wide(v):
        return v.astype(np.float64).reshape([n if d == feature else 1 for d in range(len(dims))])

    def reference(x, *rest):
        x = x.astype(np.float64)
        if form == 'training':
            mu, var = x.mean(others), x.var(others)
            y = (x - wide(mu)) / np.sqrt(wide(var) + epsilon) * wide(rest[0]) + wide(rest[1])
            return [y, mu, var]
        if form == 'inference':
            scale, offset, mean, variance = (wide(v) for v in rest)
            return (x - mean) / np.sqrt(variance + epsilon) * scale + offset
        scale, mean, variance, dy = *(wide(v) for v in rest[:3]), rest[3].astype(np.float64)
        r = 1 / np.sqrt(variance + epsilon)
        h, count = (x - mean) * r, x.size / n
        dscale, doffset = (dy * h).sum(others), dy.sum(others)
        dx = scale * r * (dy - wide(doffset) / count - h * wide(dscale) / count)
        return [dx, dscale, doffset]
    lines = ''.join(f'\n  p{i} = {shape(name, v.shape)} parameter({i})'
                    for i, v in enumerate(given))
    return Case(f'batch-norm-{form}', name, f'''{lines}
  ROOT r = {out} batch-norm-{form}({", ".join(f"p{i}" for i in range(len(given)))}), epsilon={epsilon}, feature_index={feature}''',
                given, close(linear_limit(name)), reference=reference, label=str(k))


def scaled_dot(name, k):
    """Whole numbers and powers of two, so that all is exact. XLA on CPU has no such op."""
    rng = T.rng('scaled-dot', name, k)
    m, n = (int(v) for v in rng.integers(1, 6, 2))
    blocks, block = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    x, y = (rng.integers(-2, 3, (rows, blocks * block)).astype(T.DTYPES[name])
            for rows in (m, n))
    s, t = (np.exp2(rng.integers(-2, 3, (rows, blocks))).astype(T.DTYPES['f8e8m0fnu'])
            for rows in (m, n))

    def reference(x, y, s, t):
        wide = [np.repeat(b.astype(np.float64), block, axis=1) * a.astype(np.float64)
                for a, b in ((x, s), (y, t))]
        return wide[0] @ wide[1].T
    return Case('scaled-dot', name, f'''
  x = {name}[{m},{blocks * block}] parameter(0)
  y = {name}[{n},{blocks * block}] parameter(1)
  s = f8e8m0fnu[{m},{blocks}] parameter(2)
  t = f8e8m0fnu[{n},{blocks}] parameter(3)
  ROOT r = f32[{m},{n}] scaled-dot(x, y, s, t), lhs_contracting_dims={{1}}, \
rhs_contracting_dims={{1}}''', [x, y, s, t], bitwise(), reference=reference, label=str(k))


def register(add, full):
    for name in ('f4e2m1fn', 'f8e4m3fn', 'f8e5m2', 'bf16', 'f16', 'f32'):
        for k in range(8 if full else 2):
            add(scaled_dot(name, k))
    few = 24 if full else 4
    for name in PLAIN:
        for k in range(few):
            add(dot(name, name, name, k))
    mixed = [('s8', 's8', 's32'), ('u8', 'u8', 's32'), ('s4', 's4', 's32'), ('u8', 's8', 's32'),
             ('u4', 'u4', 'u32'), ('s16', 's16', 's64'), ('bf16', 'bf16', 'f32'),
             ('f16', 'f16', 'f32'), ('f32', 'f32', 'f64'), ('bf16', 'f32', 'f32'),
             ('f8e4m3fn', 'f8e4m3fn', 'f32'), ('f8e5m2', 'f8e5m2', 'bf16'),
             ('f8e4m3fn', 'f8e5m2', 'f32'), ('f8e4m3', 'f8e4m3', 'f16'),
             ('f8e3m4', 'f8e3m4', 'f32'), ('f8e4m3fnuz', 'f8e4m3fnuz', 'f32'),
             ('f8e5m2fnuz', 'f8e5m2fnuz', 'f32'), ('f8e4m3b11fnuz', 'f8e4m3b11fnuz', 'f32'),
             ('f4e2m1fn', 'f4e2m1fn', 'f32')]
    for types in mixed:
        for k in range(max(2, few // 2)):
            add(dot(*types, k))
    for algorithm, name, result in (
            ('dot_bf16_bf16_f32', 'f32', 'f32'), ('dot_bf16_bf16_f32_x3', 'f32', 'f32'),
            ('dot_bf16_bf16_f32_x6', 'f32', 'f32'), ('dot_bf16_bf16_f32', 'bf16', 'f32'),
            ('dot_f16_f16_f32', 'f16', 'f32'), ('dot_tf32_tf32_f32', 'f32', 'f32'),
            ('dot_f32_f32_f32', 'f32', 'f32'), ('dot_f64_f64_f64', 'f64', 'f64')):
        add(dot(name, name, result, 1, f', algorithm={algorithm}'))
    add(dot('f32', 'f32', 'f32', 2, ', operand_precision={highest,high}'))
    for name in NUMBERS:
        for mode in ('free', 'contracting', 'batch'):
            for k in range(few):
                add(ragged(name, mode, k))
    for name in ('c64', 'c128'):
        for kind in ('FFT', 'IFFT', 'RFFT', 'IRFFT'):
            for n in LENGTHS:
                add(fft(name, kind, (n,), n))
            for k, lengths in enumerate(((4, 6), (5, 3), (2, 3, 4), (3, 1, 7))):
                add(fft(name, kind, lengths, k))
    for name in ('bf16', 'f16', 'f32', 'f64', 'c64', 'c128'):
        for lower in (False, True):
            for k in range(max(2, few // 2)):
                add(cholesky(name, lower, k))
        for k in range(24):
            add(triangular(name, k))
    for name in ('bf16', 'f16', 'f32', 'f64'):
        for form in ('training', 'inference', 'grad'):
            for k in range(few):
                add(batch_norm(name, form, k))
