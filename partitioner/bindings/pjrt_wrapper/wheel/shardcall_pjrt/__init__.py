# SPDX-License-Identifier: Apache-2.0
"""shardcall under JAX: a PJRT plugin that wraps another one and partitions its programs.

    python3 -m shardcall_pjrt train.py            on the host's CPU
    python3 -m shardcall_pjrt --platform=cuda train.py

or, without the launcher, `JAX_PLATFORMS=shardcall_cpu python3 train.py`. What the plugin
reads from the environment (SHARDCALL_PLUGINS, SHARDCALL_REPORT, ...) is told by shardcall's
page on the plugin.
"""
import os

__version__ = '0.1.0'
WRAPPED = 'SHARDCALL_WRAPPED_PLUGIN'


def library_path():
    """The plugin's path."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libshardcall_pjrt.so')


def wrap(plugin):
    """Names the plugin to wrap, unless the environment does. A process wraps one."""
    named = os.environ.setdefault(WRAPPED, str(plugin))
    if os.path.abspath(named) != os.path.abspath(str(plugin)):
        raise RuntimeError(f'{WRAPPED} names {named}, and {plugin} is to be wrapped: '
                           'a process wraps one plugin')


def wanted(platform):
    """Whether JAX_PLATFORMS names the platform."""
    return platform in [p.strip() for p in os.environ.get('JAX_PLATFORMS', '').split(',')]
