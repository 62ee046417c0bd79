# SPDX-License-Identifier: Apache-2.0
"""Our partitioner in the place of XLA's: jax.jit stays as it is, but for its compile step."""
import contextlib
import ctypes
import threading

import jax

from shardcall import _core
from shardcall import heard
from shardcall import partitioners
from shardcall import registry
from shardcall import telling
from shardcall import xla_client as registrations
from shardcall.errors import Error
from shardcall.jax import compat
from shardcall.jax import conversion
from shardcall.jax import served_calls
from shardcall.jax import settings as _settings

# JAX's compile step, while it is replaced by ours.
_ORIGINAL = None
_lock = threading.RLock()
_framework = 0  # number of JAX's registrations taken over so far
_registered = {}  # (platform, target): the function registered with XLA
_left_to_xla = set()  # why our reader or our writer did not convert programs
_marked = False  # whether any program may have the scopes of check_outermost


def install():
    """Puts our compile step in the place of JAX's, where it acts only for functions that are
    wrapped by `jit`, or within `partitioner`, and for calls of installed targets."""
    global _ORIGINAL
    heard.hear()
    with _lock:
        if _ORIGINAL is not None:
            return
        _ORIGINAL = compat.compile_step()
        compat.set_compile_step(_compile)


def uninstall():
    """Puts back JAX's compile step, and jaxlib's registration of types."""
    global _ORIGINAL
    heard.hear_no_longer()
    with _lock:
        if _ORIGINAL is None:
            return
        if compat.compile_step() is _compile:
            compat.set_compile_step(_ORIGINAL)
        _ORIGINAL = None


def left_to_xla():
    """Why XLA, not we, converted programs between StableHLO and HLO: a text for each reason. Their
    partitioning is the same; their conversion takes longer."""
    return sorted(_left_to_xla)


class _Partitioned(Exception):
    """Ends a compilation of which only our part is wanted."""

    def __init__(self, program):
        super().__init__('partitioned')
        self.program = program


def take_framework_targets():
    """Takes over what JAX has registered for the XLA of plugins since."""
    global _framework
    with _lock:
        _core.set_stablehlo_to_hlo(partitioners.to_hlo)
        callbacks = compat.plugin_callbacks()
        for callback in callbacks[_framework:]:
            try:
                callback(c_api=_core.framework_api())
            except Exception as e:  # it uses more of a plugin than registration
                telling.once(f'W205 programs that need it are left to XLA\'s partitioner: a '
                             f'registration of JAX is not taken over: {e}')
        _framework = len(callbacks)


def _tell(program, why, strict):
    message = f'W205 {program} is left to XLA\'s partitioner: {why}'
    if strict:
        raise Error(f'{message}. Fix: Give the program to jax.jit, or leave strict out',
                    'FAILED_PRECONDITION')
    telling.once(message)


# Scopes that name what is traced as ours in a program that is not: an op's location has them. Most
# such programs are never compiled for several devices (jax.eval_shape), so the telling waits.
_WITHIN, _STRICTLY_WITHIN = 'shardcall.jax:within', 'shardcall.jax:strictly_within'


def _transformations():
    """The types of JAX's traces from the innermost, without those of vmap, which compiles nothing
    itself."""
    return [type(trace) for trace in compat.traces() if type(trace) is not compat.BatchTrace]


def check_outermost(settings, what):
    """Tells of `what` of ours, a function of `jit` or a `partitioner`, that begins where JAX
    traces for something else. Gives the context to trace within."""
    global _marked
    traces = _transformations()
    if traces[0] is compat.EvalTrace:
        return contextlib.nullcontext()
    if compat.DynamicJaxprTrace in traces:
        _marked = True
        return jax.named_scope(_STRICTLY_WITHIN if settings.strict else _WITHIN)
    _tell('a program', f'{what} is within a transformation of JAX that is not '
          f'({traces[0].__name__}). What that compiles, a backward pass for one, is XLA\'s: use '
          'shardcall.jax.jit, or partitioner, around it', settings.strict)
    return contextlib.nullcontext()


