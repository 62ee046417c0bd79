# SPDX-License-Identifier: Apache-2.0
"""JAX's platform `cuda` with our plugin around that of jax-cuda13-pjrt or jax-cuda12-pjrt.
JAX's own package goes on to register the platform and its handlers; the library that it
loads is ours. Before JAX makes its backends: `python3 -m shardcall_pjrt --platform=cuda`, or
SHARDCALL_PLATFORMS=cuda for JAX's discovery of plugins."""
import importlib
import os

import shardcall_pjrt

PACKAGES = ('jax_plugins.xla_cuda13', 'jax_plugins.xla_cuda12')


def package():
    for name in PACKAGES:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ImportError('no plugin of XLA:GPU is installed: pip install "jax[cuda13]"')


def take_over():
    """From here on JAX loads our library for `cuda`. RuntimeError where it has loaded its
    own."""
    from jaxlib import xla_client
    if xla_client.pjrt_plugin_loaded('cuda'):
        raise RuntimeError('JAX has loaded its own plugin for cuda: start the program by '
                           'python3 -m shardcall_pjrt --platform=cuda')
    real = package()
    shardcall_pjrt.wrap(real._get_library_path())
    real._get_library_path = shardcall_pjrt.library_path


def initialize():
    if 'cuda' in os.environ.get('SHARDCALL_PLATFORMS', '').split(','):
        take_over()
