# SPDX-License-Identifier: Apache-2.0
"""The platform `shardcall_cpu`: XLA's CPUs by the wheel xla-cpu-pjrt, with as many devices
as SHARDCALL_CPU_DEVICES says, else --xla_force_host_platform_device_count in XLA_FLAGS, else
jax_num_cpu_devices, else 8."""
import importlib.util
import os
import re

import shardcall_pjrt

PLATFORM = 'shardcall_cpu'


def plugin_path():
    """That of XLA:CPU's plugin. ImportError where it is not installed."""
    try:
        spec = importlib.util.find_spec('xla_plugins.xla_cpu_pjrt')
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise ImportError(f'{PLATFORM} needs XLA:CPU as a plugin: pip install xla-cpu-pjrt')
    return os.path.join(os.path.dirname(spec.origin), 'xla_cpu_pjrt.so')


def device_count():
    said = os.environ.get('SHARDCALL_CPU_DEVICES') or next(iter(re.findall(
        r'--xla_force_host_platform_device_count=(\d+)', os.environ.get('XLA_FLAGS', ''))), '')
    if said:
        return int(said)
    import jax
    configured = getattr(jax.config, 'jax_num_cpu_devices', -1)
    return configured if configured and configured > 0 else 8


def initialize():
    """JAX calls this for every installed plugin; the platform is there where it is asked for."""
    if not shardcall_pjrt.wanted(PLATFORM):
        return
    from jax._src import xla_bridge
    shardcall_pjrt.wrap(plugin_path())
    xla_bridge.register_plugin(PLATFORM, priority=100,
                               library_path=shardcall_pjrt.library_path(),
                               options=lambda: {'cpu_device_count': device_count()})
