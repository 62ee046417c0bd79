# SPDX-License-Identifier: Apache-2.0
"""The derivatives of a target's calls: backwards by its VJP, forwards by its JVP."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from shardcall.errors import Error
from shardcall.jax import compat
from shardcall.jax import linear_maps

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)


def is_real(x):
    """Whether JAX differentiates in such an array."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def zero(x):
    """The zero tangent of x."""
    return jnp.zeros_like(x) if is_real(x) else np.zeros(x.shape, jax.dtypes.float0)


def with_derivatives(name, call, pull, push, takes=lambda k: True):
    """`call`, a function of arrays, as one that JAX differentiates.

    Args:
      name: of the target, for messages.
      call: (*operands) -> the results, one array or a list.
      pull: (operands, results, cotangents) -> a cotangent for each operand, None where it is zero;
        None: there is none.
      push: (operands, results, tangents) -> the results' tangents, as `call` gives results; None:
        there is none.
      takes: whether `pull` makes use of the cotangent of result k. E118 where it does not, and what
        is differentiated depends on that result.
    """
    def refuse(k):
        raise Error(f'E118 there is no VJP of this call of "{name}": it takes no cotangent {k}, '
                    f'and what is differentiated depends on result {k}. Fix: Take "cotangent {k}" '
                    'among its arguments, or use jax.lax.stop_gradient of that result')

    def function(*operands):
        results = made(*operands)
        several = isinstance(results, (list, tuple))
        kept = [r if takes(k) or not is_real(r)
                else linear_maps.identity(r, functools.partial(refuse, k))
                for k, r in enumerate(results if several else [results])]
        return kept if several else kept[0]

    if push is None and pull is not None:
        made = _backwards(call, pull, function)
    else:
        made = _forwards(name, call, pull, push, function)
    return function


# `function` is the call with its derivatives, so that a derivative has a derivative.
def _forwards(name, call, pull, push, function):
    made = jax.custom_jvp(call)

    @made.defjvp
    def forwards(operands, tangents):
        if push is None:
            raise Error(f'E118 a call of "{name}" has no derivative. Fix: Give sj.target its vjp= '
                        'or jvp=, or linear=True where it is linear, or use jax.lax.stop_gradient '
                        'of its operands')
        results = function(*operands)
        return results, _both(name, operands, results, tangents, pull, push)

    return made


def _backwards(call, pull, function):
    def forward(*operands):
        results = function(*operands)
        return results, (operands, results)

    def backward(kept, cotangents):
        return tuple(pull(*kept, cotangents))

    made = jax.custom_vjp(call)
    made.defvjp(forward, backward)
    return made


def _both(name, operands, results, tangents, pull, push):
    """The results' tangents, as a linear function of those of the operands whose transpose is
    `pull`, or where that is None, what JAX makes of `push`."""
    several = isinstance(results, (list, tuple))
    listed = list(results) if several else [results]
    real = [k for k, x in enumerate(operands) if is_real(x)]
    real_results = [k for k, x in enumerate(listed) if is_real(x)]
    if not real_results:  # nothing moves: the call is not made again
        made = list(map(zero, listed))
        return made if several else made[0]

    def parts(constants):
        values = constants[len(operands):]
        return constants[:len(operands)], values if several else values[0]

    def forwards(constants, moved):
        inputs, outputs = parts(constants)
        every = list(map(zero, inputs))
        for k, t in zip(real, moved):
            every[k] = t
        made = push(inputs, outputs, every)
        made = list(made) if several else [made]
        return [made[k] for k in real_results]

    def backwards(constants, moved):
        inputs, outputs = parts(constants)
        every = list(map(zero, outputs if several else [outputs]))
        for k, t in zip(real_results, moved):
            every[k] = t
        made = pull(inputs, outputs, every if several else every[0])
        return [zero(inputs[k]) if made[k] is None else made[k] for k in real]

    def transposed(constants, moved):
        try:
            return list(jax.linear_transpose(lambda *given: forwards(constants, list(given)),
                                             *(constants[k] for k in real))(moved))
        except NotImplementedError as e:
            raise Error(f'E118 a call of "{name}" has no gradient: JAX cannot transpose its '
                        f'derivative ({e}). Fix: Give sj.target its vjp=') from e

    made = linear_maps.call(forwards, transposed if pull is None else backwards,
                            [*operands, *listed], [tangents[k] for k in real])
    every = list(map(zero, listed))
    for k, t in zip(real_results, made):
        every[k] = t
    return every if several else every[0]
