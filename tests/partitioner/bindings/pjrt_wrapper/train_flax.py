#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains models of flax with optax over 8 devices, as flax's own pages do it: nothing here
knows of the plugin that JAX runs on.

    train_flax.py OUT.npz

writes each model's losses and parameters, for GSPMD's and for Shardy's annotations. A
transformer block in flax.linen, whose dropout has a key for each step, and a network in
flax.nnx. The state of training is donated.
"""
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training import train_state
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

STEPS = 4
MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ('data', 'model'))


def over(*axes):
    return NamedSharding(MESH, P(*axes))


class Block(nn.Module):
    """Attention and two dense layers, each with its norm and dropout, over an embedding."""
    width: int = 32

    @nn.compact
    def __call__(self, tokens, train):
        def split(*axes):
            return nn.with_partitioning(nn.initializers.lecun_normal(), axes)

        x = nn.Embed(64, self.width, embedding_init=split('model', None))(tokens)
        # No biases: that of the keys has a gradient of zero but for rounding, which Adam
        # makes as large as any other.
        y = nn.MultiHeadDotProductAttention(
            num_heads=4, use_bias=False, dropout_rate=0.1, deterministic=not train,
            kernel_init=split(None, 'model'))(nn.LayerNorm()(x))
        x = x + nn.Dropout(0.1, deterministic=not train)(y)
        y = nn.Dense(4 * self.width, kernel_init=split(None, 'model'))(nn.LayerNorm()(x))
        y = nn.Dense(self.width, kernel_init=split('model', None))(nn.gelu(y))
        x = x + nn.Dropout(0.1, deterministic=not train)(y)
        return nn.Dense(64, kernel_init=split(None, 'model'))(nn.LayerNorm()(x))


def train_block():
    model = Block()
    tokens = jax.device_put(np.random.default_rng(0).integers(0, 64, (8, 17)), over('data'))
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))

    def create(key):
        parameters = model.init(key, inputs, train=False)['params']
        return train_state.TrainState.create(apply_fn=model.apply, params=parameters, tx=optimizer)

    def step(state, dropout):
        def loss(parameters):
            logits = state.apply_fn({'params': parameters}, inputs, train=True,
                                    rngs={'dropout': jax.random.fold_in(dropout, state.step)})
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()

        value, gradients = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradients), value

    shardings = nn.get_sharding(jax.eval_shape(create, jax.random.key(0)), MESH)
    state = jax.jit(create, out_shardings=shardings)(jax.random.key(0))
    step = jax.jit(step, donate_argnums=0, out_shardings=(shardings, None))
    losses = []
    for _ in range(STEPS):
        given = jax.tree.leaves(state.params)
        state, value = step(state, jax.random.key(1))
        assert all(x.is_deleted() for x in given), 'the state is not donated'
        losses.append(value)
    return losses, nn.unbox(state.params)


class Network(nnx.Module):
    def __init__(self, rngs):
        def split(*axes):
            return nnx.with_partitioning(nnx.initializers.lecun_normal(), axes)

        self.enter = nnx.Linear(32, 64, kernel_init=split(None, 'model'), rngs=rngs)
        self.norm = nnx.LayerNorm(64, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.leave = nnx.Linear(64, 8, kernel_init=split('model', None), rngs=rngs)

    def __call__(self, x):
        return self.leave(self.dropout(nnx.relu(self.norm(self.enter(x)))))


def train_network():
    rng = np.random.default_rng(1)
    x = jax.device_put(rng.normal(0, 1, (32, 32)).astype(np.float32), over('data'))
    target = jax.device_put(rng.normal(0, 1, (32, 8)).astype(np.float32), over('data'))

    @nnx.jit
    def create():
        model = Network(nnx.Rngs(0, dropout=1))
        return model, nnx.Optimizer(model, optax.adamw(1e-2), wrt=nnx.Param)

    @nnx.jit(donate_argnums=(0, 1))
    def step(model, optimizer):
        value, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - target) ** 2))(model)
        optimizer.update(model, gradients)
        return value

    with jax.set_mesh(MESH):
        model, optimizer = create()
        losses = [step(model, optimizer) for _ in range(STEPS)]
    return losses, nnx.to_pure_dict(nnx.state(model, nnx.Param))


def main():
    assert jax.device_count() == 8
    kept = {}
    for form in ('gspmd', 'sdy'):
        jax.config.update('jax_use_shardy_partitioner', form == 'sdy')
        for train in (train_block, train_network):
            losses, parameters = train()
            kept[f'{form} {train.__name__} losses'] = np.array(losses)
            for path, leaf in jax.tree_util.tree_leaves_with_path(parameters):
                kept[f'{form} {train.__name__} {jax.tree_util.keystr(path)}'] = np.asarray(leaf)
    np.savez(sys.argv[1], **kept)


if __name__ == '__main__':
    main()
