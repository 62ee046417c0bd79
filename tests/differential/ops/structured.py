# SPDX-License-Identifier: Apache-2.0
"""What the families of structured ops share: arrays of small whole numbers, whose
sums are exact, and the text of shapes and windows."""

import numpy as np

import hlo_types as T

# Types that XLA's CPU backend computes every structured op in.
PLAIN = ('pred', 's8', 's16', 's32', 's64', 'u8', 'u16', 'u32', 'u64', 'bf16', 'f16', 'f32', 'f64',
         'c64', 'c128')
NUMBERS = PLAIN[1:]
REALS = ('bf16', 'f16', 'f32', 'f64')


def shape(name, dims):
    return f'{name}[{",".join(map(str, dims))}]'


def small(name, dims, *key, least=-3, most=3):
    """Whole numbers of the type, complex ones with two such parts."""
    rng = T.rng(name, tuple(dims), *key)
    if name == 'pred':
        return rng.integers(0, 2, dims).astype(bool)
    if name in T.INTEGERS:
        low, high = T.integer_range(name)
        least, most = max(least, low), min(most, high)
    x = rng.integers(least, most + 1, dims)
    if name in T.COMPLEX:
        x = x + 1j * rng.integers(least, most + 1, dims)
    return np.asarray(x).astype(T.DTYPES[name])


def joined(values, mark=','):
    return mark.join(map(str, values))


def braces(values):
    return '{' + joined(values) + '}'


def reducer(op, name, label='f'):
    return f'''
{label} {{
  {label}_x = {name}[] parameter(0)
  {label}_y = {name}[] parameter(1)
  ROOT {label}_r = {name}[] {op}({label}_x, {label}_y)
}}'''


class Window:
    """A random window over `dims`; the result has at least one place."""

    def __init__(self, rng, dims, largest=3, dilated=True, negative=True, reversal=False):
        self.dims = list(dims)
        n = len(dims)
        while True:
            self.size = [int(rng.integers(1, largest + 1)) for _ in dims]
            self.stride = [int(rng.integers(1, 3)) for _ in dims]
            low = -1 if negative else 0
            self.low = [int(rng.integers(low, 3)) for _ in dims]
            self.high = [int(rng.integers(low, 3)) for _ in dims]
            self.base = [int(rng.integers(1, 3)) if dilated else 1 for _ in dims]
            self.window = [int(rng.integers(1, 3)) if dilated else 1 for _ in dims]
            self.reverse = [int(rng.integers(0, 2)) if reversal else 0 for _ in dims]
            self.result = [self.places(k) for k in range(n)]
            if all(r > 0 for r in self.result):
                return

    def places(self, k):
        base = (self.dims[k] - 1) * self.base[k] + 1 if self.dims[k] else 0
        reach = (self.size[k] - 1) * self.window[k] + 1
        padded = base + self.low[k] + self.high[k]
        return 0 if padded < reach else (padded - reach) // self.stride[k] + 1

    def reads(self, out, at):
        """Where element `at` of the window at place `out` lies in the operand; None:
        outside of it, or between its elements."""
        place = []
        for k, n in enumerate(self.dims):
            padded = out[k] * self.stride[k] + at[k] * self.window[k] - self.low[k]
            if padded % self.base[k] or not 0 <= padded // self.base[k] < n:
                return None
            place.append(padded // self.base[k])
        return tuple(place)

    def text(self, reversal=False):
        if not self.dims:
            return ''  # an empty window has no text
        pads = 'x'.join(f'{a}_{b}' for a, b in zip(self.low, self.high))
        out = (f'window={{size={joined(self.size, "x")} stride={joined(self.stride, "x")} '
               f'pad={pads} lhs_dilate={joined(self.base, "x")} '
               f'rhs_dilate={joined(self.window, "x")}')
        return out + (f' rhs_reversal={joined(self.reverse, "x")}}}, ' if reversal else '}, ')
