# SPDX-License-Identifier: Apache-2.0
"""A call of a target: how it passes its arrays, and what vmap makes of it."""
import dataclasses
import numbers
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import jax
import jax.numpy as jnp

from shardcall.errors import Error
from shardcall.jax import call_types
from shardcall.jax import compat

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)


def listed(results):
    """The results of a call as a list."""
    return list(results) if isinstance(results, (tuple, list)) else [results]


def alike(results, made):
    """`made`, a list, as one value where `results` is one."""
    return made if isinstance(results, (tuple, list)) else made[0]


@dataclasses.dataclass(frozen=True)
class Form:
    """The arguments of jax.ffi.ffi_call of these names. A layout lists dimensions from the most
    major to the most minor one; None: row-major."""
    input_output_aliases: Mapping[int, int] = dataclasses.field(default_factory=dict)
    input_layouts: Optional[Sequence[Any]] = None
    output_layouts: Any = None  # a layout, or a list of them where there is a list of results

    @classmethod
    def of(cls, input_output_aliases, input_layouts, output_layouts):
        """Of what a user gives, None where that is nothing. Layouts may have any integers."""
        inputs, outputs = input_layouts, output_layouts
        if inputs is not None:
            inputs = list(map(_layout, inputs))
        if outputs is not None:
            outputs = _layout(outputs) if _is_layout(outputs) else list(map(_layout, outputs))
        return cls(dict(input_output_aliases or {}), inputs, outputs)

    def options(self):
        """As keywords of jax.ffi.ffi_call."""
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in given.items() if value}

    def batched(self, flags):
        """Of a call with one more leading dimension on all results and the operands that `flags`
        names."""
        inputs, outputs = self.input_layouts, self.output_layouts
        if inputs is not None:
            inputs = [_wider(layout) if flag else layout for layout, flag in zip(inputs, flags)]
        if outputs is not None:
            outputs = _wider(outputs) if _is_layout(outputs) else list(map(_wider, outputs))
        return Form(self.input_output_aliases, inputs, outputs)


def _is_layout(value):
    return hasattr(value, 'major_to_minor') or all(isinstance(d, numbers.Integral) for d in value)


def _layout(value):
    if value is None or hasattr(value, 'major_to_minor'):
        return value
    return tuple(map(operator.index, value))


def _wider(layout):
    if layout is None:
        return None
    order = getattr(layout, 'major_to_minor', layout)
    return (0, *(d + 1 for d in order))


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a target with given attributes and results.

    Attributes:
      name: of the target.
      attributes: {name: value}, as jax.ffi.ffi_call takes them.
      results: what has the shape and dtype of its result, or a list of such.
      form: how it passes its arrays.
      effect: it runs where nobody uses its results, too. One without results does.
      batching: what vmap makes of it, as of `target`; None: what the target's rule says.
    """
    name: str
    attributes: Mapping[str, Any]
    results: Any
    form: Form = Form()
    effect: bool = False
    batching: Union[str, Mapping[str, str], None] = None

    def function(self):
        """As a function of arrays, which vmap knows."""
        @jax.custom_batching.custom_vmap
        def call(*operands):
            results = listed(self.results)
            types = call_types.typed(self.name, self.attributes, results, operands)
            return jax.ffi.ffi_call(
                self.name, alike(self.results, types), has_side_effect=self.effect or not results,
                **self.form.options())(*operands, **self.attributes)

        @call.def_vmap
        def batched(size, flags, *operands):
            way = self._way(flags, operands)
            if way == 'loop':
                self._check_loop(flags, operands)
                made = _loop(call, flags, operands)
            else:
                made = self._as_one_call(way, size, flags, operands)
            return made, alike(self.results, [True] * len(listed(self.results)))

        return call

    def _way(self, flags, operands):
        """What vmap over the operands that `flags` names makes of the call: a `batching`."""
        way = self.batching
        if way is None:
            single = [jax.ShapeDtypeStruct(x.shape[1:] if flag else x.shape, x.dtype)
                      for x, flag in zip(operands, flags)]
            takes = call_types.takes_batch(self.name, self.attributes, single,
                                           listed(self.results), flags)
            way = 'leading' if takes else 'loop'
        # What a result shares its buffer with is to be as large.
        shared = way == 'broadcast' or all(flags[k] for k in self.form.input_output_aliases)
        return way if shared else 'loop'

    def _check_loop(self, flags, operands):
        """A loop reads one slice after another, which no device has where they are sharded over an
        axis of the type (AxisType.Explicit)."""
        for k, x in enumerate(operands):
            axes = tuple(jax.typeof(x).sharding.spec)[:1] if flags[k] else ()
            if axes and axes[0] is not None:
                raise Error(
                    f'E118 vmap calls "{self.name}" for one slice after another, and the dimension '
                    f'of operand {k} that it maps is sharded over {axes[0]!r}. Fix: Let the rule '
                    'take a batch, as in "... i j -> ... j i", give the target its batching=, or '
                    'use jax.sharding.reshard before')

    def _as_one_call(self, way, size, flags, operands):
        if way == 'broadcast':
            operands = [x if flag else jnp.broadcast_to(x, (size, *x.shape))
                        for x, flag in zip(operands, flags)]
            flags = [True] * len(operands)
        wide = alike(self.results, [jax.ShapeDtypeStruct((size, *r.shape), r.dtype)
                                    for r in listed(self.results)])
        # The target's batching speaks of one more dimension. Whether the call takes a further
        # one, its rule says. Another target has a batching of its own.
        name, batching = self.name, None
        if isinstance(way, Mapping):
            name = way['target']
            batching = call_types.batching(name)
        return dataclasses.replace(self, name=name, results=wide, form=self.form.batched(flags),
                                   batching=batching).function()(*operands)


def _loop(call, flags, operands):
    def step(carry, slices):
        rest = iter(slices)
        return carry, call(*(next(rest) if flag else x for x, flag in zip(operands, flags)))

    return jax.lax.scan(step, None, [x for x, flag in zip(operands, flags) if flag])[1]
