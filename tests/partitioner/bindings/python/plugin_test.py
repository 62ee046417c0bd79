#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shardcall.jax on a backend behind PJRT's C interface, as JAX's for GPUs are: XLA:CPU's
plugin, eight devices. Exit status 77 without JAX, or without SHARDCALL_PJRT_CPU_PLUGIN."""
import json
import os
import sys
import tempfile
import unittest

PLUGIN = os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', '')
if not PLUGIN:
    print('SKIPPED: SHARDCALL_PJRT_CPU_PLUGIN names no plugin')
    sys.exit(77)
FOLDER = tempfile.TemporaryDirectory()
with open(os.path.join(FOLDER.name, 'plugin.json'), 'w', encoding='utf-8') as settings:
    json.dump({'library_path': os.path.abspath(PLUGIN),
               'create_options': {'cpu_device_count': 8}}, settings)
os.environ.update({'PJRT_NAMES_AND_LIBRARY_PATHS': f'xla_cpu_plugin:{settings.name}',
                   'JAX_PLATFORMS': 'xla_cpu_plugin', 'NPROC': '16'})
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    import shardcall.jax as sj
    from shardcall.jax import compiling
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

MESH = jax.make_mesh((4, 2), ('data', 'model'), axis_types=(AxisType.Auto,) * 2)


def placed(dims, *spec):
    x = (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)
    return jax.device_put(x, NamedSharding(MESH, P(*spec)))


class PluginTest(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(compiling._c_api(jax.devices()[0].client))
        self.x, self.w = placed((8, 16), 'data', 'model'), placed((16, 12), 'model')

    def test_results_are_those_of_jax_and_are_sharded_as_chosen(self):
        def f(x, w):
            return x @ w, (x @ w).sum(0)

        product, sums = sj.jit(f, strict=True)(self.x, self.w)
        expected = np.asarray(self.x) @ np.asarray(self.w)
        np.testing.assert_array_equal(product, expected)
        np.testing.assert_array_equal(sums, expected.sum(0))
        self.assertEqual(tuple(product.sharding.spec)[:1], ('data',))
        self.assertEqual(product.addressable_shards[0].data.shape, (2, 12))

    def test_kernels_are_registered_with_the_plugin(self):
        def f(x):
            relu = jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))
            return relu(x) + 1

        out = sj.jit(f, strict=True)(self.x)
        np.testing.assert_array_equal(out, np.maximum(np.asarray(self.x), 0) + 1)
        self.assertEqual(out.sharding.spec, P('data', 'model'))

    def test_what_is_installed_leaves_sj_jit_alone(self):
        def f(x):
            return jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        expected = np.maximum(np.asarray(self.x), 0)
        sj.jit(f, strict=True)(self.x)  # registers the kernel
        sj.install('custom_relu')
        self.addCleanup(sj.uninstall)
        jax.clear_caches()
        plain = jax.jit(f).lower(self.x).compile()
        np.testing.assert_array_equal(plain(self.x), expected)
        np.testing.assert_array_equal(sj.jit(f, strict=True)(self.x), expected)

    def test_donated_arrays_are_given_up(self):
        step = sj.jit(lambda p, g: p - g, donate_argnums=0, strict=True)
        given = self.x + 1
        np.testing.assert_array_equal(step(given, self.x), np.ones((8, 16), np.float32))
        self.assertTrue(given.is_deleted())

    def test_loops_and_gradients(self):
        def loss(w, x):
            y, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)
            return (y * y).sum()

        w = placed((16, 16), None, 'model') / 8
        ours = sj.jit(jax.grad(loss), strict=True)(w, self.x)
        np.testing.assert_allclose(ours, jax.jit(jax.grad(loss))(w, self.x), rtol=1e-5, atol=1e-5)


if __name__ == '__main__':
    unittest.main()
