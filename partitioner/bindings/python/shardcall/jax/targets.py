# SPDX-License-Identifier: Apache-2.0
"""target: a custom call with all that belongs to it."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

import jax
import jax.numpy as jnp
import numpy as np

from shardcall import registry
from shardcall import xla_client
from shardcall.errors import Error
from shardcall.jax import call_types
from shardcall.jax import calls
from shardcall.jax import compat
from shardcall.jax import derivatives

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)
_STAGES = {'instantiate', 'prepare', 'initialize', 'execute'}


def _kernels(handler):
    """{platform: capsule, or capsules by stage}."""
    if handler is None:
        return {}
    if not isinstance(handler, dict) or set(handler) & _STAGES:
        handler = {'cpu': handler}

    def capsule(function):  # of a function of a ctypes library, too
        return jax.ffi.pycapsule(function) if hasattr(function, 'argtypes') else function

    return {platform: {stage: capsule(f) for stage, f in kernel.items()}
            if isinstance(kernel, dict) else capsule(kernel)
            for platform, kernel in handler.items()}


def _listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def _like(results, made):
    """`made`, a list, as one value where `results` is one."""
    return made if isinstance(results, (tuple, list)) else made[0]


def _identity(value):
    """Equal for attributes that a kernel gets as the same bytes of the same types: 0.0 is not -0.0,
    1 is neither 1.0 nor True, and arrays can be looked up."""
    if isinstance(value, Mapping):
        return (dict, tuple((name, _identity(value[name])) for name in sorted(value)))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(_identity, value)))
    if isinstance(value, (np.generic, np.ndarray)):  # np.float64 is a float, too
        return (type(value), value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


class Target:
    """A custom call as a function of arrays, which one calls, jits, vmaps, and differentiates
    with jax.grad. Its keywords are the call's attributes, as jax.ffi.ffi_call takes them.

    Attributes:
      name: of the target, as calls have it.
      rule: how it shards, a string or a dict; None where that is known otherwise.
    """

    def __init__(self, name, rule, shapes, derivatives, batching, side_effect, form):
        self.name, self.rule = name, rule
        self._shapes, self._batching = shapes, batching
        self._vjp, self._jvp, self._linear = derivatives
        self._side_effect = side_effect
        self._form = form  # a calls.Form
        self._functions = {}  # by identity of the attributes
        self.__name__ = self.__qualname__ = name

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        key = _identity(attributes)
        made = self._functions.get(key)
        if made is None:
            if len(self._functions) >= 256:
                self._functions.clear()
            made = self._functions[key] = self._made(attributes)
        # Operands that vary over fewer manual axes than others are cast here, where the gradient
        # sees it, and not within the call.
        return made(*compat.auto_insert_reshard(*map(jnp.asarray, operands)))

    def __repr__(self):
        return f'<shardcall.jax target {self.name}>'

    def results(self, *operands: Any, **attributes: Any) -> Any:
        """The jax.ShapeDtypeStruct of the result of such a call, or a list of them: with its
        sharding where the operands are sharded over explicit axes of a mesh.

        Raises:
          shardcall.Error: E112 where neither `shapes` nor the rule says them, E111 for operands
            that the rule does not fit.
        """
        made = self._untyped(operands, attributes)
        return _like(made, call_types.typed(self.name, attributes, _listed(made), operands))

    def _untyped(self, operands, attributes):
        """The results' shapes and dtypes."""
        specs = [call_types.plain(x) for x in operands]
        if self._shapes is not None:
            return self._shapes(*specs, **attributes)
        made = call_types.results(self.name, attributes, specs)
        return made[0] if len(made) == 1 else made

    def _made(self, attributes):
        """The function for these attributes."""
        def call(*operands):
            results = self._untyped(operands, attributes)
            return self._call(self.name, attributes, results, self._form)(*operands)

        def pull(operands, results, cotangents):
            if callable(self._vjp):
                return self._vjp(operands, results, cotangents, **attributes)
            return self._gradients(operands, results, cotangents, attributes)

        def push(operands, results, tangents):
            if self._jvp is not None:
                return self._jvp(operands, results, tangents, **attributes)
            moved = made(*(t if derivatives.is_real(x) else x
                           for x, t in zip(operands, tangents)))
            return _like(moved, [t if derivatives.is_real(t) else derivatives.zero(t)
                                 for t in _listed(moved)])

        if self._side_effect and self._vjp is None:
            return call  # JAX has no derivatives of functions with an effect
        derived = derivatives.with_derivatives(
            self.name, call, None if self._vjp is None else pull,
            push if self._linear or self._jvp is not None else None)

        def made(*operands):
            return (derived if _listed(self._untyped(operands, attributes)) else call)(*operands)

        return made

    def _call(self, name, attributes, results, form):
        """A call of a target with such results, which vmap knows."""
        # A call without results is made for its effect alone.
        effect = self._side_effect or not _listed(results)

        @jax.custom_batching.custom_vmap
        def call(*operands):
            types = call_types.typed(name, attributes, _listed(results), operands)
            return jax.ffi.ffi_call(name, _like(results, types), has_side_effect=effect,
                                    **form.options())(*operands, **attributes)

        @call.def_vmap
        def batched(size, flags, *operands):
            every = _like(results, [True] * len(_listed(results)))
            way = self._way(name, attributes, results, form, flags, operands)
            if way == 'loop':
                return self._loop(call, flags, operands), every
            if way == 'broadcast':
                operands = [x if flag else jnp.broadcast_to(x, (size, *x.shape))
                            for x, flag in zip(operands, flags)]
                flags = [True] * len(operands)
            wide = _like(results, [jax.ShapeDtypeStruct((size, *r.shape), r.dtype)
                                   for r in _listed(results)])
            target = way['target'] if isinstance(way, dict) else name
            return self._call(target, attributes, wide, form.batched(flags))(*operands), every

        return call

    def _way(self, name, attributes, results, form, flags, operands):
        """What vmap over the operands that `flags` names makes of a call."""
        way = self._batching
        if way is None:
            single = [jax.ShapeDtypeStruct(x.shape[1:] if flag else x.shape, x.dtype)
                      for x, flag in zip(operands, flags)]
            takes = call_types.takes_batch(name, attributes, single, _listed(results), flags)
            way = 'leading' if takes else 'loop'
        # What a result shares its buffer with is to be as large.
        shared = way == 'broadcast' or all(flags[k] for k in form.input_output_aliases)
        return way if shared else 'loop'

    @staticmethod
    def _loop(call, flags, operands):
        def step(carry, slices):
            rest = iter(slices)
            return carry, call(*(next(rest) if flag else x for x, flag in zip(operands, flags)))

        return jax.lax.scan(step, None, [x for x, flag in zip(operands, flags) if flag])[1]

    def _gradients(self, operands, results, cotangents, attributes):
        """By the target that computes them."""
        values = {'operand': operands, 'result': _listed(results),
                  'cotangent': _listed(cotangents)}
        skips = self._vjp.get('skip_absent_operands', False)
        arguments = []
        for text in self._vjp['arguments']:
            kind, index = text.split()
            if int(index) < len(values[kind]):
                arguments.append(values[kind][int(index)])
            elif kind != 'operand' or not skips:
                raise Error(f'E118 there is no VJP of this call of "{self.name}": it needs {text}, '
                            'which the call does not have. Fix: Call the target with all of them, '
                            'or say "skip_absent_operands" in its vjp')
        wanted = [k for k in self._vjp['gradients'] if k < len(operands) or not skips]
        if max(wanted) >= len(operands):
            raise Error(f'E118 there is no VJP of this call of "{self.name}": it gives a gradient '
                        f'of operand {max(wanted)}, which the call does not have. Fix: Call the '
                        'target with all of them, or say "skip_absent_operands" in its vjp')
        shapes = [call_types.like(operands[k]) for k in wanted]
        shapes = shapes if len(shapes) > 1 else shapes[0]
        made = _listed(self._call(self._vjp['target'], attributes, shapes, calls.Form())(*arguments))
        found = dict(zip(wanted, made))
        return tuple(found[k] if k in found else derivatives.zero(x)
                     for k, x in enumerate(operands))


