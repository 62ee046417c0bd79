#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four programs on four devices, and what JAX computes for them.

    python3 examples/programs/make_programs.py examples/programs

writes NAME.hlo, the module that JAX hands to XLA's partitioner, as
`XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_large_constants"`
dumps it, NAME.inputs.npz with arg0, arg1, .. and NAME.outputs.npz with out0, out1,
.. in the order of the entry's parameters and results. Where a program calls a kernel that JAX does not
have, its outputs come from the same mathematics in jax.numpy.

Needs jax 0.10.2.
"""

import glob
import os
import sys
import tempfile

DUMP = tempfile.mkdtemp(prefix='programs.')
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = ('--xla_force_host_platform_device_count=4 '
                           f'--xla_dump_to={DUMP} --xla_dump_hlo_as_text '
                           '--xla_dump_large_constants')

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

jax.config.update('jax_hlo_source_file_canonicalization_regex', '.*/')


def four_devices(axis):
    return jax.make_mesh((4,), (axis,), axis_types=(AxisType.Auto,))


def integers(seed, *shape):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)


def data_parallel_step():
    """One step of gradient descent: the batch is cut, the weights are on every
    device, and the gradients are summed over the devices."""
    mesh = four_devices('data')
    rate = 2.0 ** -6

    def step(w1, w2, x, y):
        def loss(w1, w2):
            return jnp.mean(jnp.square(jax.nn.relu(x @ w1) @ w2 - y))

        value, (g1, g2) = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2)
        return value, w1 - rate * g1, w2 - rate * g2

    arguments = [(integers(0, 16, 32) / 8, P()), (integers(1, 32, 8) / 8, P()),
                 (integers(2, 32, 16), P('data')), (integers(3, 32, 8), P('data'))]
    return mesh, step, arguments, step


def block(norm, attention):
    """A transformer block: the heads and the hidden features are cut over `model`."""
    def forward(x, gain1, wq, wk, wv, wo, gain2, up, down):
        h = norm(x, gain1)
        q, k, v = (jnp.einsum('bsd,dhe->bshe', h, w) for w in (wq, wk, wv))
        x = x + jnp.einsum('bshe,hed->bsd', attention(q, k, v), wo)
        h = norm(x, gain2)
        return x + jax.nn.silu(h @ up) @ down

    return forward


def tensor_parallel_block():
    """Norms and attention are custom calls; shardcall has their rules and kernels."""
    mesh = four_devices('model')
    b, s, d, heads, e, f = 2, 8, 16, 4, 8, 32

    def norm_call(x, gain):
        shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype),
                  jax.ShapeDtypeStruct(x.shape[:-1], jnp.float32))
        return jax.ffi.ffi_call('rms_norm', shapes)(x, gain, eps=np.float32(1e-5))[0]

    def attention_call(q, k, v):
        shapes = (jax.ShapeDtypeStruct(q.shape, q.dtype),
                  jax.ShapeDtypeStruct((b, heads, s), jnp.float32))
        return jax.ffi.ffi_call('flash_attention_fwd', shapes)(q, k, v, causal=True)[0]

    def norm(x, gain):
        return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain

    def attention(q, k, v):
        scores = jnp.einsum('bshe,bthe->bhst', q, k) / np.sqrt(e)
        scores = jnp.where(jnp.tril(jnp.ones((s, s), bool)), scores, -jnp.inf)
        return jnp.einsum('bhst,bthe->bshe', jax.nn.softmax(scores), v)

    arguments = [(integers(0, b, s, d), P()), (integers(1, d) / 4, P()),
                 (integers(2, d, heads, e) / 8, P(None, 'model')),
                 (integers(3, d, heads, e) / 8, P(None, 'model')),
                 (integers(4, d, heads, e) / 8, P(None, 'model')),
                 (integers(5, heads, e, d) / 8, P('model')), (integers(6, d) / 4, P()),
                 (integers(7, d, f) / 8, P(None, 'model')), (integers(8, f, d) / 8, P('model'))]
    return mesh, block(norm_call, attention_call), arguments, block(norm, attention)


def ring_attention():
    """The sequence is cut: each device keeps its queries while keys and values go
    around the ring, and adds what it sees to a running softmax."""
    mesh = four_devices('seq')
    n, s, e = 4, 32, 8

    def body(q, k, v):
        ring = [(i, (i + 1) % n) for i in range(n)]

        def turn(_, state):
            k, v, top, total, out = state
            scores = q @ k.T / np.sqrt(e).astype(np.float32)
            now = jnp.maximum(top, jnp.max(scores, -1))
            p = jnp.exp(scores - now[:, None])
            old = jnp.exp(top - now)
            total = total * old + jnp.sum(p, -1)
            out = out * old[:, None] + p @ v
            k, v = (lax.ppermute(x, 'seq', ring) for x in (k, v))
            return k, v, now, total, out

        start = (k, v, jnp.full(q.shape[0], -np.inf, np.float32),
                 jnp.zeros(q.shape[0], np.float32), jnp.zeros_like(q))
        *_, total, out = lax.fori_loop(0, n, turn, start)
        return out / total[:, None]

    ring = jax.shard_map(body, mesh=mesh, in_specs=(P('seq'),) * 3, out_specs=P('seq'),
                         check_vma=False)

    def whole(q, k, v):
        return jax.nn.softmax(q @ k.T / np.sqrt(e).astype(np.float32)) @ v

    arguments = [(integers(seed, s, e), P('seq')) for seed in range(3)]
    return mesh, ring, arguments, whole


def expert_parallel():
    """A layer of experts, one a device: tokens go to the device of their expert in
    an all-to-all, and come back in another."""
    mesh = four_devices('expert')
    n, tokens, d, f = 4, 32, 8, 16
    room = tokens // n  # of a device for each expert: nothing is dropped

    def body(x, router, up, down):
        choice = jnp.argmax(x @ router, -1)
        mine = jax.nn.one_hot(choice, n, dtype=x.dtype)
        place = (jnp.cumsum(mine, 0) - 1) * mine  # in the queue of its expert
        send = jnp.einsum('te,tec,td->ecd', mine,
                          jax.nn.one_hot(place, room, dtype=x.dtype), x)
        got = lax.all_to_all(send, 'expert', 0, 0)
        done = jax.nn.relu(got @ up[0]) @ down[0]
        back = lax.all_to_all(done, 'expert', 0, 0)
        return jnp.einsum('te,tec,ecd->td', mine, jax.nn.one_hot(place, room, dtype=x.dtype), back)

    layer = jax.shard_map(body, mesh=mesh, in_specs=(P('expert'), P(), P('expert'), P('expert')),
                          out_specs=P('expert'), check_vma=False)

    def whole(x, router, up, down):
        mine = jax.nn.one_hot(jnp.argmax(x @ router, -1), n, dtype=x.dtype)
        every = jnp.einsum('tef,efd->ted', jax.nn.relu(jnp.einsum('td,edf->tef', x, up)), down)
        return jnp.einsum('te,ted->td', mine, every)

    arguments = [(integers(0, tokens, d), P('expert')), (integers(1, d, n), P()),
                 (integers(2, n, d, f), P('expert')), (integers(3, n, f, d), P('expert'))]
    return mesh, layer, arguments, whole


def write(out, program):
    mesh, function, arguments, reference = program()
    arrays = [a for a, _ in arguments]
    wants = jax.tree.leaves(reference(*arrays))

    def named(*args):
        return function(*args)

    named.__name__ = program.__name__
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=NamedSharding(mesh, spec))
              for a, spec in arguments]
    lowered = jax.jit(named).lower(*shapes)
    try:
        lowered.compile()
    except Exception as error:  # pylint: disable=broad-except
        # The program stands in the dump; only XLA has no kernel for its calls.
        if 'registered' not in str(error):
            raise
    dump, = glob.glob(os.path.join(DUMP, f'*.jit_{program.__name__}.before_optimizations.txt'))
    with open(dump, encoding='utf-8') as f:
        text = f.read()
    with open(os.path.join(out, program.__name__ + '.hlo'), 'w', encoding='utf-8') as f:
        f.write(text)
    np.savez(os.path.join(out, program.__name__ + '.inputs.npz'),
             **{f'arg{k}': a for k, a in enumerate(arrays)})
    np.savez(os.path.join(out, program.__name__ + '.outputs.npz'),
             **{f'out{k}': np.asarray(w) for k, w in enumerate(wants)})
    print(f'{program.__name__}: {len(text)} bytes, {len(wants)} results')


def main():
    for program in (data_parallel_step, tensor_parallel_block, ring_attention, expert_parallel):
        write(sys.argv[1], program)


if __name__ == '__main__':
    main()
