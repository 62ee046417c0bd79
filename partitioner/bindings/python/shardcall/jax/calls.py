# SPDX-License-Identifier: Apache-2.0
"""How a target's calls pass their arrays: the options of jax.ffi.ffi_call for that."""
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Optional


@dataclasses.dataclass(frozen=True)
class Form:
    """The arguments of jax.ffi.ffi_call of these names. A layout lists dimensions from the most
    major to the most minor one; None: row-major."""
    input_output_aliases: Mapping[int, int] = dataclasses.field(default_factory=dict)
    input_layouts: Optional[Sequence[Any]] = None
    output_layouts: Any = None  # a layout, or a list of them where there is a list of results

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
    return hasattr(value, 'major_to_minor') or all(isinstance(d, int) for d in value)


def _wider(layout):
    if layout is None:
        return None
    order = getattr(layout, 'major_to_minor', layout)
    return (0, *(d + 1 for d in order))
