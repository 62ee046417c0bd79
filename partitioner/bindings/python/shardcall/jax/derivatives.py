# SPDX-License-Identifier: Apache-2.0
"""The derivatives of a target's calls: backwards by its VJP, forwards by its JVP."""
import jax
import jax.numpy as jnp
import numpy as np

from shardcall.errors import Error
from shardcall.jax import linear_maps


def is_real(x):
    """Whether JAX differentiates in such an array."""
    return jnp.issubdtype(x.dtype, jnp.inexact)


def zero(x):
    """The zero tangent of x."""
    return jnp.zeros(x.shape, x.dtype) if is_real(x) else np.zeros(x.shape, jax.dtypes.float0)


def with_derivatives(name, call, pull, push):
    """`call`, a function of arrays, as one that JAX differentiates.

    Args:
      name: of the target, for messages.
      call: (*operands) -> the results, one array or a list.
      pull: (operands, results, cotangents) -> a cotangent for each operand; None: there is none.
      push: (operands, results, tangents) -> the results' tangents, as `call` gives results; None:
        there is none.
    """
    if push is None and pull is not None:
        return _backwards(call, pull)

    made = jax.custom_jvp(call)

    @made.defjvp
    def forwards(operands, tangents):
        if push is None:
            raise Error(f'E118 a call of "{name}" has no derivative. Fix: Give sj.target its vjp= '
                        'or jvp=, or linear=True where it is linear')
        results = made(*operands)  # not `call`, so that a derivative has a derivative
        if pull is None:
            return results, push(operands, results, tangents)
        return results, _both(operands, results, tangents, pull, push)

    return made


def _backwards(call, pull):
    def forward(*operands):
        results = made(*operands)
        return results, (operands, results)

    def backward(kept, cotangents):
        return tuple(pull(*kept, cotangents))

    made = jax.custom_vjp(call)
    made.defvjp(forward, backward)
    return made


def _both(operands, results, tangents, pull, push):
    """The results' tangents, as a linear function of those of the operands whose transpose is
    `pull`."""
    several = isinstance(results, (list, tuple))
    listed = list(results) if several else [results]
    real = [k for k, x in enumerate(operands) if is_real(x)]
    real_results = [k for k, x in enumerate(listed) if is_real(x)]

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

    made = linear_maps.call(forwards, backwards, [*operands, *listed],
                            [tangents[k] for k in real])
    every = list(map(zero, listed))
    for k, t in zip(real_results, made):
        every[k] = t
    return every if several else every[0]
