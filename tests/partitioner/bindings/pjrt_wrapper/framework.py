# SPDX-License-Identifier: Apache-2.0
"""Python processes with JAX on the plugin that wraps XLA:CPU's."""
import json
import os
import subprocess
import sys
import tempfile


def variables(library, plugin, folder):
    """By which JAX loads `library` as a plugin with 8 host devices, that wraps `plugin` where
    it is one that wraps. `folder` is there as long as JAX runs."""
    settings = os.path.join(folder, os.path.basename(library) + '.json')
    with open(settings, 'w', encoding='utf-8') as f:
        json.dump({'library_path': os.path.abspath(library),
                   'create_options': {'cpu_device_count': 8}}, f)
    return {'PJRT_NAMES_AND_LIBRARY_PATHS': f'shardcall:{settings}', 'JAX_PLATFORMS': 'shardcall',
            'SHARDCALL_WRAPPED_PLUGIN': os.path.abspath(plugin), 'NPROC': '16'}


class Framework:
    """Runs pieces of Python in processes of their own; each has `jax`, `jnp`, `np`, `P`,
    `mesh` (4 x 2, axes x and y) and `put(array, *spec)`."""

    HEAD = '''
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
def put(array, *spec):
    return jax.device_put(np.asarray(array, np.float32), NamedSharding(mesh, P(*spec)))
'''

    def __init__(self, library, plugin):
        self.folder = tempfile.TemporaryDirectory(prefix='pjrt_wrapper.')
        self.plugin = plugin
        self.environment = {**os.environ, **variables(library, plugin, self.folder.name),
                            'JAX_TRACEBACK_FILTERING': 'off'}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), 'w', encoding='utf-8') as f:
            f.write(text)
        return self.path(name)

    def python(self, code, head=True, **variables):
        """(exit status, standard output, standard error). A variable of None is unset."""
        environment = {**self.environment, **{k: v for k, v in variables.items() if v is not None}}
        for name, value in variables.items():
            if value is None:
                environment.pop(name, None)
        done = subprocess.run([sys.executable, '-c', (self.HEAD if head else '') + code],
                              env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr


def from_arguments():
    """The framework of the command line and the environment, or exit status 77."""
    library = os.environ['SHARDCALL_PJRT_LIBRARY']
    plugin = os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', '')
    if not plugin:
        print('skipped: SHARDCALL_PJRT_CPU_PLUGIN names no plugin')
        sys.exit(77)
    try:
        import jax  # noqa: F401
    except ImportError:
        print('skipped: no jax')
        sys.exit(77)
    return Framework(library, plugin)
