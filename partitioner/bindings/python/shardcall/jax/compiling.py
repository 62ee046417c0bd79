# SPDX-License-Identifier: Apache-2.0
"""Our partitioner in the place of XLA's: jax.jit stays as it is, but for its compile step."""
import collections
import ctypes
import dataclasses
import threading
import warnings

import jax
from jax._src import compiler
from jax._src import core
from jax._src import xla_bridge
from jax._src.interpreters import pxla
from jax._src.lib import xla_client

from shardcall import _core
from shardcall import registry
from shardcall.errors import Error, Warning
from shardcall.jax import conversion
from shardcall.jax import settings as _settings

# JAX's functions, while ours stand in their place: compiler.compile_or_get_cached, and
# pxla.get_op_sharding_from_executable.
_ORIGINAL = None
_ORIGINAL_SHARDINGS = None
_OFF = ('sharding-propagation', 'shardy-xla', 'spmd-partitioning')
_lock = threading.RLock()
_framework = 0  # how many of JAX's registrations we have
_registered = {}  # (platform, target): the function that we have registered
_told = set()
# By id of an executable that we had compiled: what its results are sharded like. An entry
# may outlive its executable, which jaxlib has no weak references to: it is asked only for
# executables whose results are manual, as ours are.
_results = {}


def install():
    """Puts our compile step in the place of JAX's, where it acts only for functions that are
    wrapped by `jit`, or within `partitioner`."""
    global _ORIGINAL, _ORIGINAL_SHARDINGS
    with _lock:
        if _ORIGINAL is not None:
            return
        _core.set_stablehlo_to_hlo(conversion.bytecode_to_hlo)
        _ORIGINAL = compiler.compile_or_get_cached
        compiler.compile_or_get_cached = _compile
        _ORIGINAL_SHARDINGS = pxla.get_op_sharding_from_executable
        pxla.get_op_sharding_from_executable = _shardings_of


def uninstall():
    """Leaves JAX as it was: functions wrapped by `jit` are compiled by XLA's partitioner from
    then on, until `jit` or `partitioner` is called again."""
    global _ORIGINAL, _ORIGINAL_SHARDINGS
    with _lock:
        if _ORIGINAL is None:
            return
        jax.clear_caches()  # of what is still asked for its shardings
        if compiler.compile_or_get_cached is _compile:
            compiler.compile_or_get_cached = _ORIGINAL
        if pxla.get_op_sharding_from_executable is _shardings_of:
            pxla.get_op_sharding_from_executable = _ORIGINAL_SHARDINGS
        _ORIGINAL = _ORIGINAL_SHARDINGS = None
        _results.clear()


class _Partitioned(Exception):
    """Ends a compilation of which only our part is wanted."""

    def __init__(self, program):
        super().__init__('partitioned')
        self.program = program


def _framework_targets():
    """Takes over what JAX has registered for the XLA of plugins since: how many those are."""
    global _framework
    with _lock:
        # Importing it registers the partitioner of custom_partitioning.
        from jax._src import custom_partitioning  # noqa: F401
        callbacks = list(xla_bridge._plugin_callbacks)
        for callback in callbacks[_framework:]:
            try:
                callback(c_api=_core.framework_api())
            except Exception as e:  # one that wants more of a plugin than that
                _tell(f'a registration of JAX is not taken over: {e}', strict=False)
        _framework = len(callbacks)
        return _framework


def _tell(why, strict):
    message = f'W205 a program is left to XLA\'s partitioner: {why}'
    if strict:
        raise Error(f'{message}. Fix: Give the program to jax.jit, or leave strict out',
                    'FAILED_PRECONDITION')
    if why not in _told:
        _told.add(why)
        warnings.warn(message, Warning, stacklevel=2)


def check_outermost(settings):
    """Tells of a function of `jit` that is called where JAX traces for something else."""
    trace = type(core.trace_ctx.trace).__name__
    # vmap calls it, and compiles nothing of its own.
    if trace not in ('EvalTrace', 'BatchTrace'):
        _tell('a function of shardcall.jax.jit is called within a jit or a transformation of JAX '
              f'that is not ({trace}). What that compiles, a backward pass for one, is XLA\'s: use '
              'shardcall.jax.jit, or partitioner, around it', settings.strict)


