# SPDX-License-Identifier: Apache-2.0
"""Chains of elementwise operations at random, which both sides fuse: integers and
predicates of all widths and small whole floats, so that every result is exact."""

import numpy as np

import hlo_types as T
from suite import Case, bitwise

INTEGER = ('add', 'subtract', 'multiply', 'maximum', 'minimum', 'and', 'or', 'xor', 'divide',
           'remainder', 'shift-left', 'shift-right-logical', 'shift-right-arithmetic')
FLOAT = ('add', 'subtract', 'maximum', 'minimum')
KINDS = ('s8', 's16', 's32', 's64', 'u8', 'u32', 'u64', 's4', 'u4', 'f32', 'f64', 'bf16')


class Chain:
    def __init__(self, r, n):
        self.r, self.n, self.lines, self.values = r, n, [], {}

    def emit(self, kind, text):
        name = f'v{len(self.lines)}'
        self.lines.append(f'  {name} = {kind}[{self.n}] {text}')
        self.values.setdefault(kind, []).append(name)
        return name

    def any_of(self, kind):
        return self.values[kind][self.r.integers(len(self.values[kind]))]

    def step(self):
        r = self.r
        kind = list(self.values)[r.integers(len(self.values))]
        choice = r.integers(6)
        if kind == 'pred':
            self.emit('pred', f'{("and", "or", "xor")[r.integers(3)]}({self.any_of(kind)}, '
                              f'{self.any_of(kind)})')
        elif choice == 0:
            self.emit('pred', f'compare({self.any_of(kind)}, {self.any_of(kind)}), direction='
                              f'{("EQ", "NE", "LT", "LE", "GT", "GE")[r.integers(6)]}')
        elif choice == 1 and 'pred' in self.values:
            self.emit(kind, f'select({self.any_of("pred")}, {self.any_of(kind)}, '
                            f'{self.any_of(kind)})')
        elif choice == 2 and kind in T.INTEGERS:
            to = KINDS[r.integers(9)]
            self.emit(to, f'convert({self.any_of(kind)})')
        elif choice == 3 and kind in T.INTEGERS:
            # Within a fusion XLA counts the bits of a byte for types of four bits.
            ops = ('not', 'negate', 'popcnt', 'count-leading-zeros')
            op = ops[r.integers(2 if T.bits(kind) < 8 else 4)]
            self.emit(kind, f'{op}({self.any_of(kind)})')
        elif choice == 4:
            self.emit(kind, f'clamp({self.any_of(kind)}, {self.any_of(kind)}, '
                            f'{self.any_of(kind)})')
        else:
            ops = INTEGER if kind in T.INTEGERS else FLOAT
            self.emit(kind, f'{ops[r.integers(len(ops))]}({self.any_of(kind)}, '
                            f'{self.any_of(kind)})')


def register(add, full):
    for k in range(400 if full else 40):
        r = T.rng('chain', k)
        n = int(r.integers(1, 700))
        chain, inputs = Chain(r, n), []
        for kind in r.choice(KINDS, 3):
            kind = str(kind)
            name = f'p{len(inputs)}'
            chain.lines.append(f'  {name} = {kind}[{n}] parameter({len(inputs)})')
            chain.values.setdefault(kind, []).append(name)
            if T.is_float(kind):  # sums of so few stay exact
                inputs.append(r.integers(-3, 4, n).astype(np.float64).astype(T.DTYPES[kind]))
            else:
                inputs.append(T.randoms(kind, n, 'chain', k))
        for _ in range(int(r.integers(4, 25))):
            chain.step()
        last = [(kind, names[-1]) for kind, names in chain.values.items()]
        shapes = ', '.join(f'{kind}[{n}]' for kind, _ in last)
        chain.lines.append(f'  ROOT r = ({shapes}) tuple({", ".join(v for _, v in last)})')
        add(Case('chains of elementwise ops', 'many', '\n' + '\n'.join(chain.lines), inputs,
                 bitwise(), label=str(k)))
