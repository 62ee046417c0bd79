# SPDX-License-Identifier: Apache-2.0
"""Random JAX programs: a few lines of Python each, with arguments and shardings.

A program is text, so that a finding can be read, shrunk line by line, and run by itself. Numbers
are small whole numbers wherever an op allows it: sums are then exact in whatever order they are
taken, and results are compared bit by bit. Values that have roundings are marked, and no op whose
result jumps (a comparison, a sort, a floor) reads them."""
import dataclasses
import math
import random
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

NAMES = {'jax': jax, 'jnp': jnp, 'lax': lax, 'np': np}
SIZES = [1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8, 9, 12, 16, 16, 17, 24]
MESHES = [((8,), None), ((8,), None), ((4, 2), None), ((2, 4), None), ((2, 2, 2), None),
          ((4, 2), (0, 2, 4, 6, 1, 3, 5, 7)), ((8,), (3, 1, 0, 2, 7, 6, 4, 5)), ((3, 2), None),
          ((2, 1, 4), None)]
AXES = 'abc'
MOST_ELEMENTS = 3000
FLOATS = ('float32', 'bfloat16', 'float16')
INTS = ('int32', 'int8', 'uint8', 'int16', 'uint32')
# The largest whole number up to which all are exact, with room for another op.
EXACT = {'float32': 1 << 20, 'bfloat16': 128, 'float16': 1024, 'int32': 1 << 28, 'int8': 127,
         'uint8': 127, 'int16': 32767, 'uint32': 1 << 28, 'bool': 1, 'complex64': 1 << 20}


@dataclasses.dataclass
class Value:
    name: str
    shape: tuple
    dtype: str
    bound: float  # of the magnitude
    exact: bool = True  # whole numbers, without roundings

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def is_float(self):
        return self.dtype in FLOATS

    @property
    def is_int(self):
        return self.dtype in INTS


@dataclasses.dataclass
class Argument:
    name: str
    shape: tuple
    dtype: str
    low: int
    high: int
    spec: str  # of its sharding, such as "P('a', None)"; '' for none
    special: bool = False  # whether some elements are NaN, infinite, or -0

    def array(self, seed):
        rng = np.random.default_rng([seed, int(self.name[1:])])
        made = np.asarray(rng.integers(self.low, self.high + 1, self.shape)).astype(
            jnp.dtype(self.dtype))
        if self.special:
            places = rng.integers(0, 6, self.shape)
            for k, v in enumerate((np.nan, np.inf, -0.0)):
                made = np.where(places == k, np.asarray(v, made.dtype), made)
        return made


@dataclasses.dataclass
class Program:
    seed: int
    mesh: tuple
    order: tuple  # of the devices; None for theirs
    arguments: list
    lines: list  # (name, expression)
    results: list  # names
    result_specs: list  # as of arguments

    def body(self):
        given = ', '.join(a.name for a in self.arguments)
        lines = ''.join(f'    {name} = {text}\n' for name, text in self.lines)
        return f'def f({given}):\n{lines}    return {", ".join(self.results)},\n'


