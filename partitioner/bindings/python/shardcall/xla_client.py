# SPDX-License-Identifier: Apache-2.0
"""jaxlib.xla_client's registrations of custom calls, served by shardcall.

    from shardcall import xla_client            # in the place of: from jaxlib import xla_client

    xla_client.register_custom_call_target('my_norm', capsule, platform='cpu', api_version=1)
    xla_client.register_custom_call_partitioner('my_norm', propagate, partition, infer)

What is registered holds for `shardcall.partition`, `run` and the package's other functions, and
for `shardcall.jax`. Where jaxlib is there, it has the registration too, so that XLA's own
partitioner and its kernels are as with jaxlib's functions; all else of jaxlib's module
(`Shape`, `HloSharding`, ..) is given on. Without jaxlib `Shape`, `HloSharding`, `OpSharding` and
`PrimitiveType` are the package's own, with the same methods.

Programs that were compiled before a registration stay as they are.
"""
import enum
import threading
from collections.abc import Callable
from typing import Any, Optional

from shardcall import _core
from shardcall import heard as _heard
from shardcall import hlo_types as _hlo_types
from shardcall import partitioners as _partitioners
from shardcall.errors import Error

_jaxlib = _partitioners.jaxlib
_lock = threading.RLock()  # a handler may register
_handlers = {}  # of targets, by platform
_targets = {}  # targets without a handler yet
_type_handlers = {}
_types = {}
_taken = set()  # targets of jaxlib that _take_from_jaxlib has seen
_inspected = {}  # by id: (handler, its bytes)
_STAGES = ('instantiate', 'prepare', 'initialize', 'execute')

if _jaxlib is not None:
    CustomCallTargetTraits = _jaxlib.CustomCallTargetTraits
    xla_platform_names = _jaxlib.xla_platform_names
    _core.set_stablehlo_to_hlo(_partitioners.to_hlo)
else:
    class CustomCallTargetTraits(enum.IntFlag):
        DEFAULT = 0
        # The handler launches the same device operations each time, which may be recorded and
        # replayed.
        COMMAND_BUFFER_COMPATIBLE = 1

    xla_platform_names = {'cpu': 'Host', 'gpu': 'CUDA'}
    Shape = _hlo_types.Shape
    HloSharding = _hlo_types.HloSharding
    OpSharding = _hlo_types.OpSharding
    PrimitiveType = _hlo_types.PrimitiveType


def __getattr__(name):
    if _jaxlib is None or name.startswith('__'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}'
                             + ('' if _jaxlib else ' (jaxlib is not installed)'))
    return getattr(_jaxlib, name)


def _text(name, what):
    if isinstance(name, bytes):
        name = name.decode()
    if not isinstance(name, str):
        raise Error(f'E141 {what} is a {type(name).__name__}: expected a str. Fix: Give its name')
    return name


def _told(handlers, waiting, platform, call):
    """Passes a registration to the platform's handler, or keeps it for that."""
    handler = handlers.get(platform)
    if handler is None:
        waiting.setdefault(platform, []).append(call)
    else:
        call(handler)


def _register_handler(handlers, waiting, platform, handler):
    platform = _core.platform_name(platform)
    with _lock:
        if platform in handlers:
            return
        handlers[platform] = handler
        for call in waiting.pop(platform, ()):
            call(handler)


