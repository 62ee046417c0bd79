# SPDX-License-Identifier: Apache-2.0
"""The versions of JAX that the package works with, and every private name of JAX that it uses.

A private name stands here alone: what it is used for, and where each version has it. The rest of
the package takes it from here. To take up a new version of JAX, run
tests/partitioner/bindings/python/jax_compat_test.py under it, which names all that moved at once;
give what moved its new place in front of the old one, and set NEWEST.

Looked at before all else of shardcall.jax: E344 is raised where JAX is too old, or lacks a name;
W207 is told once where it is newer than any that was tested.
"""
import functools
import importlib
import importlib.util
import inspect
import re
import typing

import jax

from shardcall import telling
from shardcall.errors import Error

OLDEST = (0, 10, 2)
NEWEST = (0, 12, 0)  # that was tested; later ones are tried


class UnsupportedJax(Error, ImportError):
    """E344, which is an ImportError, too."""


class Private(typing.NamedTuple):
    """A private name of JAX.

    Attributes:
      places: where versions have it, the newest version's first: module:name, or a module, which
        is not imported.
      use: what the package uses it for.
      takes: the parameters that the package passes.
    """
    places: tuple
    use: str
    takes: tuple


NAMES = []  # all that the package uses, as Private
_ABSENT = object()


def _at(place):
    module, _, names = place.partition(':')
    try:
        if not names:
            return importlib.util.find_spec(module) or _ABSENT
        found = importlib.import_module(module)
        for name in names.split('.'):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return _ABSENT
    return found


def _found(name):
    return next((f for f in map(_at, name.places) if f is not _ABSENT), _ABSENT)


def _the(*places, use, takes=()):
    """What stands at the first of the places that this version has, None if it has none of them.
    Then `check` raises."""
    NAMES.append(Private(places, use, takes))
    found = _found(NAMES[-1])
    return None if found is _ABSENT else found


def missing():
    """The names that this version of JAX does not have: a text for each."""
    return [f'{" or ".join(name.places)} ({name.use})' for name in NAMES
            if _found(name) is _ABSENT]


def changed():
    """The functions that no longer take what the package passes: a text for each."""
    out = []
    for name in NAMES:
        found = _found(name)
        lost = [] if found is _ABSENT else [p for p in name.takes if not _takes(found, p)]
        if lost:
            out.append(f'{name.places[0]} takes no {", ".join(lost)} ({name.use})')
    return out


def _takes(function, parameter):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    if set(parameters) - {'args', 'kwargs'}:
        return parameter in parameters
    # A function in C++: its documentation has its signature.
    return re.search(rf'\b{parameter}\b', function.__doc__ or '') is not None


def _text(version):
    return '.'.join(map(str, version))


def check(version, text):
    """Raises E344 or tells W207 of a version of JAX: `version` as jax.__version_info__ has it,
    `text` as jax.__version__."""
    oldest, newest = _text(OLDEST), _text(NEWEST)
    if version < OLDEST:
        raise UnsupportedJax(
            f'E344 JAX is too old for shardcall.jax: expected {oldest} or newer, found {text}. '
            f'Fix: pip install "jax>={oldest}", for which Python must be 3.11 or newer; the '
            'package shardcall itself runs without JAX', 'FAILED_PRECONDITION')
    lacks = missing()
    if lacks:
        raise UnsupportedJax(
            f'E344 JAX lacks names that shardcall.jax uses: expected those of {oldest} to '
            f'{newest}, found {text} without {", ".join(lacks)}. Fix: pip install '
            f'"jax=={_text(NEWEST)}.*", or a newer shardcall', 'FAILED_PRECONDITION')
    if version[:3] > NEWEST:
        telling.once(f'W207 JAX {text} is newer than those that shardcall.jax was tested with: '
                     f'expected {oldest} to {newest}. Fix: If anything fails that does not with '
                     f'these, pip install "jax=={_text(NEWEST)}.*"', ('W207', text))


# The compile step of jax.jit, which ours replaces.
_the('jax._src.compiler:compile_or_get_cached', use='what ours replaces and calls',
     takes=('backend', 'computation', 'devices', 'compile_options'))
