# SPDX-License-Identifier: Apache-2.0
"""Programs to time the evaluator with: (name, kind, function, arguments).

Kind "products" is where matrix products or convolutions dominate, "elementwise"
where elementwise work, reductions or data movement do.
"""
import functools

import jax
import jax.numpy as jnp
from jax import lax

F32, BF16 = jnp.float32, jnp.bfloat16


def arg(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def rms_norm(x, gain):
    y = x.astype(F32)
    return (y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5)).astype(x.dtype) * gain


def rope(x):
    s, e = x.shape[1], x.shape[3]
    angle = jnp.arange(s)[:, None] * 500000.0 ** (-jnp.arange(0, e, 2) / e)
    cos, sin = (f(angle)[None, :, None].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attention(q, k, v):
    b, s, h, e = q.shape
    q = q.reshape(b, s, k.shape[2], h // k.shape[2], e)
    scores = jnp.einsum('bsgre,btge->bgrst', q, k, preferred_element_type=F32) * e**-0.5
    scores = jnp.where(jnp.arange(s)[:, None] >= jnp.arange(s), scores, -1e30)
    out = jnp.einsum('bgrst,btge->bsgre', jax.nn.softmax(scores, -1).astype(q.dtype), v)
    return out.reshape(b, s, h, e)


def llama_block(x, w):
    h = rms_norm(x, w['attn_norm'])
    q, k, v = (jnp.einsum('bsd,dhe->bshe', h, w[n]) for n in ('wq', 'wk', 'wv'))
    x = x + jnp.einsum('bshe,hed->bsd', attention(rope(q), rope(k), v), w['wo'])
    h = rms_norm(x, w['ffn_norm'])
    return x + (jax.nn.silu(h @ w['gate']) * (h @ w['up'])) @ w['down']


def llama_arguments(dtype=F32, batch=2, seq=512, d=512, heads=8, kv=2, head=64, ffn=1792):
    a = functools.partial(arg, dtype=dtype)
    return a(batch, seq, d), dict(
        attn_norm=a(d), ffn_norm=a(d), wq=a(d, heads, head), wk=a(d, kv, head), wv=a(d, kv, head),
        wo=a(heads, head, d), gate=a(d, ffn), up=a(d, ffn), down=a(ffn, d))


def llama_train(x, w):
    loss = lambda w, x: jnp.sum(llama_block(x, w).astype(F32))
    grads, dx = jax.grad(loss, argnums=(0, 1))(w, x)
    return jax.tree.map(lambda p, g: p - 0.01 * g, w, grads), dx


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))


def batch_norm(x, scale, shift):
    mean = jnp.mean(x, (0, 1, 2))
    var = jnp.mean(x * x, (0, 1, 2)) - mean * mean
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift


def resnet(p, x):
    x = jax.nn.relu(batch_norm(conv(x, p['stem'], 2), *p['n0']))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME')
    h = jax.nn.relu(batch_norm(conv(x, p['a']), *p['n1']))
    h = batch_norm(conv(h, p['b'], 2), *p['n2'])
    x = jax.nn.relu(h + conv(x, p['skip'], 2))
    return jnp.mean(x, (1, 2)) @ p['head']


def resnet_arguments(batch=4, size=224, c=64, classes=1000):
    n = lambda c: (arg(c), arg(c))
    return dict(stem=arg(7, 7, 3, c), a=arg(3, 3, c, c), b=arg(3, 3, c, 2 * c), skip=arg(1, 1, c, 2 * c),
                head=arg(2 * c, classes), n0=n(c), n1=n(c), n2=n(2 * c)), arg(batch, size, size, 3)


def resnet_train(p, x, y):
    def loss(p):
        z = jax.nn.log_softmax(resnet(p, x))
        return -jnp.mean(jnp.take_along_axis(z, y[:, None], 1))

    value, grads = jax.value_and_grad(loss)(p)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, p, grads)


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.mean(lax.square(x - mean), -1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift


def adam(p, g, m, v, step):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    t = step.astype(F32)
    return p - 1e-3 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), m, v


