# SPDX-License-Identifier: Apache-2.0
"""Reductions, windows, cumulative ops, products and convolutions, transforms."""
import math


def axes(g, v):
    kept = [d for d in range(v.rank) if g.chance(0.6)] or [0]
    return tuple(kept)


def reduced(g):
    v = g.value(lambda v: v.rank >= 1)
    if v is None:
        return None
    a = axes(g, v)
    n = math.prod(v.shape[d] for d in a)
    forms = [('sum', v.bound * n), ('max', v.bound), ('min', v.bound)]
    if v.exact:
        forms += [('any', 1), ('all', 1)]
    name, bound = g.pick(*forms)
    keep = g.pick('', ', keepdims=True')
    return g.add(f'jnp.{name}({v.name}, axis={a}{keep})', bound, operands=[v])


def statistics(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype == 'float32')
    if v is None:
        return None
    a = axes(g, v)
    text = g.pick(f'jnp.mean({{}}, axis={a})', f'jnp.var({{}}, axis={a})',
                  f'jax.nn.logsumexp({{}}, axis={a})', f'jnp.sum(jnp.abs({{}}), axis={a}) / 7',
                  f'jax.nn.softmax({{}}, axis={a[0]})', f'jnp.average({{}}, axis={a[0]})')
    return g.add(text.format(v.name), v.bound ** 2 + 10, exact=False, operands=[v])


def places(g):
    v = g.value(lambda v: v.rank >= 1 and v.exact)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    name = g.pick('argmax', 'argmin', 'count_nonzero')
    return g.add(f'jnp.{name}({v.name}, axis={d})', v.shape[d], operands=[v])


def cumulative(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype != 'bool')
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    n = v.shape[d]
    text, bound = g.pick((f'jnp.cumsum({{}}, axis={d})', v.bound * n),
                         (f'lax.cummax({{}}, axis={d}, reverse={g.pick(True, False)})', v.bound),
                         (f'lax.cumsum({{}}, axis={d}, reverse=True)', v.bound * n),
                         (f'lax.associative_scan(jnp.add, {{}}, axis={d})', v.bound * n),
                         (f'lax.associative_scan(jnp.maximum, {{}}, axis={d})', v.bound))
    return g.add(text.format(v.name), bound, operands=[v])


