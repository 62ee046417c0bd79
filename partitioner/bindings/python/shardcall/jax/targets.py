# SPDX-License-Identifier: Apache-2.0
"""target: a custom call with all that belongs to it."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

import jax
import jax.numpy as jnp

from shardcall import registry
from shardcall import xla_client
from shardcall.errors import Error
from shardcall.jax import call_types
from shardcall.jax import calls
from shardcall.jax import compat
from shardcall.jax import derivatives
from shardcall.jax import gradients

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


class Target:
    """A custom call as a function of arrays, which one calls, jits, vmaps, and differentiates
    with jax.grad. Its keywords are the call's attributes, as jax.ffi.ffi_call takes them.

    Attributes:
      name: of the target, as calls have it.
      rule: how it shards, as it was given; None where that is known otherwise.
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
        key = call_types.identity(attributes)
        found = self._functions.get(key)
        if found is None:
            if len(self._functions) >= 256:
                self._functions.clear()
            found = self._functions[key] = _Calls(self, attributes).function
        # Operands that vary over fewer manual axes than others are cast here, where the gradient
        # sees it, and not within the call.
        return found(*compat.auto_insert_reshard(*map(jnp.asarray, operands)))

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
        return calls.alike(made, call_types.typed(self.name, attributes, calls.listed(made),
                                                  operands))

    def _untyped(self, operands, attributes):
        """The results' shapes and dtypes."""
        specs = [call_types.plain(x) for x in operands]
        if self._shapes is not None:
            return self._shapes(*specs, **attributes)
        made = call_types.results(self.name, attributes, specs)
        return made[0] if len(made) == 1 else made


_made = {}  # the latest Target of each name: a VJP may have a gradient of its own


class _Calls:
    """The calls of a Target with one set of attributes.

    Attributes:
      function: makes one, as a function of arrays that JAX differentiates.
    """

    def __init__(self, target, attributes):
        self._target, self._attributes = target, attributes
        self.function = self._differentiable(self._call)

    def _differentiable(self, call):
        target = self._target
        forwards = target._linear or target._jvp is not None
        return derivatives.with_derivatives(
            target.name, call, None if target._vjp is None else self._pull,
            self._push if forwards else None, self._takes)

    def _differentiable_vjp(self, call):
        name = self._target._vjp['target']
        target = _made.get(name)
        if target is None:
            return derivatives.with_derivatives(name, call, None, None)
        return _Calls(target, self._attributes)._differentiable(call)

    def _call(self, *operands):
        target = self._target
        batching = target._batching
        call = calls.Call(
            target.name, self._attributes, target._untyped(operands, self._attributes),
            target._form, target._side_effect,
            call_types.batching(target.name) if batching is None else batching)
        return call.function()(*operands)

    def _takes(self, k):
        vjp = self._target._vjp
        return vjp is None or callable(vjp) or gradients.takes(vjp, k)

    def _pull(self, operands, results, cotangents):
        target = self._target
        if callable(target._vjp):
            made = target._vjp(operands, results, cotangents, **self._attributes)
            if not isinstance(made, (list, tuple)) or len(made) != len(operands):
                several = isinstance(made, (list, tuple))
                raise Error(
                    f'E118 the vjp of "{target.name}" gives '
                    f'{f"{len(made)} cotangents" if several else f"a {type(made).__name__}"}: '
                    f'expected a tuple of {len(operands)}, one for each operand. Fix: Return all '
                    'of them, with None for an operand that has no gradient')
            return made
        return gradients.by_target(
            target.name, target._vjp, self._attributes, target._side_effect, operands,
            calls.listed(results), calls.listed(cotangents), self._differentiable_vjp)

    def _push(self, operands, results, tangents):
        if self._target._jvp is not None:
            return self._target._jvp(operands, results, tangents, **self._attributes)
        moved = self.function(*(t if derivatives.is_real(x) else x
                                for x, t in zip(operands, tangents)))
        return calls.alike(moved, [t if derivatives.is_real(t) else derivatives.zero(t)
                                   for t in calls.listed(moved)])


def _said(name, rule, facts):
    """What a rule and facts say of a target, with the keys of a manifest."""
    if isinstance(rule, Mapping):
        of_rule = dict(rule)
    else:
        key = 'rules' if isinstance(rule, (list, tuple)) else 'rule'
        of_rule = {} if rule is None else {key: rule}
    twice = sorted(set(of_rule) & set(facts))
    if twice:
        raise Error(f'E141 {", ".join(twice)} of "{name}" is given twice: expected once, found in '
                    'rule= and as an argument. Fix: Leave one of them out')
    return {**of_rule, **facts}


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
        operand, None for one that is zero, where `results` and `cotangents` are as the call's
        result, one array or a list; or another target that computes it, as a manifest says it:
        {'target': 'my_norm_bwd', 'arguments': ['cotangent 0', 'operand 0', 'operand 1'],
        'gradients': [0, 1]}, with 'pad' and 'skip_absent_operands', whose rule then follows from
        this one. Its call has the attributes of this one. None: it has none.
      jvp: its derivative forwards: (operands, results, tangents, **attributes) -> the results'
        tangents, as the call's result; the tangents of integers are of dtype float0. Without a
        `vjp` JAX transposes it, where that can be done.
      linear: it is linear in all its floating operands together, so that its JVP is itself.
      batching: what vmap makes of a call: 'leading' (the kernel takes one more leading dimension
        on operands that are batched), 'broadcast' (on all), 'loop', or {'target': another}.
        None: 'leading' where the rule's `...` stand for it, else 'loop'. It speaks of this target
        alone: vmap of the VJP's target, of another one, or of what has that dimension already,
        goes by theirs, or by the rule.
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
    given = {'batch_dims': batch_dims, 'batching': batching, 'vjp': vjp}
    entry = _said(name, rule, {**facts, **{k: x for k, x in given.items() if x is not None}})
    vjp, batching = entry.get('vjp'), entry.get('batching')
    if callable(vjp):
        del entry['vjp']
    elif isinstance(vjp, Mapping):
        gradients.check(name, vjp)
    if jvp is not None and not callable(jvp):
        raise Error(f'E141 the jvp of "{name}" is a {type(jvp).__name__}: expected a function. Fix: '
                    'Give (operands, results, tangents, **attributes) -> the results\' tangents')
    if linear and jvp is not None:
        raise Error(f'E141 "{name}" has both a jvp and linear=True, which says that it is its own '
                    'JVP: expected one of them. Fix: Leave one of them out')
    before = registry.declare(name, entry) if entry else None
    try:
        for platform, kernel in _kernels(handler).items():
            xla_client.register_custom_call_target(name, kernel, platform, api_version=1)
    except Exception:
        if entry:
            registry.redeclare(name, before)
        raise
    if entry and before != registry.declared(name) and registry.was_called(name, before):
        jax.clear_caches()  # of programs that went by what was known before
    form = calls.Form.of(input_output_aliases, input_layouts, output_layouts)
    _made[name] = Target(name, rule, shapes, (vjp, jvp, linear), batching, has_side_effect, form)
    return _made[name]
