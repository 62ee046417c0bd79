# SPDX-License-Identifier: Apache-2.0
"""Trains a small network over all devices: plain JAX, and one kernel.

Its normalisation is a custom call, the kernel rms_norm of shardcall. JAX's own partitioner
knows no rule for it, gathers the activations and computes it whole on every device; nothing
here says that shardcall partitions the program in its place.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

devices = np.array(jax.devices())
mesh = Mesh(devices.reshape(-1, 2), ('data', 'model'))


def place(array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


@jax.custom_vjp
def norm(x, weight):
    return norm_forward(x, weight)[0]


def norm_forward(x, weight):
    call = jax.ffi.ffi_call('rms_norm', (jax.ShapeDtypeStruct(x.shape, x.dtype),
                                         jax.ShapeDtypeStruct(x.shape[:-1], x.dtype)))
    y, scale = call(x, weight, eps=np.float32(1e-6))
    return y, (x, weight, scale)


def norm_backward(saved, gradient):
    x, weight, scale = saved
    call = jax.ffi.ffi_call('rms_norm_bwd', (jax.ShapeDtypeStruct(x.shape, x.dtype),
                                             jax.ShapeDtypeStruct(weight.shape, x.dtype)))
    return tuple(call(gradient, x, weight, scale))


norm.defvjp(norm_forward, norm_backward)


def loss(weights, x, target):
    hidden = jax.nn.relu(norm(x, weights['norm']) @ weights['in'])
    return jnp.mean((hidden @ weights['out'] - target) ** 2)


@jax.jit
def step(weights, x, target):
    value, gradients = jax.value_and_grad(loss)(weights, x, target)
    return jax.tree.map(lambda w, g: w - 0.05 * g, weights, gradients), value


rng = np.random.default_rng(0)
weights = {'norm': place(np.ones(64, np.float32)),
           'in': place(rng.normal(0, 0.1, (64, 256)).astype(np.float32), None, 'model'),
           'out': place(rng.normal(0, 0.1, (256, 8)).astype(np.float32), 'model', None)}
x = place(rng.normal(0, 1, (128, 64)).astype(np.float32), 'data', None)
target = place(rng.normal(0, 1, (128, 8)).astype(np.float32), 'data', None)
print(f'{devices.size} devices, {devices[0].client.platform_version.splitlines()[-1]}')
for k in range(5):
    weights, value = step(weights, x, target)
    print(f'step {k}: loss {float(value):.6f}')
