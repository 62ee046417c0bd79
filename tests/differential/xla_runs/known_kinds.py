# SPDX-License-Identifier: Apache-2.0
"""What XLA does not run, or answers otherwise, in programs that nobody wrote: each kind
with what the per-device module has, what XLA says, and why it is XLA's."""

import re

import collective_bytes

WRONG = 'result|copies'  # of the comparison


def text_has(pattern):
    found = re.compile(pattern)
    return lambda module, text: bool(found.search(text))


def slices_of_slices(module, text):
    """A dynamic-slice whose operand is another's result."""
    for body in module.computations.values():
        opcodes = {i.name: i.opcode for i in body}
        if any(i.opcode == 'dynamic-slice' and opcodes.get(i.operands()[0]) == 'dynamic-slice'
               for i in body):
            return True
    return False


def gathers_by_unsigned_indices(module, text):
    for body in module.computations.values():
        types = {i.name: i.type for i in body}
        if any(i.opcode == 'gather' and types.get(i.operands()[1], '').startswith('u')
               for i in body):
            return True
    return False


def calls_that_explode(module, text):
    """More than 100,000 instructions once every call is inlined."""
    sizes = {}
    for name, body in module.computations.items():  # callees come first
        sizes[name] = len(body) + sum(
            sizes.get(i.attribute('to_apply').lstrip('%'), 0) for i in body if i.opcode == 'call')
    return sizes[module.entry] > 100000


KINDS = [
    (text_has(r' convolution\(.*pad=[^,}]*-\d'), WRONG,
     'XLA:CPU reads outside of the operand where the padding of a convolution is negative, on one '
     'device too'),
    (text_has(r' scatter\(.*scatter_dims_to_operand_dims=\{\}'), WRONG,
     'XLA:CPU leaves out updates of a scatter without index dimensions, on one device too'),
    (lambda module, text: True, 'XLA agrees without its algebraic simplifier',
     'XLA without its algebraic simplifier has our numbers'),
    (slices_of_slices, WRONG,
     "XLA's algebraic simplifier merges a dynamic-slice into the one that it reads from and clamps "
     "the inner's index by the outer's size: an index out of range reads elsewhere"),
    (gathers_by_unsigned_indices, WRONG,
     'XLA takes unsigned indices of a gather for signed ones, on one device too'),
    (text_has(r'= [su]\d+\[\S* power\('), WRONG,
     'XLA rewrites a power of -1 of integers to 1 / x, which is -1 where x is 0'),
    (text_has(r' scan\('), 'Slice dim size 1 greater than dynamic slice dimension: 0',
     "XLA's scan_expander makes an invalid slice of a scan of length 0"),
    (text_has(r'\b[su]4\['), 'does not support custom element sizes on non-sub-byte types',
     "XLA's topk-decomposer gives the layout of a 4-bit operand to its s32 iota"),
    (text_has(r' (asinh|acosh|atanh|sinh|cosh|asin|acos)\('), 'UNIMPLEMENTED',
     'XLA:CPU has no inverse hyperbolic functions as opcodes'),
    (text_has(r' fft\('), 'fft_thunk.*IsMonotonicWithDim0Major',
     'XLA:CPU gives an fft an operand in a layout that it refuses'),
    (calls_that_explode, 'ended with status|no answer',
     'XLA inlines all calls'),
]


def kind_of(text, says):
    """Why XLA's answer is XLA's own; '' where nothing known explains it."""
    module = collective_bytes.Module(text)
    return next((why for has, pattern, why in KINDS
                 if re.search(pattern, says) and has(module, text)), '')