for _field in ('num_partitions', 'num_replicas', 'use_spmd_partitioning',
               'use_auto_spmd_partitioning', 'use_shardy_partitioner',
               'allow_spmd_sharding_propagation_to_parameters',
               'allow_spmd_sharding_propagation_to_output'):
    _the(f'jax._src.lib:_jax.ExecutableBuildOptions.{_field}', use='how a program is partitioned')
_the('jax._src.lib:_jax.CompileOptions.executable_build_options', use='as above')
_the('jax._src.lib:_jax.CompileOptions.env_option_overrides', use="what turns XLA's warnings off")


def compile_step():
    """What jax.jit compiles with: (backend, module, devices, options, ...) -> executable."""
    return importlib.import_module('jax._src.compiler').compile_or_get_cached


def set_compile_step(function):
    importlib.import_module('jax._src.compiler').compile_or_get_cached = function


_open_edges = _the('jax._src.interpreters.pxla:get_prop_to_input_output',
                   takes=('in_shardings', 'out_shardings'),
                   use='which parameters and results have no sharding of their own')


def open_edges(lowered):
    """What jax.jit asks of the compiler for a jax.stages.Lowered: (of each flat parameter, of each
    flat result: whether its sharding is open). None where what is lowered does not say."""
    asked = getattr(lowered._lowering, 'compile_args', None)
    if not asked:
        return None
    parameters, results = _open_edges(asked['in_shardings'], asked['out_shardings'],
                                      len(asked['ordered_effects']))
    return list(parameters), list(results)


# Tracing.
trace_ctx = _the('jax._src.core:trace_ctx', use='the trace that is under way')
eval_trace = _the('jax._src.core:eval_trace', use='the trace where nothing is traced')
EvalTrace = _the('jax._src.core:EvalTrace', use='its type')
BatchTrace = _the('jax._src.interpreters.batching:BatchTrace', use="vmap's trace")
DynamicJaxprTrace = _the('jax._src.interpreters.partial_eval:DynamicJaxprTrace',
                         use='the trace of jit, and of what is compiled later')
current_name_stack = _the('jax._src.source_info_util:current_name_stack',
                          use='the named scopes around a compilation')
register_exclusion = _the('jax._src.source_info_util:register_exclusion', takes=('path',),
                          use='source lines of calls are those of the caller')
_the('jax._src.lib:_jax.config.Config.swap_local', use='settings are set with one call')
_the('jax._src.lib:_jax.config.Config.set_local', use='and set back')


def traces():
    """The traces under way, from the innermost."""
    trace = trace_ctx.trace
    while trace is not None:
        yield trace
        trace = getattr(trace, 'parent_trace', None)


def local_value(context):
    """(swap, set) of a context of jax.make_user_context: the value for this thread, of which swap
    returns the one before."""
    return context._obj.swap_local, context._obj.set_local


# Types of arrays.
ManualAxisType = _the('jax._src.core:ManualAxisType', takes=('varying',),
                      use="a result's type in a shard_map")
auto_insert_reshard = _the('jax._src.core:auto_insert_reshard',
                           use='operands get the manual axes of the others')
_the('jax._src.core:ShapedArray.mat', use="an operand's type in a shard_map")
_the('jax:ShapeDtypeStruct', takes=('manual_axis_type', 'sharding'), use='as above')

# Backends.
backends = _the('jax._src.xla_bridge:backends', use='the clients that there are')
_plugin_callbacks = _the('jax._src.xla_bridge:_plugin_callbacks',
                         use='registrations of custom_partitioning and others')
_factories = _the('jax._src.xla_bridge:_backend_factories', use='the C API of a plugin')
_the('jax._src.xla_bridge:BackendRegistration.c_api', use='as above')
_the('jax._src.custom_partitioning', use='its import registers its partitioner')
_partitionings = _the('jax._src.custom_partitioning:_sharding_callbacks',
                      use='what a custom_partitioning defines, by the backend_config of its calls')
