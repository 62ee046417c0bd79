# SPDX-License-Identifier: Apache-2.0
"""Training steps with sharded weights (FSDP) that state no constraint: their functions, shapes, and
shardings over meshes of up to eight devices."""
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

MESHES = {'d8': ((8,), 'd'), 'a2d4': ((2, 4), 'ad'), 'd4': ((4,), 'd'), 'a4d2': ((4, 2), 'ad')}
WEIGHTS = ('rows', 'columns', 'largest')


def array(*dims, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def mlp(weights, x):
    for up, down in weights:
        x = jax.nn.gelu(x @ up) @ down
    return (x ** 2).mean()


def residual_mlp(weights, x):
    for up, down in weights:
        x = x + jax.nn.gelu(x @ up) @ down
    return (x ** 2).mean()


def norm(x, scale):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * scale


def transformer(weights, x):
    for w in weights:
        batch, length, width = x.shape
        heads = [t.reshape(batch, length, 8, width // 8).transpose(0, 2, 1, 3)
                 for t in jnp.split(norm(x, w['scale1']) @ w['qkv'], 3, -1)]
        scores = jax.nn.softmax(jnp.einsum('bhqd,bhkd->bhqk', *heads[:2]) / 8)
        mixed = jnp.einsum('bhqk,bhkd->bhqd', scores, heads[2])
        x = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ w['out']
        x = x + jax.nn.gelu(norm(x, w['scale2']) @ w['up'] + w['bias']) @ w['down']
    return (x ** 2).mean()


def convolutions(weights, x):
    for kernel in weights['kernels']:
        x = jax.nn.relu(jax.lax.conv_general_dilated(
            x, kernel, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC')))
    return ((x.mean((1, 2)) @ weights['head']) ** 2).mean()


def graph(weights, inputs):
    x, sources, targets = inputs
    for over_edges, of_node in weights:
        sums = jax.ops.segment_sum(jnp.take(x, sources, axis=0) @ over_edges, targets, x.shape[0])
        x = jax.nn.relu(x @ of_node + sums)
    return (x ** 2).mean()


BLOCK = {'scale1': array(512), 'qkv': array(512, 1536), 'out': array(512, 512),
         'scale2': array(512), 'up': array(512, 2048), 'bias': array(2048),
         'down': array(2048, 512)}
MODELS = {
    'mlp': (mlp, [(array(512, 2048), array(2048, 512))], array(16, 256, 512)),
    'residual mlp': (residual_mlp, [(array(512, 2048), array(2048, 512))] * 2, array(16, 256, 512)),
    'transformer': (transformer, [BLOCK] * 2, array(16, 128, 512)),
    'convolutions': (convolutions, {'kernels': [array(3, 3, 8, 64), array(3, 3, 64, 128)],
                                    'head': array(128, 64)}, array(16, 32, 32, 8)),
    'graph': (graph, [(array(128, 256), array(128, 256)), (array(256, 64), array(256, 64))],
              (array(2048, 128), array(8192, dtype=jnp.int32), array(8192, dtype=jnp.int32))),
}


def of_weight(how, dims):
    """Over d: the dimension that `how` names, or the largest that 8 divides."""
    even = [k for k, n in enumerate(dims) if n % 8 == 0]
    named = {'rows': len(dims) - 2, 'columns': len(dims) - 1}.get(how)
    k = named if named in even else max(even, key=lambda k: dims[k])
    return P(*['d' if j == k else None for j in range(len(dims))])


def gradients(loss):
    return lambda weights, x: jax.value_and_grad(loss)(weights, x)


def step(loss):
    def updated(weights, x):
        value, slopes = jax.value_and_grad(loss)(weights, x)
        return value, jax.tree.map(lambda w, d: w - 0.5 * d, weights, slopes)
    return updated


def shardings(model, mesh, how, kind):
    """((of the weights, of the batch), options of jit) of a model's `kind`: step's results are
    sharded as its weights are, those of gradients are free."""
    _, weights, x = MODELS[model]
    sizes, names = MESHES[mesh]
    mesh = Mesh(np.array(jax.devices()[:int(np.prod(sizes))]).reshape(sizes), tuple(names))
    of_weights = jax.tree.map(lambda w: NamedSharding(mesh, of_weight(how, w.shape)), weights)
    of_x = jax.tree.map(lambda _: NamedSharding(mesh, P(tuple(names))), x)
    options = {'out_shardings': (NamedSharding(mesh, P()), of_weights)} if kind is step else {}
    return (of_weights, of_x), options
