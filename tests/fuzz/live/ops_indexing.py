# SPDX-License-Identifier: Apache-2.0
"""Indices in and out of range: dynamic slices and updates, gathers, scatters, jnp.at."""


def of_rank(g, least=1):
    return g.value(lambda v: v.rank >= least)


def window(g, v):
    """(the starts' texts, the sizes) of a part of `v`."""
    starts, sizes = [], []
    for s in v.shape:
        whole = g.chance(0.4)
        sizes.append(s if whole else g.number(1, s))
        starts.append('0' if whole else g.index(s))
    return starts, sizes


def dynamic_slice(g):
    v = of_rank(g)
    if v is None:
        return None
    starts, sizes = window(g, v)
    return g.add(f'lax.dynamic_slice({v.name}, ({", ".join(starts)},), {tuple(sizes)})',
                 operands=[v])


def dynamic_update(g):
    v = of_rank(g)
    if v is None:
        return None
    starts, sizes = window(g, v)
    u = g.like(v, shape=tuple(sizes))
    return g.add(f'lax.dynamic_update_slice({v.name}, {u.name}, ({", ".join(starts)},))',
                 max(v.bound, u.bound), operands=[v, u])


def one_index(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    i = g.index(v.shape[d], out_of_range=False) if g.chance(0.5) else g.index(v.shape[d])
    text = g.pick(f'lax.dynamic_index_in_dim({{}}, {i}, {d}, keepdims={g.pick(True, False)})',
                  f'jnp.take({{}}, jnp.array({i}), axis={d}, mode="{g.pick("clip", "wrap")}")',
                  f'{{}}[{", ".join([":"] * d + [f"jnp.array({i})"])}]',
                  f'jnp.take({{}}, jnp.array([{i}]), axis={d}, mode="clip")')
    return g.add(text.format(v.name), operands=[v])


def gathered(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    n = g.number(1, 8)
    i = g.indices(v.shape[d], n)
    rest = ', '.join([':'] * d)
    at = f'[{rest}, {i}]' if rest else f'[{i}]'
    forms = [f'jnp.take({{}}, {i}, axis={d}, mode="{g.pick("clip", "wrap")}")', f'{{}}{at}',
             f'{{}}.at{at}.get(mode="{g.pick("fill", "clip")}", fill_value=1)']
    if v.rank >= 2 and d == 0:
        j = g.indices(v.shape[1], n)
        forms += [f'{{}}[{i}, {j}]', f'{{}}[{i}[:, None], {j}[None, :]]', f'{{}}[{i}, :, None]']
    return g.add(g.pick(*forms).format(v.name), max(v.bound, 1), operands=[v])


def along_axis(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    i = g.argument(tuple(g.number(1, 5) if k == d else s for k, s in enumerate(v.shape)), 'int32',
                   0, v.shape[d] - 1)
    return g.add(f'jnp.take_along_axis({v.name}, {i.name}, {d})', operands=[v])


def scattered(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    rest = ', '.join([':'] * d)
    how = g.pick('set', 'set', 'add', 'add', 'multiply', 'min', 'max')
    if v.dtype == 'bool':
        how = 'set'
    form = g.number(0, 4)
    if form == 0:  # one place, or one row
        i = g.index(v.shape[d])
        at = f'[{rest}, {i}]' if rest else f'[{i}]'
        u = str(g.number(0, 3))
        bound = 3
    elif form == 1:  # a part
        start = g.number(0, v.shape[d] - 1)
        stop = g.number(start + 1, v.shape[d])
        at = f'[{rest}, {start}:{stop}:{g.pick(1, 1, 2)}]' if rest else f'[{start}:{stop}]'
        u, bound = str(g.number(0, 3)), 3
    else:  # several, that may be equal
        n = g.number(1, 8)
        i = g.indices(v.shape[d], n)
        if how == 'set':  # equal places would be ambiguous
            places = g.random.sample(range(v.shape[d]), min(n, v.shape[d]))
            if g.chance(0.3):
                places.append(v.shape[d] + 2)
            i, n = f'jnp.array({places})', len(places)
        at = f'[{rest}, {i}]' if rest else f'[{i}]'
        w = g.like(v, exact=True, shape=v.shape[:d] + (n,) + v.shape[d + 1:])
        u, bound = w.name, w.bound
    mode = g.pick('', '', f', mode="{g.pick("drop", "clip")}"' if how != 'set' or form < 2 else '')
    most = {'add': v.bound + 8 * bound, 'multiply': v.bound * bound ** 8 if form > 1 else
            v.bound * bound}.get(how, max(v.bound, bound))
    if how == 'multiply' and not v.exact:
        return None
    return g.add(f'{v.name}.at{at}.{how}({u}{mode})', most, operands=[v])


def at_two(g):
    v = of_rank(g, 2)
    if v is None:
        return None
    i, j = g.index(v.shape[0]), g.index(v.shape[1])
    how = g.pick('set(2)', 'add(1)', 'max(2)', 'get()', 'get(mode="clip")', 'apply(jnp.negative)')
    if v.dtype[0] in 'ub' and 'negative' in how:
        return None
    return g.add(f'{v.name}.at[{i}, {j}].{how}', v.bound + 2, operands=[v])


def ordered(g):
    v = g.value(lambda v: v.rank >= 1 and v.exact and v.dtype != 'bool')
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    k = g.number(1, v.shape[-1])
    text, bound = g.pick(
        (f'jnp.sort({{}}, axis={d})', v.bound), (f'jnp.argsort({{}}, axis={d})', v.shape[d]),
        (f'lax.top_k({{}}, {k})[0]', v.bound), (f'lax.top_k({{}}, {k})[1]', v.shape[-1]),
        (f'jnp.sort({{}}, axis={d}, descending=True)', v.bound),
        (f'lax.sort([{{0}}, -{{0}}], dimension={d}, num_keys=1)[1]', v.bound),
        (f'jnp.unique({{}}, size=5, fill_value=0)', v.bound),
        (f'jnp.nonzero({{}}, size=7, fill_value=0)[0]', v.shape[0]),
        (f'jnp.searchsorted(jnp.sort({{0}}.reshape(-1)), {{0}})', v.size),
        (f'jnp.median({{}}.astype(jnp.float32), axis={d})', v.bound))
    if v.dtype.startswith('u') and '-{0}' in text:
        return None
    return g.add(text.format(v.name), bound, operands=[v])


def segments(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    n = g.number(1, 9)
    i = g.argument((v.shape[0],), 'int32', 0, n + 1)
    text = g.pick(f'jax.ops.segment_sum({v.name}, {i.name}, {n})',
                  f'jnp.zeros(({n},) + {v.shape[1:]}, {v.name}.dtype).at[{i.name}].add({v.name})',
                  f'jax.nn.one_hot({i.name}, {n})', f'jnp.bincount({i.name}, length={n})')
    return g.add(text, v.bound * v.shape[0] + v.shape[0], operands=[v])


OPS = [dynamic_slice, dynamic_slice, dynamic_update, one_index, one_index, gathered, gathered,
       along_axis, scattered, scattered, scattered, at_two, ordered, segments]
