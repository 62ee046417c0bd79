# SPDX-License-Identifier: Apache-2.0
"""Programs that JAX reads: what jax.jit(f).lower(..) and shardcall.jax.jit(f).lower(..) give, and
StableHLO. JAX is imported only where there is such a thing."""
import importlib.util
import sys

from shardcall import _core


def is_lowered(program):
    stages = sys.modules.get('jax.stages')
    return stages is not None and isinstance(program, stages.Lowered)


def settings_of(program):
    """Those of the function of shardcall.jax.jit that was lowered, else None."""
    return getattr(program, '_settings', None) if is_lowered(program) else None


def searched(settings):
    """What the function is searched as where it is compiled."""
    import jax
    return settings.searched(jax.default_backend())


def open_edges(program):
    """(of each flat parameter, of each flat result: whether JAX lets it have the sharding that the
    program implies), or None where JAX does not say."""
    if not is_lowered(program):
        return None
    from shardcall.jax import compat
    return compat.open_edges(program)


def to_hlo(program):
    """(a serialised HloModuleProto, its name, the number of partitions)."""
    return _converted(program.compiler_ir('stablehlo'))


def _converted(module):
    from shardcall.jax import conversion
    return (conversion.to_hlo(module), conversion.name_of(module),
            conversion.num_partitions_of(module))


def take_registrations(program, data):
    """Takes over what this process has registered with JAX alone and a program, with the bytes
    `data`, may need: kernels of jax.ffi, and custom_partitioning."""
    if is_lowered(program):
        from shardcall.jax import compiling
        compiling.take_framework_targets()
    if 'jaxlib.xla_client' in sys.modules:
        from shardcall import xla_client
        xla_client._take_from_jaxlib(data)


def has_partitioner_alone(target, program):
    """Whether a partitioner in Python makes a program of the target's calls, in place of a kernel:
    that of what JAX has lowered."""
    if not is_lowered(program):
        return False
    take_registrations(program, b'')
    return (target in _core.partitioned_targets() and
            target not in _core.registered_targets('cpu'))


def of_stablehlo(data):
    """As `to_hlo`, of StableHLO as text or bytecode; None where JAX is not installed, or does not
    read it."""
    if importlib.util.find_spec('jax') is None:
        return None
    from shardcall.jax import conversion
    module = conversion.parsed(data)
    return None if module is None else _converted(module)
