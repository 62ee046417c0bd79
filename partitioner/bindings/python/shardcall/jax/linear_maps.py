# SPDX-License-Identifier: Apache-2.0
"""A linear function together with its transpose, for JAX to differentiate: forwards by the one and
backwards by the other. Both are functions that JAX can trace."""
import functools

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad
from jax.interpreters import batching
from jax.interpreters import mlir

from shardcall.jax import call_types
from shardcall.jax import compat

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)
_linear_p = Primitive('shardcall_linear_map')
_linear_p.multiple_results = True


def call(function, transpose, constants, arguments):
    """`function(constants, arguments)`, which is linear in `arguments`; `transpose(constants,
    cotangents)` is its transpose. All are lists of arrays, as are the results."""
    return _linear_p.bind(*constants, *arguments, num_constants=len(constants), function=function,
                          transpose=transpose)


def identity(x, refuse):
    """x. Where what is differentiated backwards depends on it, `refuse` is called, which raises."""
    @jax.custom_jvp
    def made(x):
        return x

    def transposed(_, cotangents):
        refuse()

    @made.defjvp
    def forwards(operands, tangents):
        return made(*operands), call(lambda _, moved: moved, transposed, [], list(tangents))[0]

    return made(x)


def _flat(*args, num_constants, function, transpose):
    del transpose
    return function(list(args[:num_constants]), list(args[num_constants:]))


def _results(*avals, **params):
    function = functools.partial(_flat, **params)
    return jax.make_jaxpr(function)(*map(call_types.like_type, avals)).out_avals


def _jvp(primals, tangents, **params):
    n = params['num_constants']
    results = _linear_p.bind(*primals, **params)
    if all(type(t) is ad.Zero for t in tangents[:n]):
        moved = [ad.instantiate_zeros(t) for t in tangents[n:]]
        return results, _linear_p.bind(*primals[:n], *moved, **params)
    # In its constants, too: as the function itself is differentiated.
    moved = [ad.instantiate_zeros(t) for t in tangents]
    return results, jax.jvp(functools.partial(_flat, **params), tuple(primals), tuple(moved))[1]


def _transpose(cotangents, *args, num_constants, function, transpose):
    if all(type(c) is ad.Zero for c in cotangents):
        return [None] * num_constants + [ad.Zero(x.aval) for x in args[num_constants:]]
    constants = args[:num_constants]
    made = _linear_p.bind(*constants, *map(ad.instantiate_zeros, cotangents),
                          num_constants=num_constants, function=transpose, transpose=function)
    return [None] * num_constants + list(made)


def _batched(args, dims, *, num_constants, function, transpose):
    size = next(x.shape[d] for x, d in zip(args, dims) if d is not None)
    of_constants = list(dims[:num_constants])

    def over(f, of_arguments):
        return lambda constants, arguments: jax.vmap(
            f, in_axes=(of_constants, of_arguments), out_axes=0, axis_size=size)(
                constants, arguments)

    # The transpose gets a cotangent for each element of the batch, and gives one.
    arguments = [x if d == 0 else jax.numpy.broadcast_to(x, (size, *x.shape)) if d is None
                 else jax.numpy.moveaxis(x, d, 0)
                 for x, d in zip(args[num_constants:], dims[num_constants:])]
    made = _linear_p.bind(*args[:num_constants], *arguments, num_constants=num_constants,
                          function=over(function, 0), transpose=over(transpose, 0))
    return made, [0] * len(made)


_linear_p.def_impl(_flat)
_linear_p.def_abstract_eval(_results)
ad.primitive_jvps[_linear_p] = _jvp
ad.primitive_transposes[_linear_p] = _transpose
batching.primitive_batchers[_linear_p] = _batched
mlir.register_lowering(_linear_p, mlir.lower_fun(_flat, multiple_results=True))
