# SPDX-License-Identifier: Apache-2.0
"""The check of a custom_partitioning: its functions know the mesh of the program that calls it, so
programs with all shardings of the operands over that mesh are held against one device, where the
callback makes the call whole, and what they compute is held against the function itself."""
import itertools

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardcall import programs
from shardcall.errors import Error
from shardcall.jax import functions

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


def _values(example, seed):
    """Arrays as they are; whole numbers for those of which only the shape is said. None if keys of
    random numbers are among them."""
    if any(jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) for x in example):
        return None
    random = np.random.default_rng(seed)
    return [np.asarray(random.integers(-4, 5, x.shape), x.dtype)
            if isinstance(x, jax.ShapeDtypeStruct) else np.asarray(x) for x in example]


def _by_itself(function, values, device):
    """What the function gives on one device, where it is not partitioned. None where it names
    others, or has keys of random numbers."""
    try:
        made = jax.jit(function)(*(jax.device_put(x, device) for x in values))
        return jax.tree.map(np.asarray, made)
    except (TypeError, ValueError):
        return None


def _alike(wanted, made):
    """Equal, or near where sums may be rounded otherwise."""
    for want, got in zip(jax.tree.leaves(wanted), map(np.asarray, jax.tree.leaves(made))):
        if want.dtype.kind in 'biu':
            near = np.array_equal(want, got)
        else:
            tolerance = 1e-5 if want.dtype.itemsize >= 4 else 1e-2
            wide = np.complex128 if want.dtype.kind == 'c' else np.float64
            want, got = want.astype(wide), got.astype(wide)
            largest = np.abs(want[np.isfinite(want)]).max(initial=0)
            near = np.allclose(got, want, rtol=0, atol=tolerance * largest, equal_nan=True)
        if not near:
            return False
    return True


def check(function, example, **options):
    """A shardcall.RuleCheck, with the first sharding that is wrong in its details."""
    mesh = _mesh_of(example)
    values = _values(example, options.get('seed', 0))
    alone = None if values is None else _by_itself(function, values, mesh.devices.flat[0])
    sharded_function = functions.jit(function)
    found = None
    for specs in dict.fromkeys(_specs(mesh, example)):
        placements = [NamedSharding(mesh, spec) for spec in specs]
        sharded = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placement)
                   for x, placement in zip(example, placements)]
        found = programs.check_rule(TARGET, jax.jit(function).lower(*sharded), **options)
        details = {**found.details, 'shardings': [str(spec) for spec in specs]}
        if not found:
            return programs.RuleCheck(found.verdict, '', (), details)
        if alone is None:
            continue
        if not _alike(alone, sharded_function(*map(jax.device_put, values, placements))):
            details.update(verdict='incorrect',
                           reason='what the callback makes gives other numbers than the function')
            return programs.RuleCheck('incorrect', '', (), details)
    return programs.RuleCheck('holds', '', (), {**found.details, 'untested': []})
