# SPDX-License-Identifier: Apache-2.0
"""What jax.jit(f).lower(..) gives, as HLO. JAX is imported only where there is such a thing."""
import sys


def is_lowered(program):
    stages = sys.modules.get('jax.stages')
    return stages is not None and isinstance(program, stages.Lowered)


def to_hlo(program):
    """(a serialised HloModuleProto, its name, the number of partitions)."""
    from shardcall.jax import conversion
    module = program.compiler_ir('stablehlo')
    return (conversion.to_hlo(module), conversion.name_of(module),
            conversion.num_partitions_of(module))
