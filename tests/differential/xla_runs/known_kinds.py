# SPDX-License-Identifier: Apache-2.0
"""What XLA does not run in programs that nobody wrote: each kind with what the per-device
module has, what XLA says, and why it is XLA's. What it answers otherwise stands in
workarounds.py, where each fault is proven by the numbers of the rewritten module."""

import re

import collective_bytes
import workarounds

WRONG = 'result|copies'  # of the comparison


def text_has(pattern):
    found = re.compile(pattern)
    return lambda module, text: bool(found.search(text))


def calls_that_explode(module, text):
    """More than 100,000 instructions once every call is inlined."""
    sizes = {}
    for name, body in module.computations.items():  # callees come first
        sizes[name] = len(body) + sum(
            sizes.get(i.attribute('to_apply').lstrip('%'), 0) for i in body if i.opcode == 'call')
    return sizes[module.entry] > 100000


KINDS = [
    (text_has(r' rng\('), WRONG + '|rng_expander',
     'the numbers that rng draws are those of the engine'),
    (text_has(r'custom_call_target="nccl_allreduce'), WRONG,
     'the kernel meets those of other devices, which XLA has no communicator for'),
    (text_has(r' fft\('), r'^(result \d+ against ours: off by (\S+ of the largest value, )?'
     r'[\d.]+e-(0[6-9]|[1-9]\d)( where all are 0)?(; |$))+$',
     'what an fft cancels leaves roundings'),
    (text_has(r' scan\('), 'Slice dim size 1 greater than dynamic slice dimension: 0',
     "XLA's scan_expander makes an invalid slice of a scan of length 0"),
    (text_has(r' (asinh|acosh|atanh|sinh|cosh|asin|acos)\('), 'UNIMPLEMENTED',
     'XLA:CPU has no inverse hyperbolic functions as opcodes'),
    (text_has(r'<='), 'Dynamic input unexpectedly found for unsupported instruction',
     "XLA's dynamic padder takes few computations of a reduction"),
    (calls_that_explode, 'ended with status|no answer',
     'XLA inlines all calls'),
]


def kind_of(text, says):
    """Why XLA's answer is XLA's own; '' where nothing known explains it."""
    module = collective_bytes.Module(text)
    return next((why for has, pattern, why in KINDS
                 if re.search(pattern, says) and has(module, text)), '')


def faults_of(text):
    return workarounds.applied(text, range(len(workarounds.FAULTS)))[1]


def workarounds_of(text, agrees):
    """The fewest of workarounds.FAULTS without which `agrees` of the rewritten module: XLA
    has our numbers there. None where it has them with none."""
    had = faults_of(text)
    if not had or not agrees(had):
        return []
    needed = set(had)
    for one in sorted(had):
        if len(needed) > 1 and agrees(needed - {one}):
            needed.discard(one)
    return sorted(needed)


def named(around):
    return ' and '.join(workarounds.FAULTS[k][1] for k in around)
