# SPDX-License-Identifier: Apache-2.0
"""Our partitioner in the place of XLA's: jax.jit stays as it is, but for its compile step."""
import collections
import ctypes
import itertools
import os
import re
import threading
import warnings

import jax
from jax._src import compiler
from jax._src import xla_bridge
from jax._src.lib import xla_client

from shardcall import _core
from shardcall import registry
from shardcall.errors import Error, Warning
from shardcall.jax import conversion
from shardcall.jax import settings as _settings

_ORIGINAL = None  # jax's compile_or_get_cached, while ours stands in its place
_OFF = ('sharding-propagation', 'shardy-xla', 'spmd-partitioning')
_lock = threading.RLock()
_framework = 0  # how many of JAX's registrations we have
_registered = {}  # (platform, target): the function that we have registered
_reports = itertools.count()
_told = set()
# The last programs that were partitioned, by what asks for them: see `captured`.
_capture = threading.local()


def install():
  """Puts our compile step in the place of JAX's, where it acts only for functions that are
  wrapped by `jit`, or within `partitioner`."""
  global _ORIGINAL
  with _lock:
    if _ORIGINAL is not None:
      return
    _core.set_stablehlo_to_hlo(conversion.bytecode_to_hlo)
    _ORIGINAL = compiler.compile_or_get_cached
    compiler.compile_or_get_cached = _compile


def uninstall():
  """Leaves JAX as it was: functions wrapped by `jit` are compiled by XLA's partitioner from
  then on, until `jit` or `partitioner` is called again."""
  global _ORIGINAL
  with _lock:
    if _ORIGINAL is None:
      return
    if compiler.compile_or_get_cached is _compile:
      compiler.compile_or_get_cached = _ORIGINAL
    _ORIGINAL = None
  jax.clear_caches()


class captured:
  """Within it, the programs that this thread partitions are kept: a list of them."""

  def __enter__(self):
    self._before = getattr(_capture, 'programs', None)
    _capture.programs = []
    return _capture.programs

  def __exit__(self, *_):
    _capture.programs = self._before


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
      except Exception as e:  # one that wants more of a plugin than that it takes partitioners
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


def _platform(backend):
  """'cpu', 'cuda', ..: as handlers have it."""
  version = backend.platform_version.lower()
  if backend.platform in ('gpu', 'cuda', 'rocm'):
    return 'rocm' if 'rocm' in version else 'cuda'
  return backend.platform


def _why_not(backend, build_options):
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
  if getattr(_capture, 'programs', None) is not None:
    _capture.programs.append(program)
  if settings.report:
    _write_report(settings.report, conversion.name_of(computation), program)
  _register(_platform(backend), program)
  local = _local(_platform(backend), computation, build.num_partitions, program)
  return original(backend, local, devices, _replaced(compile_options), *args, **kwargs)


def _partition(settings, backend, computation, build):
  request = _core.Request(
      conversion.to_hlo(computation), conversion.name_of(computation), '',
      registry.made(settings.targets, _framework_targets()), build.num_partitions, True,
      list(settings.allow_replicate), settings.max_reshard_bytes)
  return _core.partition_for_jax(
      request, _flags(build.allow_spmd_sharding_propagation_to_parameters),
      _flags(build.allow_spmd_sharding_propagation_to_output), _platform(backend))


def _flags(flags):
  return [bool(x) for x in flags]


_Local = collections.namedtuple('_Local', 'proto parameters result functions')


def _known(platform):
  """Targets that JAX has a handler of its own for."""
  names = {'cpu': 'Host', 'cuda': 'CUDA', 'rocm': 'ROCM'}
  ours = {name for p, name in _registered if p == platform}
  found = xla_client.custom_call_targets(names.get(platform, platform))
  return [name for name in found if name not in ours]


def _made(platform, program):
  return _Local(*program.for_jax(platform, _known(platform)))


def _register(platform, program):
  """Gives XLA the functions of ours that the program calls."""
  for name, _, address in _made(platform, program).functions:
    with _lock:
      if _registered.get((platform, name)) == address:
        continue
      if (platform, name) not in _registered:
        jax.ffi.register_ffi_target(
            name, jax.ffi.pycapsule(ctypes.c_void_p(address)), platform=platform)
      _registered[(platform, name)] = address


def _local(platform, computation, num_partitions, program):
  made = _made(platform, program)
  return conversion.to_stablehlo(made.proto, computation, num_partitions, made.parameters,
                                 made.result)


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


def _write_report(folder, name, program):
  os.makedirs(folder, exist_ok=True)
  stem = os.path.join(folder, f'{re.sub("[^A-Za-z0-9_.-]", "_", name)[:100]}.{os.getpid()}.'
                              f'{next(_reports)}')
  for ending, text in (('json', program.report()), ('html', program.explain('html'))):
    with open(f'{stem}.{ending}', 'w', encoding='utf-8') as f:
      f.write(text)


def partition_lowered(lowered, settings):
  """The program of a jax.stages.Lowered, partitioned; nothing is compiled."""
  module = lowered.compiler_ir('stablehlo')
  given = lowered._lowering.compile_args
  count = conversion.num_partitions_of(module)
  if count <= 1:
    raise Error('E051 the function is for one device: there is nothing to partition. Fix: Give '
                'it arrays, or jax.ShapeDtypeStruct, with shardings over several devices')
  request = _core.Request(
      conversion.to_hlo(module), conversion.name_of(module), '',
      registry.made(settings.targets, _framework_targets()), count, True,
      list(settings.allow_replicate), settings.max_reshard_bytes)
  backend = given.get('backend')
  return _core.partition_for_jax(
      request, _flags(given.get('allow_prop_to_inputs') or [False]),
      _flags(given.get('allow_prop_to_outputs') or [False]),
      _platform(backend) if backend is not None else jax.default_backend())