def register_custom_call_target(
        name: str, fn: Any, platform: str = 'cpu', api_version: int = 0,
        traits: CustomCallTargetTraits = CustomCallTargetTraits.DEFAULT) -> None:
    """Registers the function of a custom call.

    Args:
      name: the target.
      fn: a PyCapsule with the function's pointer, as jax.ffi.pycapsule makes it; of the typed FFI
        also a dict {stage: capsule} of 'instantiate', 'prepare', 'initialize' and 'execute'.
      platform: 'cpu', 'gpu', 'cuda', 'rocm', or what XLA calls it ('Host', 'CUDA').
      api_version: 0, an untyped function, whose calls say their ABI; 1, XLA's typed FFI.
      traits: CustomCallTargetTraits, of typed ones.

    Raises:
      shardcall.Error: another function of that name and platform (E141; the same one passes),
        something else than a capsule (E144), another API version, traits of an untyped one (E147).
    """
    name, platform = _text(name, 'a target'), _text(platform, 'a platform')
    stages = fn if isinstance(fn, dict) else {'execute': fn}
    unknown = [s for s in stages if s not in _STAGES]
    if unknown or 'execute' not in stages or (isinstance(fn, dict) and api_version != 1):
        raise Error(f'E144 the function of custom call "{name}" has the stages {list(stages)}. '
                    'Fix: Give a dict with "execute", and "instantiate", "prepare", "initialize" '
                    'where it has them, and api_version=1')
    _core.register_target(name, [stages.get(s) for s in _STAGES], platform, int(api_version),
                          int(traits))
    on = _core.platform_name(platform)  # XLA knows CUDA as such alone
    if _jaxlib is not None:
        _heard.register_custom_call_target(name, fn, on, api_version, traits)
        return
    with _lock:
        _told(_handlers, _targets, on,
              lambda handler: handler(name, fn, on, api_version, traits))


def _take_from_jaxlib(program):
    """Has us know the kernels for CPUs that are registered with jaxlib alone, as by jax.ffi, and
    whose names `program` has, which is a program's bytes or a target. Of a program with calls that
    a partitioner writes anew, which may then call any kernel, all that we have heard of. Our own
    stay."""
    if _jaxlib is None:
        return
    is_target = isinstance(program, str)
    written = not is_target and any(target.encode() in program
                                    for target in _core.partitioned_targets())
    for name, fn in _heard.functions('Host').items():
        # Callbacks of Python need contexts that XLA alone has.
        if name in _taken or name.startswith('xla_ffi_python'):
            continue
        called = name == program if is_target else name.encode() in program
        if not (called or (written and _heard.is_heard(name))):
            continue
        stages = [fn.get(s) for s in _STAGES] if isinstance(fn, dict) else [None, None, None, fn]
        try:
            _core.register_target(name, stages, 'cpu', int(isinstance(fn, dict)), 0)
        except Error as e:
            if e.code not in ('E141', 'E144'):  # one of ours, or one that we cannot call
                raise
        _taken.add(name)


def register_custom_call_handler(platform: str, handler: Callable) -> None:
    """Sets what is called with each target of a platform: those that were registered before it at
    once, then each as it is registered. A platform's first handler stays: another one is not
    taken, in silence, as by jaxlib.

    Args:
      platform: as of `register_custom_call_target`.
      handler: handler(name, fn, platform, api_version, traits), the platform as XLA calls it.

    What the handler raises is raised by this function, or by the registration of a target.
    """
    if _jaxlib is not None:
        _jaxlib.register_custom_call_handler(platform, handler)
    else:
        _register_handler(_handlers, _targets, platform, handler)


def custom_call_targets(platform: str) -> dict[str, Any]:
    """The functions that are registered for a platform, jaxlib's own too: {name: capsule}, or
    {name: {stage: capsule}} of those of the typed FFI. A platform that is not known has none."""
    found = {}
    for name, fn in _core.registered_targets(platform).items():
        if isinstance(fn, list):
            fn = {s: c for s, c in zip(_STAGES, fn) if c is not None}
        found[name] = fn
    if _jaxlib is not None:
        found.update(_heard.functions(_core.platform_name(platform)))
    return found


