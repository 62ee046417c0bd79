# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements: reshapes, transposes, slices, pads, concatenations."""
import math


def of_rank(g, least=1, most=9):
    return g.value(lambda v: least <= v.rank <= most)


def reshaped(g):
    v = of_rank(g)
    if v is None:
        return None
    factors, n = [], v.size
    for prime in (2, 2, 2, 2, 2, 3, 3, 5, 7, 17):
        if n % prime == 0:
            factors.append(prime)
            n //= prime
    factors.append(n)
    dims = [1] * g.number(1, 4)
    if g.chance(0.5):
        g.random.shuffle(factors)
    for f in factors:
        dims[g.number(0, len(dims) - 1)] *= f
    return g.add(f'{v.name}.reshape({tuple(dims)})', operands=[v])


def merged_or_split(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    if g.chance(0.5) and d + 1 < v.rank:
        dims = v.shape[:d] + (v.shape[d] * v.shape[d + 1],) + v.shape[d + 2:]
    else:
        ways = [k for k in range(1, v.shape[d] + 1) if v.shape[d] % k == 0]
        k = g.pick(*ways)
        dims = v.shape[:d] + (k, v.shape[d] // k) + v.shape[d + 1:]
    return g.add(f'{v.name}.reshape({dims})', operands=[v])


def transposed(g):
    v = of_rank(g, 2)
    return v and g.add(f'jnp.transpose({v.name}, {tuple(g.permutation(v.rank))})', operands=[v])


def sliced(g):
    v = of_rank(g)
    if v is None:
        return None
    entries = []
    for size in v.shape:
        start = g.number(0, size - 1)
        stop = g.number(start + 1, size)
        step = g.pick(1, 1, 1, 2, 3)
        entries.append(g.pick(':', ':', f'{start}:{stop}:{step}', f'{start - size}:',
                              str(start), '::-1', f'{start}::{step}'))
    return g.add(f'{v.name}[{", ".join(entries)}]', operands=[v])


def padded(g):
    v = of_rank(g)
    if v is None:
        return None
    if g.chance(0.5):
        configuration = [(g.number(-1, 3), g.number(-1, 3), g.pick(0, 0, 0, 1, 2)) for _ in v.shape]
        return g.add(f'lax.pad({v.name}, jnp.array({g.number(0, 2)}, {v.name}.dtype), '
                     f'{configuration})', max(v.bound, 2), operands=[v])
    width = [(g.number(0, min(2, s - 1)), g.number(0, min(2, s - 1))) for s in v.shape]
    mode = g.pick('constant', 'edge', 'reflect', 'wrap', 'symmetric')
    return g.add(f'jnp.pad({v.name}, {width}, mode="{mode}")', operands=[v])


def concatenated(g):
    v = of_rank(g)
    if v is None:
        return None
    w = g.like(v)
    d = g.number(0, v.rank - 1)
    if g.chance(0.3):
        return g.add(f'jnp.stack([{v.name}, {w.name}, {v.name}], {d})', operands=[v, w])
    cut = g.number(1, v.shape[d])
    one = ', '.join([':'] * d + [f':{cut}'])
    return g.add(f'jnp.concatenate([{v.name}, {w.name}[{one}]], {d})', max(v.bound, w.bound),
                 operands=[v, w])


def shifted(g):
    v = of_rank(g)
    if v is None:
        return None
    d = g.number(0, v.rank - 1)
    text = g.pick(f'jnp.roll({{}}, {g.number(-3, 9)}, {d})', f'jnp.flip({{}}, {d})',
                  f'jnp.roll({{}}, {g.number(-3, 9)})', f'jnp.diff({{}}, axis={d})',
                  f'jnp.repeat({{}}, {g.number(2, 3)}, axis={d})',
                  f'jnp.tile({{}}, {tuple(g.number(1, 2) for _ in v.shape)})',
                  f'jnp.split({{}}, {g.pick(1, 2, 4)}, {d})[-1]', 'jnp.rot90({})',
                  f'jnp.expand_dims({{}}, {d})', 'jnp.squeeze({})',
                  f'jnp.broadcast_to({{}}, {(g.number(1, 8), *v.shape)})',
                  f'jnp.moveaxis({{}}, {d}, 0)',
                  f'lax.broadcast_in_dim({{}}, {(*v.shape, 3)}, {tuple(range(v.rank))})')
    return g.add(text.format(v.name), 2 * v.bound, operands=[v])


def triangles(g):
    v = of_rank(g, 2)
    if v is None:
        return None
    k = g.number(-2, 2)
    text = g.pick(f'jnp.tril({{}}, {k})', f'jnp.triu({{}}, {k})', f'jnp.diagonal({{}}, {k})',
                  'jnp.trace({})')
    return g.add(text.format(v.name), v.bound * max(v.shape), operands=[v])


def made(g):
    v = of_rank(g)
    if v is None:
        return None
    n = math.prod(v.shape)
    text = g.pick(f'jnp.arange({n}).reshape({v.shape}) % 5',
                  f'lax.broadcasted_iota(jnp.int32, {v.shape}, {v.rank - 1}) % 5',
                  f'jnp.eye({v.shape[0]}, dtype=jnp.float32)',
                  f'jnp.linspace(0, {v.shape[0] - 1}, {v.shape[0]}).round()' if v.shape[0] < 3 else
                  f'jnp.zeros_like({v.name})',
                  f'jnp.full({v.shape}, 3, jnp.float32)')
    return g.add(text, max(5, v.bound), operands=[v] if v.name in text else [])


OPS = [reshaped, reshaped, merged_or_split, merged_or_split, transposed, sliced, sliced, padded,
       concatenated, shifted, shifted, triangles, made]
