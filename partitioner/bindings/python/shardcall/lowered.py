# SPDX-License-Identifier: Apache-2.0
"""Programs that JAX reads: what jax.jit(f).lower(..) and shardcall.jax.jit(f).lower(..) give, and
StableHLO. JAX is imported only where there is such a thing."""
import importlib.util
import sys


def is_lowered(program):
    stages = sys.modules.get('jax.stages')
    return stages is not None and isinstance(program, stages.Lowered)


def settings_of(program):
    """Those of the function of shardcall.jax.jit that was lowered, else None."""
    return getattr(program, '_settings', None) if is_lowered(program) else None


def to_hlo(program):
    """(a serialised HloModuleProto, its name, the number of partitions)."""
    return _converted(program.compiler_ir('stablehlo'))


def _converted(module):
    from shardcall.jax import conversion
    return (conversion.to_hlo(module), conversion.name_of(module),
            conversion.num_partitions_of(module))


def of_stablehlo(data):
    """As `to_hlo`, of StableHLO as text or bytecode; None where JAX is not installed, or does not
    read it."""
    if importlib.util.find_spec('jax') is None:
        return None
    from shardcall.jax import conversion
    module = conversion.parsed(data)
    return None if module is None else _converted(module)