def _why_not(backend, build_options):
    if 'PJRT C API' in backend.platform_version:
        return ('its backend is a PJRT plugin, which the wrapping plugin is for '
                '(libshardcall_pjrt.so)')
    if build_options.num_replicas > 1:
        return f'it has {build_options.num_replicas} replicas (pmap)'
    if build_options.use_auto_spmd_partitioning:
        return 'XLA is to choose its shardings'
    if not build_options.use_spmd_partitioning:
        return 'it is not to be partitioned'
    return None


def _compile(backend, computation, devices, compile_options, *args, **kwargs):
    settings = _settings.current()
    original = _ORIGINAL or compiler.compile_or_get_cached
    build = compile_options.executable_build_options
    if settings is None or (build.num_partitions <= 1 and build.num_replicas <= 1):
        return original(backend, computation, devices, compile_options, *args, **kwargs)
    why = _why_not(backend, build)
    if why is not None:
        _tell(why, settings.strict)
        return original(backend, computation, devices, compile_options, *args, **kwargs)
    program = _partition(settings, backend, computation, build)
    if settings.only_partition:
        raise _Partitioned(program)
    if settings.report:
        program.write_report(settings.report)
    made = _Local(*program.for_jax(backend.platform, _known(backend.platform)))
    _register(backend.platform, made.functions)
    local = conversion.to_stablehlo(made.proto, computation, build.num_partitions, made.parameters)
    executable = original(backend, local, devices, _replaced(compile_options), *args, **kwargs)
    _results[id(executable)] = [conversion.op_sharding(s) for s in made.results]
    return executable


def _shardings_of(executable):
    """pxla.get_op_sharding_from_executable: (of parameters, of results)."""
    inputs, outputs = _ORIGINAL_SHARDINGS(executable)
    ours = _results.get(id(executable))
    if ours is not None and outputs and all(o.type == o.Type.MANUAL for o in outputs):
        outputs = ours
    return inputs, outputs


def _partition(settings, backend, computation, build):
    request = _core.Request(
        conversion.to_hlo(computation), conversion.name_of(computation), '',
        registry.made(settings.targets, _framework_targets()), build.num_partitions, True,
        list(settings.allow_replicate), settings.max_reshard_bytes)
    return _core.partition_for_jax(
        request, list(build.allow_spmd_sharding_propagation_to_parameters),
        list(build.allow_spmd_sharding_propagation_to_output), backend.platform)


_Local = collections.namedtuple('_Local', 'proto parameters results functions')


def _known(platform):
    """Targets that JAX has a handler of its own for."""
    return [name for name in xla_client.custom_call_targets(platform)
            if (platform, name) not in _registered]


def _register(platform, functions):
    """Gives XLA the functions of ours that a program calls."""
    for name, _, address in functions:
        with _lock:
            known = _registered.get((platform, name))
            if known is None:
                jax.ffi.register_ffi_target(
                    name, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform=platform)
                _registered[(platform, name)] = address
            elif known != address:
                # XLA has no way to take a function back: it would call the first one.
                raise Error(
                    f'E141 custom call "{name}" has another kernel than in a program that was '
                    f'compiled before, and XLA keeps the first one on {platform}. Fix: Give the '
                    'kernel a target name of its own', 'ALREADY_EXISTS')


def _replaced(compile_options):
    """XLA is to compile the module as it is."""
    build = compile_options.executable_build_options
    debug = build.debug_options
    off = [p for p in debug.xla_disable_hlo_passes.split(',') if p]
    debug.xla_disable_hlo_passes = ','.join(off + [p for p in _OFF if p not in off])
    build.use_shardy_partitioner = False
    build.allow_spmd_sharding_propagation_to_parameters = [False]
    build.allow_spmd_sharding_propagation_to_output = [False]
    return compile_options


def partitioned(jitted, args, kwargs, settings):
    """What a call of the jitted function is partitioned into; XLA compiles nothing."""
    install()
    # No other settings are equal to these, so that no cache has what is asked for.
    only = dataclasses.replace(settings, only_partition=True, report='')
    with _settings.context(only):
        try:
            jitted.lower(*args, **kwargs).compile()
        except _Partitioned as done:
            return done.program
    raise Error('E051 the function is for one device: there is nothing to partition. Fix: Give it '
                'arrays, or jax.ShapeDtypeStruct, with shardings over several devices')
