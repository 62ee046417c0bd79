# SPDX-License-Identifier: Apache-2.0
"""Loops and branches."""


def scanned(g):
    v = g.value(lambda v: v.rank >= 2 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    n, bound = v.shape[0], v.bound * v.shape[0]
    row = v.shape[1:]
    i = g.index(row[0])
    reverse = g.pick('', ', reverse=True')
    zeros = f'jnp.zeros({row}, {v.name}.dtype)'
    text, bound = g.pick(
        (f'lax.scan(lambda c, r: (c + r, c), {zeros}, {v.name}{reverse})[1]', bound),
        (f'lax.scan(lambda c, r: (c + r, r), {zeros}, {v.name}{reverse})[0]', bound),
        (f'lax.scan(lambda c, r: (c, r.at[{i}].set(5)), 0, {v.name}{reverse})[1]', v.bound + 5),
        (f'lax.map(lambda r: r * 2, {v.name})', 2 * v.bound),
        (f'lax.map(lambda r: jnp.sum(r), {v.name})', v.bound * v.size),
        (f'lax.map(lambda r: lax.dynamic_index_in_dim(r, {i}, 0), {v.name})', v.bound),
        (f'lax.map(lambda r: r + 1, {v.name}, batch_size=2)', v.bound + 1))
    return g.add(text, bound, operands=[v])


def looped(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    n = g.pick(1, 1, 2, 3, 5)
    d = v.shape[0]
    i = g.index(d)
    body, bound = g.pick(
        ('y + 1', v.bound + 5), ('jnp.roll(y, 1, 0)', v.bound), ('y.at[k].set(k)', v.bound + 5),
        (f'y.at[{i}].add(1)', v.bound + 5), ('y.at[k - 2].multiply(2)', 32 * v.bound),
        ('lax.dynamic_update_slice_in_dim(y, y[:1], k, 0)', v.bound),
        ('y + lax.dynamic_index_in_dim(y, k * 2, 0)', 32 * v.bound),
        ('jnp.flip(y, 0)', v.bound))
    if g.chance(0.3):
        return g.add(f'lax.while_loop(lambda c: c[0] < {n}, lambda c: (c[0] + 1, (lambda k, y: '
                     f'({body}).astype(y.dtype))(*c)), (0, {v.name}))[1]', bound, operands=[v])
    return g.add(f'lax.fori_loop(0, {n}, lambda k, y: ({body}).astype(y.dtype), {v.name})', bound,
                 operands=[v])


def branched(g):
    v = g.value(lambda v: v.rank >= 1 and v.dtype in ('float32', 'int32'))
    if v is None:
        return None
    forms = ['y + 1', 'y * 2', 'jnp.flip(y, 0)', 'jnp.roll(y, 2, 0)', 'y.at[0].set(4)',
             'jnp.zeros_like(y)', f'y.at[{g.index(v.shape[0])}].set(3)', 'jnp.cumsum(y, 0)',
             f'constrain(y, {g.spec(v.shape) or "P()"})']
    p = g.argument((), 'int32', -1, 3)
    one, two, three = (f'lambda y: ({g.pick(*forms)}).astype(y.dtype)' for _ in range(3))
    if g.chance(0.5):
        text = f'lax.cond({p.name} > 0, {one}, {two}, {v.name})'
    else:
        text = f'lax.switch({p.name}, [{one}, {two}, {three}], {v.name})'
    return g.add(text, v.bound * 24 + 4, operands=[v])


OPS = [scanned, looped, looped, branched]
