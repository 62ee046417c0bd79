# SPDX-License-Identifier: Apache-2.0
"""What JAX's types say of a call's results beside shape and dtype: their sharding on explicit
meshes, and the manual axes of shard_map over which they vary."""
import functools
import json
import math
from collections.abc import Mapping

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from shardcall import _core
from shardcall import arrays
from shardcall import registry
from shardcall.errors import Error
from shardcall.jax import compat
from shardcall.jax import settings as _settings


def _key():
    settings = _settings.current()
    return registry.key_of(None, ()) if settings is None else settings.targets


def _targets(name):
    """The targets that are known where this is called, which asks for the rule of one."""
    registry.note_called((name,))
    return registry.made(_key())


def batching(name):
    """What is declared of vmap over a target's calls, as `target` takes it; None where nothing
    is."""
    registry.note_called((name,))
    return registry.entry(_key(), name).get('batching')


def identity(value):
    """Equal for attributes that a kernel gets as the same bytes of the same types: 0.0 is not -0.0,
    1 is neither 1.0 nor True, and arrays can be looked up."""
    if isinstance(value, Mapping):
        return (dict, tuple((name, identity(value[name])) for name in sorted(value)))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(map(identity, value)))
    if isinstance(value, (np.generic, np.ndarray)):  # np.float64 is a float, too
        return (type(value), value.dtype, value.shape, value.tobytes())
    if isinstance(value, float):
        return (float, value.hex())
    return (type(value), value)


def plain(x):
    """Shape and dtype alone, of what has them; anything else as it is."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, 'shape') else x


def like(x):
    """The type of an array, whole."""
    return like_type(jax.typeof(x))


def like_type(aval):
    """The type that an array's is, as a jax.ShapeDtypeStruct."""
    sharding = None if _mesh(aval) is None else aval.sharding
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding,
                                manual_axis_type=aval.mat)


def typed(name, attributes, results, operands):
    """`results`, a list of what has a shape and a dtype, as a call of the target gives them for
    these operands: sharded as its rule says of explicit axes, and varying over the manual axes that
    an operand varies over. A jax.ShapeDtypeStruct that has a sharding keeps it."""
    results = [r if isinstance(r, jax.ShapeDtypeStruct) else plain(r) for r in results]
    avals = [jax.typeof(x) for x in operands]
    mesh = next((m for m in map(_mesh, avals) if m is not None), None)
    if mesh is None:
        return results
    specs = (PartitionSpec(),) * len(results)
    if AxisType.Explicit in mesh.axis_types:
        specs = _specs(_targets(name), name, _config(attributes), mesh,
                       tuple((a.shape, a.dtype, _axes(a)) for a in avals),
                       tuple((tuple(r.shape), r.dtype) for r in results))
    mat = compat.ManualAxisType(varying=frozenset().union(*(a.mat.varying for a in avals)))
    return [jax.ShapeDtypeStruct(
                r.shape, r.dtype, manual_axis_type=mat,
                sharding=getattr(r, 'sharding', None) or NamedSharding(mesh, spec))
            for r, spec in zip(results, specs)]


def results(name, attributes, operands):
    """The types of a call's results by the target's rule, as [jax.ShapeDtypeStruct, ..]; `operands`
    have shapes and dtypes. E111, E112 where they do not follow."""
    for k, x in enumerate(operands):
        if not all(isinstance(size, int) for size in x.shape):
            raise Error(f'E112 the result types of "{name}" do not follow from its rule: operand '
                        f'{k} has the symbolic shape {tuple(x.shape)}: expected sizes that are '
                        'known. Fix: Give sj.target shapes=, a function of the operands\' types')
    found = _targets(name).result_types(name, _config(attributes), _pairs(operands))
    return [jax.ShapeDtypeStruct(dims, arrays.dtype_of(dtype)) for dtype, dims in found]


def takes_batch(name, attributes, operands, results, batched):
    """Whether one call of the target computes a batch of such calls, over the operands for which
    `batched` is true: where its rule has `...` on them and on all results."""
    return _targets(name).takes_batch(name, _config(attributes), _pairs(operands), _pairs(results),
                                      list(map(bool, batched)))


def _pairs(values):
    return [(arrays.name_of(x.dtype), list(x.shape)) for x in values]


def _mesh(aval):
    """The mesh of which a type says more than shape and dtype, or None."""
    mesh = aval.sharding.mesh
    typed_axes = not mesh.empty and set(mesh.axis_types) - {AxisType.Auto}
    return mesh if typed_axes else None


def _axes(aval):
    """For each dimension, the names of the axes that its type is sharded over."""
    if _mesh(aval) is None:
        return ((),) * aval.ndim
    parts = aval.sharding.spec
    return tuple(() if p is None else p if isinstance(p, tuple) else (p,)
                 for p in (*parts, *(None,) * (aval.ndim - len(parts))))


_configs = {}  # by identity of the attributes: a context of MLIR takes a millisecond


def _config(attributes):
    """As HLO has it."""
    if not attributes:
        return '{}'
    key = identity(attributes)
    found = _configs.get(key)
    if found is None:
        if len(_configs) >= 1024:
            _configs.clear()
        with compat.make_ir_context(), compat.ir.Location.unknown():
            found = _configs[key] = str(compat.ir.DictAttr.get(
                {name: compat.ir_attribute(value) for name, value in attributes.items()}))
    return found


@functools.lru_cache(maxsize=1024)
def _specs(known, name, config, mesh, operands, results):
    """A PartitionSpec for each result, found by propagation over a program of one call."""
    sizes = {axis: size for axis, size, kind in zip(mesh.axis_names, mesh.axis_sizes,
                                                    mesh.axis_types)
             if kind == AxisType.Explicit}
    axes = {axis: f'a{k}' for k, axis in enumerate(sizes)}  # names of any characters
    header = ','.join(f"'{axes[axis]}'={size}" for axis, size in sizes.items())
    lines = []
    for k, (shape, dtype, dims) in enumerate(operands):
        text = ', '.join('{' + ', '.join(f"'{axes[a]}'" for a in dim) + '}' for dim in dims)
        lines.append(f'p{k} = {_shape(shape, dtype)} parameter({k}), '
                     f'sharding={{mesh[{header}], [{text}]}}')
    made = [_shape(shape, dtype) for shape, dtype in results]
    made = made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'
    names = ', '.join(f'p{k}' for k in range(len(operands)))
    program = '\n'.join([
        f'HloModule types, num_partitions={math.prod(sizes.values())}, '
        'allow_spmd_sharding_propagation_to_output={true}',
        'ENTRY main {', *lines,
        f'ROOT r = {made} custom-call({names}), custom_call_target={json.dumps(name)}, '
        f'api_version=API_VERSION_TYPED_FFI, backend_config={config}', '}'])
    request = _core.Request(program.encode(), name, '', known, 0, True, [], 0)
    back = {short: axis for axis, short in axes.items()}
    return [_spec(shape, [[back[a] for a in dim] for dim in dims], sizes)
            for (shape, _), dims in zip(results, _core.result_axes(request))]


def _shape(shape, dtype):
    return f'{arrays.name_of(dtype)}[{",".join(map(str, shape))}]'


def _spec(shape, dims, sizes):
    """JAX's types have no uneven shards: such a dimension is whole."""
    parts = []
    for size, axes in zip(shape, dims):
        even = axes and size % math.prod(sizes[a] for a in axes) == 0
        parts.append((axes[0] if len(axes) == 1 else tuple(axes)) if even else None)
    return PartitionSpec(*parts)