def programs():
    big, rows = arg(1024, 2048), arg(1024)
    cols = arg(2048)
    p, x = resnet_arguments()
    return [
        ('matmul_1024', 'products', lambda a, b: a @ b, (arg(1024, 1024), arg(1024, 1024))),
        ('matmul_bf16_1024', 'products', lambda a, b: a @ b,
         (arg(1024, 1024, dtype=BF16), arg(1024, 1024, dtype=BF16))),
        ('attention_scores', 'products', lambda q, k: jnp.einsum('bshe,bthe->bhst', q, k),
         (arg(2, 512, 8, 64), arg(2, 512, 8, 64))),
        ('llama_block', 'products', llama_block, llama_arguments()),
        ('llama_block_train', 'products', llama_train, llama_arguments()),
        ('llama_block_bf16', 'products', llama_block, llama_arguments(BF16)),
        ('conv3x3_64', 'products', conv, (arg(4, 56, 56, 64), arg(3, 3, 64, 64))),
        ('resnet_block', 'products', resnet, (p, x)),
        ('resnet_block_train', 'products', resnet_train, (p, x, arg(x.shape[0], dtype=jnp.int32))),
        ('softmax', 'elementwise', lambda x: jax.nn.softmax(x, -1), (big,)),
        ('softmax_columns', 'elementwise', lambda x: jax.nn.softmax(x, 0), (big,)),
        ('layer_norm', 'elementwise', layer_norm, (big, cols, cols)),
        ('layer_norm_bf16', 'elementwise', layer_norm,
         (arg(1024, 2048, dtype=BF16), arg(2048, dtype=BF16), arg(2048, dtype=BF16))),
        ('adam', 'elementwise', adam, (big, big, big, big, arg(dtype=jnp.int32))),
        ('gelu', 'elementwise', lambda x: jax.nn.gelu(x), (big,)),
        ('gelu_exact', 'elementwise', lambda x: jax.nn.gelu(x, approximate=False), (big,)),
        ('silu', 'elementwise', lambda x: jax.nn.silu(x), (big,)),
        ('sum_rows', 'elementwise', lambda x: jnp.sum(x, 1), (big,)),
        ('sum_columns', 'elementwise', lambda x: jnp.sum(x, 0), (big,)),
        ('max_rows', 'elementwise', lambda x: jnp.max(x, 1), (big,)),
        ('max_columns', 'elementwise', lambda x: jnp.max(x, 0), (big,)),
        ('broadcast_rows', 'elementwise', lambda x, y: x + y, (big, cols)),
        ('broadcast_columns', 'elementwise', lambda x, y: x + y[:, None], (big, rows)),
        ('transpose', 'elementwise', lambda x: x.T, (big,)),
        ('transpose_heads', 'elementwise', lambda x: jnp.transpose(x, (0, 2, 1, 3)), (arg(4, 512, 16, 64),)),
        ('compare_select', 'elementwise', lambda x, y: jnp.where(x > y, x * 2, y - 1), (big, big)),
        ('batch_norm', 'elementwise', batch_norm, (arg(4, 112, 112, 64), arg(64), arg(64))),
        ('cumsum_rows', 'elementwise', lambda x: jnp.cumsum(x, 1), (big,)),
        ('cumsum_columns', 'elementwise', lambda x: jnp.cumsum(x, 0), (big,)),
        ('sort_rows', 'elementwise', lambda x: jnp.sort(x, 1), (big,)),
        ('argsort_rows', 'elementwise', lambda x: jnp.argsort(x, 1), (big,)),
        ('top_k', 'elementwise', lambda x: lax.top_k(x, 8), (big,)),
        ('gather_rows', 'elementwise', lambda x, i: x[i], (big, arg(4096, dtype=jnp.int32))),
        ('scatter_add_rows', 'elementwise', lambda x, i, u: x.at[i].add(u),
         (big, arg(1024, dtype=jnp.int32), big)),
        ('integers', 'elementwise', lambda x, y: (x ^ y) * 3 + (x >> 3),
         (arg(1024, 2048, dtype=jnp.uint32), arg(1024, 2048, dtype=jnp.uint32))),
    ]