custom_call_targets = _the('jax._src.lib:xla_client.custom_call_targets',
                           takes=('platform',), use='the kernels that XLA has')


def plugin_callbacks():
    """JAX's registrations for plugins: functions that take c_api=."""
    importlib.import_module('jax._src.custom_partitioning')
    return [_with_infer(callback) for callback in _plugin_callbacks]


def _with_infer(callback):
    """One whose infer_sharding_from_operands says nothing of what a custom_partitioning leaves to
    the default, which is none: JAX's would call it."""
    infer = getattr(callback, 'keywords', {}).get('infer_sharding_from_operands')
    if infer is None or _partitionings is None:
        return callback

    def answer(shapes, shardings, result_shape, config):
        defined = _partitionings.get(config)
        if defined is not None and defined.infer_sharding_from_operands is None:
            return None
        return infer(shapes, shardings, result_shape, config)
    return functools.partial(callback, infer_sharding_from_operands=answer)


def c_apis():
    """{platform: its table of functions, a capsule; None where it is no plugin}"""
    return {platform: factory.c_api for platform, factory in _factories.items()}


# MLIR.
ir = _the('jax._src.lib.mlir:ir', use='modules of StableHLO')
MLIRError = _the('jax._src.lib.mlir:ir.MLIRError', use='a module that cannot be read')
make_ir_context = _the('jax._src.interpreters.mlir:make_ir_context',
                       use='a context with all dialects')
ir_attribute = _the('jax._src.interpreters.mlir:ir_attribute', takes=('val',),
                    use="a call's attributes, as JAX writes them")
module_to_bytecode = _the('jax._src.interpreters.mlir:module_to_bytecode', takes=('module',),
                          use='a module for XLA')
deserialize_portable_artifact = _the(
    'jax._src.lib.mlir.dialects:hlo.deserialize_portable_artifact',
    takes=('context', 'artifact'), use='what jax.export writes')
stablehlo_to_computation = _the(
    'jax._src.lib:_jax.mlir.mlir_module_to_xla_computation',
    takes=('use_tuple_args', 'return_tuple'), use='StableHLO as HLO')
hlo_to_stablehlo = _the('jax._src.lib:_jax.mlir.hlo_to_stablehlo', use='HLO as StableHLO')


def started_calls():
    """Whether JAX, and so XLA, has a started collective as two calls, as since 0.12."""
    return _at('jax._src.lax.parallel:_emit_async_start_custom_call') is not _ABSENT


# What shardcall.xla_client and shardcall.partitioners, which work without JAX, take of jaxlib.
for _name in ('Shape', 'Shape.to_serialized_proto', 'OpSharding', 'HloSharding.from_proto',
              'HloSharding.from_string', 'HloSharding.to_proto', 'HloSharding.v3_to_v2_sharding',
              'HloSharding.tuple_elements', 'HloSharding.is_manual', 'CustomCallTargetTraits',
              'xla_platform_names', 'register_custom_call_handler',
              'register_custom_call_partitioner', 'register_custom_call_as_batch_partitionable',
              'register_custom_type', 'register_custom_type_handler', 'custom_call_targets'):
    _the(f'jaxlib.xla_client:{_name}', use='shardcall.xla_client')
_the('jaxlib.xla_client:register_custom_call_target', use='shardcall.xla_client',
     takes=('name', 'fn', 'platform', 'api_version', 'traits'))
_waiting_types = _the('jaxlib.xla_client:_custom_type_id',
                      use='types that jax.ffi registered before')


def waiting_types(platform):
    """The types of custom calls that wait for a platform's client to be made: (name, capsule or
    dict of capsules), in order. The platform as XLA calls it."""
    return list(_waiting_types.get(platform, ()))


_waiting_kernels = _the('jaxlib.xla_client:_custom_callback',
                        use='kernels that jax.ffi registered before')


def waiting_kernels(platform):
    """As waiting_types, of kernels: (target, capsule or dict of capsules)."""
    return [(name, fn) for name, fn, *_ in _waiting_kernels.get(platform, ())]


check(jax.__version_info__, jax.__version__)
