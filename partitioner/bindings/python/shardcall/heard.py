# SPDX-License-Identifier: Apache-2.0
"""What is registered with jaxlib alone, as by jax.ffi: we hear of types and kernels as they are
registered, since jaxlib gives no types, and of a kernel all stages but `instantiate`."""
import functools
import sys

from shardcall import _core
from shardcall import partitioners
from shardcall.errors import Error

_jaxlib = partitioners.jaxlib
_stages = {}  # by platform, as XLA calls it: {target: {stage: capsule}}
_names = set()  # of the kernels for CPUs
if _jaxlib is not None:
    register_custom_type = _jaxlib.register_custom_type
    register_custom_call_target = _jaxlib.register_custom_call_target


def _on(platform):
    return _jaxlib.xla_platform_names.get(platform, platform)


def _note_type(type_name, type_id, platform='cpu'):
    if _on(platform) != _on('cpu'):
        return
    parts = type_id if isinstance(type_id, dict) else {'type_id': type_id}
    if parts.get('type_id') is None:
        return
    try:
        _core.register_type(type_name, parts['type_id'], parts.get('type_info'), 'cpu')
    except (Error, TypeError):
        pass  # what XLA speaks of: a name or a number that is taken, or no name


def _note_kernel(name, fn, platform='cpu'):
    name = name.decode() if isinstance(name, bytes) else name
    if _on(platform) == _on('cpu'):
        _names.add(name)
    if isinstance(fn, dict):
        _stages.setdefault(_on(platform), {}).setdefault(name, dict(fn))  # the first one counts


def _telling_type(type_name, type_id, platform='cpu'):
    _note_type(type_name, type_id, platform)
    return register_custom_type(type_name, type_id, platform)


def _telling_kernel(name, fn, platform='cpu', *args, **kwargs):
    made = register_custom_call_target(name, fn, platform, *args, **kwargs)
    _note_kernel(name, fn, platform)
    return made


def hear():
    """Hears of each registration from now on, and of those that wait for XLA's CPU client, if JAX,
    which has made them, is there."""
    if _jaxlib is None or _jaxlib.register_custom_type is _telling_type:
        return
    _jaxlib.register_custom_type = functools.wraps(register_custom_type)(_telling_type)
    _jaxlib.register_custom_call_target = functools.wraps(register_custom_call_target)(
        _telling_kernel)
    if 'jax' not in sys.modules:
        return
    try:
        from shardcall.jax import compat
    except ImportError:
        return  # a JAX that shardcall.jax does not work with
    for type_name, type_id in compat.waiting_types(_on('cpu')):
        _note_type(type_name, type_id)
    for name, fn in compat.waiting_kernels(_on('cpu')):
        _note_kernel(name, fn)


def hear_no_longer():
    """Puts jaxlib's functions back."""
    if _jaxlib is None:
        return
    if _jaxlib.register_custom_type is _telling_type:
        _jaxlib.register_custom_type = register_custom_type
    if _jaxlib.register_custom_call_target is _telling_kernel:
        _jaxlib.register_custom_call_target = register_custom_call_target


def is_heard(name):
    """Whether we have heard of a kernel for CPUs of that name."""
    return name in _names


def functions(platform):
    """The functions that jaxlib has for a platform, as XLA calls it: {target: capsule}, or
    {target: {stage: capsule}}, with every stage where we have heard of it."""
    heard = _stages.get(platform, {})
    return {name: heard.get(name, fn) if isinstance(fn, dict) else fn
            for name, fn in _jaxlib.custom_call_targets(platform).items()}
