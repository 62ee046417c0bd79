# SPDX-License-Identifier: Apache-2.0
"""Elementwise ops, and conversions."""
from generate import FLOATS, INTS


def unary_exact(g):
    v = g.value()
    if v is None or not v.exact:
        return None
    text, bound = g.pick(('-{}', v.bound), ('jnp.abs({})', v.bound), ('jnp.sign({})', 1),
                         ('{} * 2', 2 * v.bound), ('{} + 1', v.bound + 1), ('3 - {}', v.bound + 3),
                         ('jnp.square({})', v.bound ** 2), ('jnp.clip({}, -1, 2)', 2),
                         ('jax.nn.relu({})', v.bound), ('jnp.maximum({}, 1)', max(1, v.bound)),
                         ('jnp.floor_divide({}, 2)', v.bound), ('jnp.remainder({}, 3)', 3),
                         ('jax.nn.relu6({})', 6), ('jnp.where({0} > 0, {0}, -{0})', v.bound))
    if v.dtype[0] in 'ub' and '-' in text:
        return None
    return g.add(text.format(v.name), bound, operands=[v])


def unary_of_floats(g):
    v = g.value(lambda v: v.dtype == 'float32')
    if v is None:
        return None
    text, bound = g.pick(
        ('jnp.sin({})', 1), ('jnp.cos({})', 1), ('jnp.tanh({})', 1), ('jax.nn.sigmoid({})', 1),
        ('jnp.exp(-jnp.abs({}))', 1), ('jnp.log1p(jnp.abs({}))', v.bound),
        ('jnp.sqrt(jnp.abs({}) + 1)', v.bound + 1), ('jax.nn.gelu({})', v.bound),
        ('jax.nn.silu({})', v.bound), ('jax.nn.softplus({})', v.bound + 1),
        ('lax.rsqrt(jnp.abs({}) + 1)', 1), ('jax.scipy.special.erf({})', 1),
        ('jnp.arctan({})', 2), ('jnp.cbrt({})', v.bound), ('jnp.sinc({})', 1),
        ('jnp.expm1(-jnp.abs({}))', 1), ('{} / 3', v.bound), ('jax.nn.softmax({})', 1),
        ('jax.nn.log_softmax({})', 2 * v.bound + 8), ('jax.nn.standardize({})', 40))
    return g.add(text.format(v.name), bound, exact=False, operands=[v])


def unary_of_ints(g):
    v = g.value(lambda v: v.dtype in INTS)
    if v is None:
        return None
    text = g.pick('~{}', 'lax.population_count({})', 'lax.clz({})', '{} & 5', '{} | 2', '{} ^ 3',
                  '{} >> 1', 'lax.shift_right_logical({0}, jnp.ones_like({0}))', '{} << 1')
    return g.add(f'({text.format(v.name)}) % 8', 8, operands=[v])


def binary(g):
    v = g.value()
    if v is None:
        return None
    w = g.like(v, exact=True)
    text, bound = g.pick(('{} + {}', v.bound + w.bound), ('{} - {}', v.bound + w.bound),
                         ('{} * {}', v.bound * w.bound),
                         ('jnp.maximum({}, {})', max(v.bound, w.bound)),
                         ('jnp.minimum({}, {})', max(v.bound, w.bound)))
    if v.dtype in ('bool',):
        text, bound = g.pick('{} & {}', '{} | {}', '{} ^ {}'), 1
    if v.dtype.startswith('u') and '-' in text:
        return None
    return g.add(text.format(v.name, w.name), bound, operands=[v, w])


def divided(g):
    """By what is not zero."""
    v = g.value(lambda v: v.exact and v.dtype in INTS + FLOATS)
    if v is None:
        return None
    w = g.like(v, exact=True)
    divisor = f'(jnp.abs({w.name}) + 1)'
    text = g.pick('jnp.floor_divide({}, {})', 'jnp.remainder({}, {})', 'lax.rem({}, {})')
    return g.add(text.format(v.name, divisor), max(v.bound, w.bound + 1), operands=[v, w])


def broadcast_binary(g):
    v = g.value(lambda v: v.rank >= 1)
    if v is None:
        return None
    keep = [s if g.chance(0.5) else 1 for s in v.shape][g.number(0, v.rank - 1):]
    w = g.like(v, exact=True, shape=tuple(keep))
    text, bound = g.pick(('{} + {}', v.bound + w.bound), ('{} * {}', v.bound * w.bound))
    return g.add(text.format(v.name, w.name), bound, operands=[v, w])


def compared(g):
    v = g.value(lambda v: v.exact)
    if v is None:
        return None
    w = g.like(v, exact=True)
    relation = g.pick('<', '<=', '==', '!=', '>', '>=')
    if g.chance(0.5):
        return g.add(f'jnp.where({v.name} {relation} {w.name}, {v.name}, {w.name})',
                     max(v.bound, w.bound), operands=[v, w])
    return g.add(f'({v.name} {relation} {w.name}).astype(jnp.{g.pick("int32", "float32")})', 1,
                 operands=[v, w])


def converted(g):
    v = g.value(lambda v: v.exact)
    if v is None:
        return None
    to = g.pick('float32', 'int32', 'bfloat16', 'float16', 'int8', 'int16')
    if v.dtype == 'complex64':
        return g.add(f'jnp.real({v.name})', v.bound, operands=[v])
    if v.bound > 100:
        return None
    return g.add(f'{v.name}.astype(jnp.{to})', v.bound, operands=[v])


def complex_numbers(g):
    v = g.value(lambda v: v.dtype == 'float32')
    if v is None or g.special:  # a NaN beside an infinity is the engine's
        return None
    w = g.like(v)
    text = g.pick('jnp.abs(lax.complex({0}, {1}))', 'jnp.real(lax.complex({0}, {1}) ** 2)',
                  'jnp.imag(jnp.conj(lax.complex({0}, {1})) * (2 + 1j))')
    return g.add(text.format(v.name, w.name), 8 * (v.bound + w.bound) ** 2, exact=False,
                 operands=[v, w])


def bits(g):
    v = g.value(lambda v: v.exact and v.dtype in ('int32', 'float32'))
    if v is None:
        return None
    if v.dtype == 'int32':
        return g.add(f'lax.bitcast_convert_type({v.name}, jnp.uint8).astype(jnp.int32)', 256,
                     operands=[v])
    return g.add(f'lax.bitcast_convert_type({v.name}, jnp.int32) % 11', 11, operands=[v])


def random_numbers(g):
    shape = g.value()
    if shape is None:
        return None
    text = g.pick(f'jax.random.randint(jax.random.key({g.number(0, 9)}), {shape.shape}, 0, 9)',
                  f'jax.random.bits(jax.random.key({g.number(0, 9)}), {shape.shape}, jnp.uint32) % 9',
                  f'jax.random.permutation(jax.random.key(1), {g.number(2, 17)})')
    return g.add(text, 9)


OPS = [unary_exact, unary_exact, unary_of_floats, unary_of_ints, binary, binary, divided,
       broadcast_binary, compared, converted, complex_numbers, bits, random_numbers]