def register_custom_call_partitioner(
        name: str, prop_user_sharding: Callable, partition: Callable,
        infer_sharding_from_operands: Callable,
        can_side_effecting_have_replicated_sharding: bool = False,
        c_api: Optional[Any] = None) -> None:
    """Registers how a custom call is partitioned; the last registration of a name is the one
    that counts.

    Args:
      name: the target.
      prop_user_sharding: (result sharding, shape, backend_config) -> the sharding that the
        call's result can have.
      partition: (shapes, shardings, result shape, result sharding, backend_config) -> (module,
        operand shardings, result sharding): the call on shards, as bytes of StableHLO or of HLO,
        and how its operands and result are to be sharded. It stays as it is given: a call of the
        same target in it is not partitioned again.
      infer_sharding_from_operands: (shapes, shardings, result shape, backend_config) -> the
        result's sharding, or None.
      can_side_effecting_have_replicated_sharding: calls with side effects may be replicated.
      c_api: a capsule with a PJRT_Api*: that plugin's XLA has the registration too.

    Shardings are HloSharding, or None where there is none, shapes Shape, backend_config bytes. They
    are asked from any thread, several times, and are to depend on nothing else. What they raise
    is E121 of the program that is partitioned, an answer of another kind E120.

    Raises:
      shardcall.Error: a target that has a shipped rule (E105), a `c_api` that is no capsule (E144)
        or not of a plugin's table (E148).
    """
    name = _text(name, 'a target')
    callbacks = _partitioners.Callbacks(
        name, prop_user_sharding, partition, infer_sharding_from_operands)
    side_effects = bool(can_side_effecting_have_replicated_sharding)
    _core.register_partitioner(name, *_partitioners.over_bytes(callbacks), side_effects)
    for_xla = _partitioners.ForXla(callbacks)
    if c_api is not None:
        _core.register_partitioner_with(c_api, name, *_partitioners.over_bytes(for_xla),
                                        side_effects)
    elif _jaxlib is not None:
        _partitioners.give_to_xla(name, for_xla, side_effects)


def register_custom_call_as_batch_partitionable(target_name: str,
                                                c_api: Optional[Any] = None) -> None:
    """Registers a target whose leading dimensions are independent, as many as the frontend
    attribute num_batch_dims of a call says (a call without it is E101).

    Args:
      target_name: the target.
      c_api: a capsule with a PJRT_Api*: that plugin's XLA has the registration too.

    Raises:
      shardcall.Error: a `c_api` that is no capsule (E144), or not of a plugin's table (E148).
    """
    target_name = _text(target_name, 'a target')
    _core.register_batch_partitionable(target_name)
    if c_api is not None:
        _core.register_batch_partitionable_with(c_api, target_name)
    elif _jaxlib is not None:
        _jaxlib.register_custom_call_as_batch_partitionable(target_name)


def encode_inspect_sharding_callback(handler: Callable) -> bytes:
    """The 16 bytes that a call of the target InspectSharding has as its backend_config, for
    `handler` to be called with the HloSharding of the call's operand when it is partitioned.
    What it raises is E121 of the program. It is kept as long as the process lives."""
    if not callable(handler):
        raise Error(f'E120 a {type(handler).__name__} is called with shardings. Fix: Give a '
                    'function of one argument')
    with _lock:
        if id(handler) not in _inspected:
            encoded = _core.encode_inspect_sharding(
                lambda proto: handler(_partitioners.sharding_of(proto)))
            _inspected[id(handler)] = handler, encoded
        return _inspected[id(handler)][1]


def register_custom_type(type_name: str, type_id: Any, platform: str = 'cpu') -> None:
    """Registers a type of the typed FFI, before the handlers that have it as their state.

    Args:
      type_name: its name.
      type_id: a capsule with a pointer to its XLA_FFI_TypeId, which gets its number; or a dict with
        that as 'type_id' and its XLA_FFI_TypeInfo as 'type_info'.
      platform: as of `register_custom_call_target`.

    Raises:
      shardcall.Error: a name or number that is taken (E141), no capsule (E144).
    """
    type_name, platform = _text(type_name, 'a type'), _text(platform, 'a platform')
    parts = type_id if isinstance(type_id, dict) else {'type_id': type_id}
    if parts.get('type_id') is None:
        raise Error(f'E144 type "{type_name}" is registered without a type_id. Fix: Give a '
                    'capsule, or a dict with "type_id" and "type_info"')
    _core.register_type(type_name, parts['type_id'], parts.get('type_info'), platform)
    on = _core.platform_name(platform)
    if _jaxlib is not None:
        _heard.register_custom_type(type_name, type_id, on)
        return
    with _lock:
        _told(_type_handlers, _types, on,
              lambda handler: handler(type_name, type_id))


def register_custom_type_handler(platform: str, handler: Callable) -> None:
    """As `register_custom_call_handler`, for types: handler(name, type_id)."""
    if _jaxlib is not None:
        _jaxlib.register_custom_type_handler(platform, handler)
    else:
        _register_handler(_type_handlers, _types, platform, handler)


# Older names of these functions.
register_custom_type_id = register_custom_type
register_custom_type_id_handler = register_custom_type_handler

_heard.hear()
