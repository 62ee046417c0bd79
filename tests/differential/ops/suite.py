# SPDX-License-Identifier: Apache-2.0
"""Cases: small HLO programs with inputs, and how exactly results must agree.

A family file has a function `register(add, full)` that calls add(Case(...)) for
each of its cases; `full` asks for more of them. See README.md.
"""

import dataclasses
import re
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

import hlo_types as T


@dataclasses.dataclass
class Agreement:
    """kind: 'bitwise'; 'ulp' (limit: units in the last place of the result's type;
    complex: of its absolute value); 'parts' (the same, of either part of a complex
    number); 'close' (limit: relative to the largest magnitude of the expected
    array)."""
    kind: str
    limit: float = 0.0
    payload: bool = False  # bitwise: NaN must agree in all bits

    def accepts(self, got, want):
        """Elementwise, arrays of one type."""
        same = T.same_bits(got, want, self.payload)
        if self.kind == 'bitwise' or got.dtype.kind in 'biu' or T.NAMES[got.dtype] in T.INTEGERS:
            return same
        return same | (self.distance(got, want) <= self.limit)

    def distance(self, got, want):
        if got.dtype.kind in 'biu' or T.NAMES[got.dtype] in T.INTEGERS:
            return np.where(got == want, 0.0, np.inf)
        with np.errstate(all='ignore'):
            if self.kind == 'close':
                wide = np.complex128 if got.dtype.kind == 'c' else np.float64
                a, b = got.astype(wide), want.astype(wide)
                size = np.abs(b[np.isfinite(b)])
                largest = size.max() if size.size and size.max() > 0 else 1.0
                off = np.abs(a - b) / largest
                return np.where(T.same_bits(got, want) | (a == b), 0.0,
                                np.where(np.isfinite(off), off, np.inf))
            if self.kind == 'parts':
                real = T.DTYPES[T.part(T.NAMES[got.dtype])]
                a, b = (np.ascontiguousarray(x).view(real) for x in (got, want))
                return T.ulps(a, b).reshape(*got.shape, 2).max(-1)
            if got.dtype.kind == 'c':
                # In units of the last place of |want|.
                real = T.DTYPES[T.part(T.NAMES[got.dtype])]
                off = np.abs(got.astype(np.clongdouble) - want.astype(np.clongdouble))
                unit = np.spacing(np.maximum(np.abs(want), np.finfo(real).tiny).astype(real))
                return np.where(T.same_bits(got, want), 0.0,
                                np.where(np.isfinite(off), off / unit, np.inf))
            return T.ulps(got, want)


def bitwise(payload=False):
    return Agreement('bitwise', 0.0, payload)


def ulp(limit):
    return Agreement('ulp', limit)


def parts(limit):
    return Agreement('parts', limit)


def close(relative):
    return Agreement('close', relative)


@dataclasses.dataclass
class Case:
    """One program: the lines of an entry computation, whose parameters are
    numbered in the order of `inputs`. The root is an array or a flat tuple of them.

    op, types: the row of the table. helpers: computations that the text names.
    reference(*inputs): what is right by exact arithmetic or by definition, as an
      array or a list of them, of the result's type or wider (it is then rounded).
      An element is right if it agrees with XLA or with the reference; where XLA
      refuses the program the reference alone decides.
    reference_first: XLA alone does not make an element right.
    freedom: why XLA may differ from the reference.
    missing: why the evaluator does not have it (the case must then be refused).
    flags: more flags of `shardcall run`.
    """
    op: str
    types: str
    text: str
    inputs: Sequence[np.ndarray]
    agreement: Agreement
    helpers: str = ''
    reference: Optional[Callable[..., Any]] = None
    reference_first: bool = False
    freedom: str = ''
    missing: str = ''
    label: str = ''  # tells cases of one row apart in messages
    family: str = ''

    def __str__(self):
        return ' '.join(x for x in (self.op, self.types, self.label) if x)

    def result_types(self):
        """[(type name, dims)] of the root's leaves."""
        root = re.search(r'^\s*ROOT\s+%?[\w.\-]+\s*=\s*(\(.*?\)|\S+)\s+[a-z]', self.text,
                         re.M | re.S)
        if not root:
            raise ValueError(f'{self}: the root has no type')
        text = re.sub(r'/\*.*?\*/|\{[^{}]*\}', '', root.group(1))
        return [(t, tuple(int(d.lstrip('<=')) for d in dims.split(',') if d.strip()))
                for t, dims in re.findall(r'\b([a-z]\w*)\[([^\]]*)\]', text)]