def _tell_of_marks(computation):
    """Of functions of `jit`, and `partitioner`s, in a program that neither is around."""
    # What JAX evaluates step by step, such as a jax.checkpoint without a jit, has its scopes only
    # around the compilation.
    names = conversion.names_in(computation) + str(compat.current_name_stack()).encode()
    strict = _STRICTLY_WITHIN.encode() in names
    if strict or _WITHIN.encode() in names:
        _tell(_named(computation), 'a function of shardcall.jax.jit, or a '
              'shardcall.jax.partitioner, is within it, and the outermost jit decides: use '
              'shardcall.jax.jit, or partitioner, around it', strict)


def _why_not(build_options):
    if build_options.num_replicas > 1:
        return f'it has {build_options.num_replicas} replicas (pmap)'
    if build_options.use_auto_spmd_partitioning:
        return 'XLA is to choose its shardings'
    if not build_options.use_spmd_partitioning:
        return 'it is not to be partitioned'
    return None


def _write_report(program, folder, computation):
    """Training goes on without its reports, for example when the disk is full."""
    try:
        program.write_report(folder)
    except Error as error:
        if error.code != 'E061':
            raise
        why = str(error).removeprefix(error.code).lstrip()
        telling.once(f'W209 no report of {conversion.name_of(computation)} is written: {why}',
                     ('W209', folder))


def _compile(backend, computation, devices, compile_options, *args, **kwargs):
    settings = _settings.current()
    original = _ORIGINAL or compat.compile_step()
    build = compile_options.executable_build_options
    single = build.num_partitions <= 1 and build.num_replicas <= 1
    if settings is None and _marked and not single:
        _tell_of_marks(computation)
    if settings is not None and single:
        _register_called(settings, backend, computation, build)
    if settings is None or single:
        computation = _for_xla(backend, computation, build)
        return original(backend, computation, devices, compile_options, *args, **kwargs)
    why = _why_not(build)
    if why is not None:
        _tell(_named(computation), why, settings.strict)
        computation = _for_xla(backend, computation, build)
        return original(backend, computation, devices, compile_options, *args, **kwargs)
    program = _partition(settings, backend, computation, build)
    registry.note_called(program.called)
    unused = registry.unused(settings.targets, program.called)
    if not _settings.note_unused(settings, unused):
        registry.tell_unused(unused, _named(computation), program.called)
    if settings.only_partition:
        raise _Partitioned(program)
    if settings.report:
        _write_report(program, settings.report, computation)
    platform = _platform(backend)
    code, proto, why, shardy, functions, names = program.for_jax(
        platform, _known(platform), partitioners.known_to_xla(), _ordinals(backend, devices),
        compat.started_calls())
    _register(backend, functions)
    _register_again(platform, names)
    if not code:  # XLA converts what our writer does not
        _left_to_xla.add(why)
        code = conversion.hlo_to_bytecode(proto)
    whole = conversion.to_module(code, computation, build.num_partitions)
    options = _replaced(compile_options, shardy, _c_api(backend) is not None)
    return original(backend, whole, devices, options, *args, **kwargs)


def _register_called(settings, backend, computation, build):
    """Gives XLA the kernels that a program for one device calls, which XLA compiles as it is."""
    platform = _platform(backend)
    known = set(_known(platform))
    names = [name for name, (_, platforms, _) in registry.made(settings.targets).describe().items()
             if platforms and name not in known]
    code = conversion.to_bytecode(computation)
    if not any(name.encode() in code for name in names):
        return
    try:
        program = _partition(settings, backend, computation, build)
    except Error:
        return  # what does not fit our rules runs on one device all the same
    registry.note_called(program.called)
    functions = program.for_jax(platform, sorted(known), [], [], compat.started_calls())[4]
    _register(backend, functions)


def _for_xla(backend, computation, build):
    """A program that XLA partitions, with the calls by whose names it asks for installed rules."""
    if not served_calls.installed or build.num_partitions <= 1:
        return computation
    return served_calls.named(computation, build.use_shardy_partitioner, _c_api(backend))


def _named(computation):
    return f'the program {conversion.name_of(computation)}'


