# SPDX-License-Identifier: Apache-2.0
"""The check of a custom_partitioning: its functions know the mesh of the program that calls it, so
programs with all shardings of the operands over that mesh are held against one device."""
import itertools

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardcall import programs
from shardcall.errors import Error

TARGET = 'CustomSPMDPartitioning'  # of the calls of every custom_partitioning


def _mesh_of(example):
    """That of the example's arrays, else one axis of all devices."""
    for x in example:
        mesh = getattr(getattr(x, 'sharding', None), 'mesh', None)
        if mesh is not None and mesh.size > 1:
            return mesh
    if len(jax.devices()) == 1:
        raise Error('E191 on one device nothing is partitioned. Fix: Use several, for CPUs by '
                    'JAX_NUM_CPU_DEVICES=8 in the environment')
    return Mesh(np.array(jax.devices()), ('devices',))


def _specs(mesh, example):
    """For each program, the spec of each operand: every dimension that an axis divides, alone, and
    the same one of all operands."""
    whole = (PartitionSpec(),) * len(example)
    yield whole
    for axis, size in mesh.shape.items():
        over = [[PartitionSpec(*(None,) * d, axis) for d, length in enumerate(x.shape)
                 if size > 1 and length and length % size == 0] for x in example]
        for k, specs in enumerate(over):
            yield from (whole[:k] + (spec,) + whole[k + 1:] for spec in specs)
        for specs in itertools.zip_longest(*over, fillvalue=PartitionSpec()):
            if len(example) > 1:
                yield specs


def check(function, example, **options):
    """A shardcall.RuleCheck, with the first sharding that is wrong in its details."""
    mesh = _mesh_of(example)
    found = None
    for specs in dict.fromkeys(_specs(mesh, example)):
        sharded = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, spec))
                   for x, spec in zip(example, specs)]
        found = programs.check_rule(TARGET, jax.jit(function).lower(*sharded), **options)
        if not found:
            details = {**found.details, 'shardings': [str(spec) for spec in specs]}
            return programs.RuleCheck(found.verdict, '', (), details)
    return programs.RuleCheck('holds', '', (), {**found.details, 'untested': []})