def windows(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    sizes = tuple(g.number(1, min(3, s)) for s in v.shape)
    strides = tuple(g.pick(1, 1, 2) for _ in v.shape)
    padding = g.pick("'SAME'", "'VALID'",
                     str([(g.number(0, 1), g.number(0, 1)) for _ in v.shape]))
    if g.chance(0.5):
        return g.add(f'lax.reduce_window({v.name}, jnp.array(0, {v.name}.dtype), lax.add, {sizes}, '
                     f'{strides}, {padding})', v.bound * math.prod(sizes), operands=[v])
    low = '-jnp.inf' if v.dtype == 'float32' else 'jnp.iinfo(jnp.int32).min'
    return g.add(f'jnp.maximum(lax.reduce_window({v.name}, jnp.array({low}, {v.name}.dtype), '
                 f'lax.max, {sizes}, {strides}, {padding}), -99)', max(99, v.bound), operands=[v])


def product(g):
    v = g.value(lambda v: 1 <= v.rank <= 3 and v.dtype in ('float32', 'bfloat16', 'int32'))
    if v is None:
        return None
    letters = 'ijk'[:v.rank]
    contracted = [c for c in letters if g.chance(0.5)] or [letters[-1]]
    batch = [c for c in letters if c not in contracted and g.chance(0.4)]
    sizes = dict(zip(letters, v.shape))
    more = 'mn'[:g.number(0, 2)]
    sizes.update({c: g.pick(2, 4, 5, 8) for c in more})
    other = contracted + batch + list(more)
    g.random.shuffle(other)
    out = [c for c in letters if c not in contracted] + list(more)
    g.random.shuffle(out)
    w = g.like(v, exact=True, shape=tuple(sizes[c] for c in other))
    k = math.prod(sizes[c] for c in contracted)
    return g.add(f"jnp.einsum('{letters},{''.join(other)}->{''.join(out)}', {v.name}, {w.name})",
                 v.bound * w.bound * k, operands=[v, w])


def convolution(g):
    v = g.value(lambda v: v.rank == 3 and v.dtype == 'float32')
    if v is None or g.special:  # whether padding counts, as 0 times infinity, is the engine's
        return None
    n, c, s = v.shape
    groups = g.pick(1, 1, c)
    k = g.number(1, min(4, s))
    w = g.argument((groups * g.pick(1, 2, 4), c // groups, k), 'float32')
    padding = g.pick("'SAME'", "'VALID'", str([(g.number(0, 2), g.number(0, 2))]))
    return g.add(f'lax.conv_general_dilated({v.name}, {w.name}, ({g.pick(1, 1, 2)},), {padding}, '
                 f'rhs_dilation=({g.pick(1, 1, 2)},), feature_group_count={groups})',
                 v.bound * w.bound * k * c, operands=[v, w])


def gradient(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype == 'float32' and v.bound < 200)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    i = g.indices(v.shape[d], g.number(1, 4))
    w = g.like(v, exact=True)
    start = g.index(v.shape[d])
    body, bound, exact = g.pick(
        (f'jnp.sum(y * {w.name})', w.bound, True), ('jnp.sum(y ** 2)', 2 * v.bound, True),
        (f'jnp.sum(jnp.cumsum(y, {d}) * {w.name})', w.bound * v.shape[d], True),
        (f'jnp.sum(jnp.take(y, {i}, axis={d}, mode="clip"))', 8, True),
        (f'jnp.sum(lax.dynamic_slice_in_dim(y, {start}, 1, {d}) ** 2)', 2 * v.bound, True),
        (f'jnp.sum(jnp.sin(y) * {w.name})', w.bound, False),
        ('jnp.sum(jax.nn.softmax(y) ** 2)', 4, False),
        (f'jnp.sum(jnp.roll(y, 1, {d}) * {w.name})', w.bound, True),
        (f'jnp.sum(jax.checkpoint(lambda z: z * {w.name})(y))', w.bound, True))
    return g.add(f'jax.grad(lambda y: {body})({v.name})', bound, exact, operands=[v, w])


def batched(g):
    v = g.value(lambda v: v.rank >= 2 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    n = v.shape[0] if d else v.shape[1]
    i = g.argument((v.shape[d],), 'int32', 0 if g.chance(0.5) else -n - 2, n + 2)
    text, bound = g.pick(
        (f'jax.vmap(lambda y: jnp.cumsum(y, 0), {d})({v.name})', v.bound * 24),
        (f'jax.vmap(lambda y, i: lax.dynamic_index_in_dim(y, i, 0), ({d}, 0))({v.name}, {i.name})',
         v.bound),
        (f'jax.vmap(lambda y, i: y.at[i].set(2), ({d}, 0))({v.name}, {i.name})', v.bound + 2),
        (f'jax.vmap(lambda y, i: y.at[i].add(2), ({d}, 0))({v.name}, {i.name})', v.bound + 2),
        (f'jax.vmap(lambda y, i: lax.dynamic_update_slice_in_dim(y, y[:1], i, 0), ({d}, 0))'
         f'({v.name}, {i.name})', v.bound),
        (f'jax.vmap(lambda y: y[::-1], {d}, {g.number(0, 1)})({v.name})', v.bound))
    return g.add(text, bound, operands=[v])


def spectrum(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype == 'float32')
    if v is None or g.special:  # of infinities, each algorithm makes other NaN
        return None
    d = g.number(0, v.rank - 1)
    text = g.pick(f'jnp.abs(jnp.fft.fft({{}}, axis={d}))', f'jnp.fft.ifft({{}}, axis={d}).real',
                  f'jnp.fft.rfft({{}}, axis={d}).imag')
    return g.add(text.format(v.name), v.bound * v.shape[d], exact=False, operands=[v])


OPS = [reduced, reduced, statistics, places, cumulative, windows, product, product, convolution,
       gradient, batched, spectrum]