def _partition(settings, backend, computation, build):
    code = conversion.to_bytecode(computation)
    take_framework_targets()
    registrations._take_from_jaxlib(code)
    targets = registry.made(settings.targets)

    def partition(program):
        request = _core.Request(
            program, conversion.name_of(computation), '', targets, build.num_partitions, True,
            list(settings.allow_replicate), settings.max_reshard_bytes, settings.conflicts,
            settings.cost, settings.max_memory, settings.searched(_platform(backend)),
            settings.strict_partial, (list(build.allow_spmd_sharding_propagation_to_parameters),
                                      list(build.allow_spmd_sharding_propagation_to_output)))
        return _core.partition_for_jax(request, _platform(backend))

    try:
        try:
            return partition(code)
        except Error as e:
            # XLA converts what our reader does not.
            if e.code != 'E035':
                raise
            _left_to_xla.add(str(e))
        return partition(conversion.to_hlo(computation))
    except Error as e:
        # Of what a callback raises, only the text comes back from JAX.
        if e.code == 'E121' and 'KeyboardInterrupt' in str(e):
            raise KeyboardInterrupt from e
        raise


def _platform(backend):
    """As handlers have it: JAX says gpu of both CUDA and ROCm."""
    return 'rocm' if 'rocm' in backend.platform_version.lower() else backend.platform


def _known(platform):
    """Targets that JAX has a handler of its own for."""
    return [name for name in compat.custom_call_targets(platform)
            if (platform, name) not in _registered]


def _c_api(backend):
    """The table of functions of a backend that is a plugin, else None."""
    for name, known in compat.backends().items():
        if known is backend:
            return compat.c_apis()[name]
    return None


def _register(backend, functions):
    """Gives XLA the functions of ours that a program calls."""
    platform = _platform(backend)
    for name, xla_platform, address in functions:
        with _lock:
            known = _registered.get((platform, name))
            if known is None:
                c_api = _c_api(backend)
                if c_api is None:
                    jax.ffi.register_ffi_target(
                        name, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform=platform)
                else:
                    _core.register_handler(c_api, name, xla_platform, address)
                _registered[(platform, name)] = address
            elif known != address:
                # XLA cannot unregister a function: it would call the first one.
                raise Error(
                    f'E141 custom call "{name}" has another kernel than in a program that was '
                    f'compiled before, and XLA keeps the first one on {platform}. Fix: Give the '
                    'kernel a target name of its own', 'ALREADY_EXISTS')


def _ordinals(backend, devices):
    """The number of each device of a program in XLA's runtime, by partition; none if some of them
    are in other processes."""
    flat = list(devices.flat)
    if any(d.process_index != backend.process_index() for d in flat):
        return []
    return [d.local_hardware_id for d in flat]


def _register_again(platform, names):
    """Gives XLA functions that it has under a further name: [(target, the further name)]."""
    for target, name in names:
        with _lock:
            if (platform, name) in _registered:
                continue
            function = heard.functions(_core.platform_name(platform))[target]
            partitioners.jaxlib.register_custom_call_target(
                name, function, platform, api_version=1 if isinstance(function, dict) else 0)
            _registered[(platform, name)] = function


def _replaced(compile_options, shardy, is_plugin):
    """The program says all shardings."""
    build = compile_options.executable_build_options
    build.use_shardy_partitioner = shardy
    build.allow_spmd_sharding_propagation_to_parameters = [False]
    build.allow_spmd_sharding_propagation_to_output = [False]
    # Our module has Shardy's attributes, which all versions read. JAX 0.12 compiles with named
    # shardings in HLO, and XLA then warns of these attributes before it turns that off itself. The
    # XLA of a plugin may not have the option, which it then refuses.
    if not is_plugin:
        compile_options.env_option_overrides = [
            *compile_options.env_option_overrides, ('xla_enable_hlo_sharding_v3', False)]
    return compile_options


def partitioned(lower, settings):
    """What the jax.stages.Lowered that `lower` makes is partitioned into; XLA compiles nothing."""
    install()
    # These settings equal no others, so that no cache has the result.
    with _settings.context(settings.to_partition_only()):
        try:
            lower().compile(compiler_options={})  # which JAX has not cached
        except _Partitioned as done:
            return done.program
    raise Error('E051 the function is for one device: there is nothing to partition. Fix: Give it '
                'arrays, or jax.ShapeDtypeStruct, with shardings over several devices')
