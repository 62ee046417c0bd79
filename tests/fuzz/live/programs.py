# SPDX-License-Identifier: Apache-2.0
"""Programs by their seeds, as functions on a mesh of JAX's devices."""
import generate
import jax
import numpy as np
import ops_control
import ops_elementwise
import ops_indexing
import ops_movement
import ops_reduce
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

# Families by weight: indices are where engines go wrong.
OPS = (ops_elementwise.OPS + 2 * ops_movement.OPS + 3 * ops_indexing.OPS + ops_reduce.OPS +
       2 * ops_control.OPS)


def generated(seed):
    return generate.Generator(seed, OPS).program()


class Placed:
    """A program with its shardings: `f`, and the options that a jit takes."""

    def __init__(self, program):
        self.program = program
        devices = np.array(jax.devices()[:int(np.prod(program.mesh))])
        if program.order is not None:
            devices = devices[list(program.order)]
        self.mesh = Mesh(devices.reshape(program.mesh), tuple(generate.AXES[:len(program.mesh)]))
        names = {**generate.NAMES, 'P': P, 'constrain': self.constrain}
        exec(program.body(), names)
        self.f = names['f']

    def constrain(self, x, spec):
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def sharding(self, spec):
        return NamedSharding(self.mesh, eval(spec, {'P': P})) if spec else None

    def options(self):
        return {'in_shardings': [self.sharding(a.spec) for a in self.program.arguments],
                'out_shardings': tuple(self.sharding(s) for s in self.program.result_specs)}