_DEFINED = re.compile(r'^\s*(?:ROOT\s+)?%?([A-Za-z_][\w.\-]*)\s+=\s', re.M)
_COMPUTATION = re.compile(r'^\s*%?([A-Za-z_][\w.\-]*)\s*(?:\([^\n]*\)\s*->[^\n]*)?\{\s*$', re.M)
_PARAMETER = re.compile(r'^\s*(?:ROOT\s+)?%?(\S+)\s+=\s*(.*?)\s*parameter\((\d+)\)(.*)$', re.M)


def _renamed(text, names, prefix, to=None):
    """Every use of one of the names gets the prefix, or becomes `to`: not opcodes,
    not attributes."""
    if not names:
        return text
    any_name = '|'.join(re.escape(n) for n in sorted(names, key=len, reverse=True))
    pattern = re.compile(r'(?<![\w.\-"])%?(' + any_name + r')(?![\w.\-"(]|=)')
    return pattern.sub(lambda m: to or prefix + m.group(1), text)


def merge(cases):
    """(HLO text, inputs, leaves by case) of one module that does all the cases."""
    parameters, inputs, helpers, body, roots, leaves = {}, [], [], [], [], []
    for k, case in enumerate(cases):
        prefix = f'c{k}_'
        if case.helpers:
            names = set(_DEFINED.findall(case.helpers)) | set(_COMPUTATION.findall(case.helpers))
            helpers.append(_renamed(case.helpers, names, prefix))
        else:
            names = set()
        names |= set(_DEFINED.findall(case.text))
        text = _renamed(case.text, names, prefix)

        taken = {}

        def place(found, case=case, taken=taken):
            name, shape, number, attributes = found.groups()
            array = case.inputs[int(number)]
            key = (shape, attributes, array.tobytes())
            if key not in parameters:
                taken_name = parameters[key] = f'in{len(inputs)}'
                body.append(f'  {taken_name} = {shape} parameter({len(inputs)}){attributes}')
                inputs.append(array)
            taken[name] = parameters[key]
            return ''
        text = _PARAMETER.sub(place, text)
        for name, parameter in taken.items():
            text = _renamed(text, [name], '', parameter)
        root = re.search(r'^\s*ROOT\s+%?(\S+)', text, re.M).group(1)
        body.append(re.sub(r'^(\s*)ROOT\s+', r'\1', text, flags=re.M).strip('\n'))
        results = case.result_types()
        leaves.append(len(results))
        if re.search(r'^\s*ROOT\s+\S+\s*=\s*\(', case.text, re.M):
            for i in range(len(results)):
                body.append(f'  {prefix}leaf{i} = get-tuple-element({root}), index={i}')
                roots.append(f'{prefix}leaf{i}')
        else:
            roots.append(root)
    lines = ['HloModule ops', *helpers, 'ENTRY all {', *body,
             f'  ROOT results = tuple({", ".join(roots)})', '}', '']
    return '\n'.join(lines), inputs, leaves


def reference_arrays(case):
    """The reference's arrays, of the results' types; None if there is none."""
    if case.reference is None:
        return None
    with np.errstate(all='ignore'):
        made = case.reference(*case.inputs)
    if not isinstance(made, (list, tuple)):
        made = [made]
    return [T.rounded(np.asarray(a), t).reshape(dims)
            for a, (t, dims) in zip(made, case.result_types())]


class Suite:
    def __init__(self):
        self.cases: List[Case] = []
        self.family = ''

    def add(self, case):
        case.family = self.family
        self.cases.append(case)
