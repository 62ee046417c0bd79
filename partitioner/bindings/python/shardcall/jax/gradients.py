# SPDX-License-Identifier: Apache-2.0
"""The gradient of a target's calls that another target computes, as a `vjp` of a manifest says."""
import jax.numpy as jnp

from shardcall.errors import Error
from shardcall.jax import call_types
from shardcall.jax import calls
from shardcall.jax import compat
from shardcall.jax import derivatives

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)

# Keys of a manifest's vjp that a JAX program cannot follow.
_OF_PROGRAMS = {'computation': 'JAX programs call no HLO text',
                'backend_config': 'a call in a JAX program has attributes, not their text'}


def check(name, vjp):
    """E141 where a dict has what `by_target` does not follow."""
    for key, why in _OF_PROGRAMS.items():
        if key in vjp:
            raise Error(f'E141 the vjp of "{name}" has "{key}": expected "target", "arguments", '
                        f'"gradients", "pad" and "skip_absent_operands" alone, since {why}. Fix: '
                        'Give a Python function, which makes that call or computes the gradient')


def _arguments(vjp):
    """[('cotangent', 0), ..]"""
    return [(kind, int(k)) for kind, k in map(str.split, vjp['arguments'])]


def takes(vjp, k):
    """Whether the VJP takes the cotangent of result k."""
    return ('cotangent', k) in _arguments(vjp)


def by_target(name, vjp, attributes, effect, operands, results, cotangents, differentiable):
    """The cotangents of a call's operands: None for each that the VJP gives no gradient of.

    Args:
      name: the target of the call.
      vjp: the dict that `check` has seen.
      attributes: of the call, and so of the VJP's.
      effect: whether the VJP's call runs where nobody uses its results.
      operands, results, cotangents: lists of arrays.
      differentiable: (function) -> the VJP's call, which is `function`, as one that JAX
        differentiates.

    Raises:
      shardcall.Error: E118 where the call lacks what the VJP takes or gives a gradient of.
    """
    def cannot(why, fix):
        return Error(f'E118 there is no VJP of this call of "{name}": {why}. Fix: {fix}')

    whole = 'Call the target with all of them, or say "skip_absent_operands" in its vjp'
    # JAX has no array for the cotangent of integers.
    filled = [c if derivatives.is_real(r) else jnp.zeros_like(r)
              for r, c in zip(results, cotangents)]
    values = {'operand': operands, 'result': results, 'cotangent': filled}
    skips = vjp.get('skip_absent_operands', False)
    arguments = []
    for kind, k in _arguments(vjp):
        if k < len(values[kind]):
            arguments.append(values[kind][k])
        elif kind != 'operand' or not skips:
            raise cannot(f'it needs {kind} {k}, which the call does not have', whole)
    wanted = [k for k in vjp['gradients'] if k < len(operands) or not skips]
    if max(wanted, default=0) >= len(operands):
        raise cannot(f'it gives a gradient of operand {max(wanted)}, which the call does not have',
                     whole)
    if not wanted:
        return [None] * len(operands)
    shapes = [call_types.like(operands[k]) for k in wanted]
    call = calls.Call(vjp['target'], attributes, shapes if len(shapes) > 1 else shapes[0],
                      effect=effect, batching=call_types.batching(vjp['target']))
    found = dict(zip(wanted, calls.listed(differentiable(call.function())(*arguments))))
    return [found.get(k) for k in range(len(operands))]