class Generator:
    """Makes one program. Ops (ops_*.py) ask it for operands and numbers."""

    def __init__(self, seed, ops):
        self.random = random.Random(seed)
        self.ops = ops
        self.values = []
        self.arguments = []
        self.lines = []
        self.mesh, self.order = self.random.choice(MESHES)
        self.seed = seed
        # Programs in which arguments of floats are not all finite.
        self.special = self.random.random() < 0.1

    # Numbers.
    def pick(self, *choices):
        return self.random.choice(choices)

    def number(self, low, high):
        return self.random.randint(low, high)

    def chance(self, p):
        return self.random.random() < p

    def permutation(self, n):
        return self.random.sample(range(n), n)

    # Operands.
    def value(self, test=lambda v: True, make=True):
        """A value of the program that passes `test`, later ones rather; else a new argument."""
        found = [v for v in self.values if test(v)]
        if found and not (make and self.chance(0.1)):
            return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]
        for _ in range(30):
            v = self.argument()
            if test(v):
                return v
            self.values.remove(v)
            self.arguments.pop()
        return None

    def argument(self, shape=None, dtype=None, low=None, high=4):
        if shape is None:
            rank = self.pick(1, 1, 2, 2, 2, 3, 3, 4)
            while True:
                shape = tuple(self.pick(*SIZES) for _ in range(rank))
                if math.prod(shape) <= MOST_ELEMENTS:
                    break
        dtype = dtype or self.pick('float32', 'float32', 'float32', 'int32', 'int32', 'bfloat16',
                                   'int8', 'uint8', 'float16')
        if low is None:
            low = 0 if dtype.startswith('u') else -3
        name = f'x{len(self.arguments)}'
        self.arguments.append(Argument(name, shape, dtype, low, high, self.spec(shape),
                                       self.special and dtype in FLOATS))
        self.values.append(Value(name, shape, dtype, max(abs(low), high)))
        return self.values[-1]

    def like(self, v, exact=False, shape=None):
        """A value of the same type and shape, or one that is broadcast to it."""
        shape = v.shape if shape is None else shape
        found = self.value(lambda w: w.shape == shape and w.dtype == v.dtype and
                           (w.exact or not exact), make=False)
        if found and not self.chance(0.2):
            return found
        return self.argument(shape, v.dtype)

    def index(self, size, out_of_range=True):
        """The text of a scalar index into a dimension: a literal, or a value of the program."""
        low, high = (-size - 3, size + 4) if out_of_range and self.chance(0.5) else (0, size - 1)
        if self.chance(0.5):
            v = self.argument((), 'int32', low, max(high, low))
            return v.name
        return str(self.number(low, max(low, high)))

    def indices(self, size, count, out_of_range=True):
        low, high = (-size - 3, size + 4) if out_of_range and self.chance(0.4) else (0, size - 1)
        if self.chance(0.6):
            return self.argument((count,), 'int32', low, max(high, low)).name
        return f'jnp.array({[self.number(low, max(low, high)) for _ in range(count)]})'

    # Shardings.
    def spec(self, shape):
        """A PartitionSpec that divides `shape`, as text; '' for none."""
        if self.chance(0.15):
            return ''
        left = self.permutation(len(self.mesh))
        entries = []
        for size in shape:
            taken = []
            while left and self.chance(0.5) and \
                    size % math.prod(self.mesh[a] for a in taken + left[:1]) == 0:
                taken.append(left.pop(0))
            names = [f"'{AXES[a]}'" for a in taken]
            entries.append('None' if not names else
                           names[0] if len(names) == 1 else f'({", ".join(names)})')
        return f'P({", ".join(entries)})'

    # The program.
    def add(self, text, bound=None, exact=True, operands=()):
        """A line; None where JAX refuses it."""
        shape = self.shape_of(text)
        if shape is None or math.prod(shape.shape) > MOST_ELEMENTS or \
                math.prod(shape.shape) == 0:
            return None
        dtype = str(shape.dtype)
        if dtype not in EXACT:
            return None
        bound = max((o.bound for o in operands), default=1) if bound is None else bound
        exact = exact and all(o.exact for o in operands)
        if bound > EXACT[dtype] / 4:
            text, bound = (f'({text}) % 7', 7) if exact and dtype != 'complex64' else \
                (f'jnp.sin(({text}).astype(jnp.float32))', 1)
            dtype = str(self.shape_of(text).dtype)
        name = f'v{len(self.lines)}'
        self.lines.append((name, text))
        self.values.append(Value(name, shape.shape, dtype, bound, exact))
        return self.values[-1]

    def shape_of(self, text):
        known = [v for v in self.values if re.search(rf'\b{v.name}\b', text)]
        fields = {v.name: jax.ShapeDtypeStruct(v.shape, jnp.dtype(v.dtype)) for v in known}
        try:
            f = eval(f'lambda {", ".join(fields)}: {text}',
                     {**NAMES, 'P': P, 'constrain': lambda x, s: x})
            made = jax.eval_shape(f, *fields.values())
        except Exception:  # whatever JAX says of an op that cannot be
            return None
        return made if hasattr(made, 'shape') else None

    def constrain(self):
        v = self.value(make=False)
        if v is None or v.rank == 0:
            return
        spec = self.spec(v.shape)
        if spec:
            self.add(f'constrain({v.name}, {spec})', operands=[v])

    def program(self):
        self.argument()
        for _ in range(self.number(1, 6)):
            for _ in range(50):
                before = len(self.arguments), len(self.values)
                made = self.random.choice(self.ops)(self)
                if made is not None:
                    break
                del self.arguments[before[0]:]
                del self.values[before[1]:]
            if self.chance(0.25):
                self.constrain()
        used = set(re.findall(r'\w+', ' '.join(text for _, text in self.lines)))
        results = [n for n, _ in self.lines if n not in used][-3:]
        if self.chance(0.2):
            results.append(self.random.choice(self.lines)[0])
        shapes = {v.name: v.shape for v in self.values}
        specs = [self.spec(shapes[r]) if self.chance(0.6) else '' for r in results]
        return Program(self.seed, self.mesh, self.order, self.arguments, self.lines, results, specs)