def target(name: str, handler: Any = None, *,
           rule: Union[str, Mapping[str, Any], Sequence[Any], None] = None,
           batch_dims: Optional[int] = None,
           shapes: Optional[Callable] = None,
           vjp: Union[Callable, Mapping[str, Any], None] = None,
           jvp: Optional[Callable] = None, linear: bool = False,
           batching: Union[str, Mapping[str, str], None] = None, has_side_effect: bool = False,
           input_output_aliases: Optional[Mapping[int, int]] = None,
           input_layouts: Optional[Sequence[Any]] = None, output_layouts: Any = None,
           **facts: Any) -> Target:
    """A custom call with all that belongs to it: kernel, rule, gradient and vmap.

        norm = sj.target('my_norm', library.MyNorm, rule='... d, d -> ... d',
                         need_replication=['d'])
        y = norm(x, scale, eps=np.float32(1e-6))

    Args:
      name: of the target.
      handler: its kernel for CPUs: a function of XLA's typed FFI in a ctypes library, a capsule
        of one, or {stage: one}; or {platform: one of these}. None: the kernel is registered
        otherwise, by jax.ffi, a plugin, or it is a shipped one.
      rule: how it shards, such as '... d, d -> ... d'; or a dict with it and more keys of a
        manifest's target; or a list of these, one for each signature: a call has the rule that its
        ranks, number of operands, types ({'rule': .., 'types': 'f32 -> f32'}) and attributes
        ({'rule': .., 'when': {'mode': 'gelu'}}) fit. None: a shipped one, or that of a plugin.
      batch_dims: in place of a rule, how many leading dimensions are independent.
      shapes: (operands as jax.ShapeDtypeStruct, **attributes) -> what has the result's shape and
        dtype, or a list of such. None: they follow from the rule, which `batch_dims` do not say.
      vjp: its gradient: (operands, results, cotangents, **attributes) -> a cotangent for each
        operand, where `results` and `cotangents` are as the call's result, one array or a list; or
        the name of another target's spec, as a manifest has it:
        {'target': 'my_norm_bwd', 'arguments': ['cotangent 0', 'operand 0', 'operand 1'],
        'gradients': [0, 1]}, whose rule then follows from this one. None: it has none.
      jvp: its derivative forwards: (operands, results, tangents, **attributes) -> the results'
        tangents, as the call's result; the tangents of integers are of dtype float0. Without a
        `vjp` JAX transposes it, where that can be done.
      linear: it is linear in all its floating operands together, so that its JVP is itself.
      batching: what vmap makes of a call: 'leading' (the kernel takes one more leading dimension
        on operands that are batched), 'broadcast' (on all), 'loop', or {'target': another}.
        None: 'leading' where the rule's `...` stand for it, else 'loop'.
      has_side_effect: the call runs where nobody uses its results, too. One without results has
        one.
      input_output_aliases, input_layouts, output_layouts: as of jax.ffi.ffi_call.
      **facts: more keys of a manifest's target: need_replication, reduction, pad, sizes, ...

    Returns:
      A Target, which is a function. All programs of the process know the rule from then on.

    Raises:
      shardcall.Error: a rule that does not parse (E110), an unknown key, a kernel that is none, or
        another one than the target has (E141).
    """
    said = {'rule': rule, 'batch_dims': batch_dims, 'batching': batching,
            'vjp': None if callable(vjp) else vjp}
    if isinstance(rule, dict):
        facts, said['rule'] = {**rule, **facts}, None
    elif isinstance(rule, (list, tuple)):
        said['rules'], said['rule'] = list(rule), None
    entry = {**facts, **{key: value for key, value in said.items() if value is not None}}
    before = registry.declare(name, entry) if entry else None
    try:
        for platform, kernel in _kernels(handler).items():
            xla_client.register_custom_call_target(name, kernel, platform, api_version=1)
    except Exception:
        if entry:
            registry.redeclare(name, before)
        raise
    if before not in (None, registry.declared(name)):
        jax.clear_caches()  # programs that were compiled by the rule before
    form = calls.Form(dict(input_output_aliases or {}), input_layouts, output_layouts)
    return Target(name, rule, shapes, (vjp, jvp, linear), batching, has_side_effect, form)
