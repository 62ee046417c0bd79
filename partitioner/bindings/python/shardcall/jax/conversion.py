# SPDX-License-Identifier: Apache-2.0
"""JAX's modules as HLO, and back."""
import io

from shardcall.jax import compat
from shardcall.jax.compat import ir

# Attributes of an argument or result that XLA and JAX read. Those of the whole program are valid for
# the shards too.
_ARGUMENT = ('mhlo.memory_kind', 'mhlo.layout_mode', 'jax.buffer_donor')
_RESULT = ('mhlo.memory_kind', 'mhlo.layout_mode')


def bytecode_to_hlo(code):
    computation = compat.stablehlo_to_computation(
        code, use_tuple_args=False, return_tuple=False)
    return computation.as_serialized_hlo_module_proto()


def to_hlo(module):
    """A module of StableHLO (jaxlib's ir.Module) as a serialised HloModuleProto."""
    return bytecode_to_hlo(compat.module_to_bytecode(module))


def to_bytecode(module):
    """The module as the partitioner reads it by itself, without XLA's conversion to HLO: in version
    4 of MLIR's bytecode, the last one in which all attributes bear names."""
    out = io.BytesIO()
    module.operation.write_bytecode(out, desired_version=4)
    return out.getvalue()


def names_in(module):
    """Bytes that hold the name of each jax.named_scope in which anything of the module was
    traced."""
    return compat.module_to_bytecode(module)


def parsed(data):
    """StableHLO as text, bytecode, or what jax.export serialises, as jaxlib's ir.Module. None for
    what MLIR does not read."""
    context = compat.make_ir_context()
    with context:
        for parse in (ir.Module.parse,
                      lambda code: compat.deserialize_portable_artifact(context, code)):
            try:
                return parse(data)
            except (compat.MLIRError, ValueError):
                pass
    return None


def name_of(module):
    return ir.StringAttr(module.operation.attributes['sym_name']).value


def num_partitions_of(module):
    attributes = module.operation.attributes
    if 'mhlo.num_partitions' not in attributes:
        return 0
    return ir.IntegerAttr(attributes['mhlo.num_partitions']).value


def _main(module):
    for op in module.body.operations:
        if op.operation.name != 'func.func':
            continue
        if ir.StringAttr(op.attributes['sym_name']).value == 'main':
            return op
    return None


def _dicts(function, which):
    return [ir.DictAttr(d) for d in function.attributes[which]] if which in function.attributes else []


def _keep(original, new, which, names):
    """Gives the new function's dicts of attributes those of `names` that the original has."""
    before = _dicts(original, which)
    dicts = _dicts(new, which)
    dicts += [ir.DictAttr.get({})] * (len(before) - len(dicts))
    changed = False
    for k, old in enumerate(before):
        own = dicts[k]
        # JAX rejects donation in two ways at once.
        missing = {name: old[name] for name in names if name in old and name not in own and
                   not (name == 'jax.buffer_donor' and 'tf.aliasing_output' in own)}
        if missing:
            dicts[k] = ir.DictAttr.get({a.name: a.attr for a in own} | missing)
            changed = True
    if changed:
        new.attributes[which] = ir.ArrayAttr.get(dicts)


def hlo_to_bytecode(proto):
    """A serialised HloModuleProto as StableHLO in bytecode, by XLA's conversion."""
    return compat.hlo_to_stablehlo(proto)


def to_module(code, original, num_partitions):
    """A program of ours in bytecode as JAX compiles it, with what the original says of its
    arguments."""
    # In the original's context, which has all dialects, and whose attributes may be used again.
    with original.context:
        module = ir.Module.parse(code)
        attributes = module.operation.attributes
        i32 = ir.IntegerType.get_signless(32)
        attributes['sym_name'] = ir.StringAttr.get(name_of(original))
        attributes['mhlo.num_partitions'] = ir.IntegerAttr.get(i32, num_partitions)
        attributes['mhlo.num_replicas'] = ir.IntegerAttr.get(i32, 1)
        old, new = _main(original), _main(module)
        if old is not None and new is not None:
            _keep(old, new, 'arg_attrs', _ARGUMENT)
            _keep(old, new, 'res_attrs', _RESULT)
        return module
