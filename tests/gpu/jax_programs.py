# SPDX-License-Identifier: Apache-2.0
"""Programs for under_jax.py: functions, their arguments and shardings, over a mesh of all
devices, (x, y)."""
import ctypes
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE = 2 if jax.device_count() > 1 else 1
MESH = jax.make_mesh((jax.device_count() // WIDE, WIDE), ('x', 'y'),
                     axis_types=(AxisType.Auto,) * 2)
XY = ('x', 'y')
REPORTS = os.environ.get('SHARDCALL_REPORT', '')  # of what the wrapper partitions


@dataclasses.dataclass
class Program:
    name: str
    function: Callable[..., Any]
    arguments: list[np.ndarray]
    specs: list[P]
    out: Any = None          # a spec for each result, or None: whatever is chosen
    limit: float = 0         # of the relative difference; 0: bitwise
    wanted: Any = None       # the results, where JAX on one device does not tell them
    rules: dict = dataclasses.field(default_factory=dict)
    targets: tuple = ()      # for sj.install


def whole(*dims, dtype=np.float32, low=-3, high=4):
    """Small integers, the same in every process."""
    seed = int(np.prod(dims)) + 7 * len(dims)
    return np.random.default_rng(seed).integers(low, high, dims).astype(dtype)


def normal(*dims, dtype=np.float32):
    return np.random.default_rng(int(np.prod(dims))).standard_normal(dims).astype(dtype)


def call(target, x, *more, shape=None, **attributes):
    like = jax.ShapeDtypeStruct(shape or x.shape, x.dtype)
    return jax.ffi.ffi_call(target, like)(x, *more, **attributes)


def convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), 'SAME',
                                        dimension_numbers=('NHWC', 'HWIO', 'NHWC'))


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), 'SAME')


def loop(x, w):
    def step(h, layer):
        h = jnp.maximum(h @ layer, 0) % 5
        return h, h.sum(1)
    return jax.lax.scan(step, x, w)


def heat(x):
    return jax.lax.fori_loop(
        0, 6, lambda _, u: (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - u) % 8, x)


def train(x, w1, w2):
    def loss(w1, w2):
        return ((jnp.maximum(x @ w1, 0) @ w2) ** 2).mean()
    return jax.value_and_grad(loss, argnums=(0, 1))(w1, w2)


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def transformer(x, wq, wo, w1, w2):
    def loss(wq, wo, w1, w2):
        b, s, d = x.shape
        h = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        q, k, v = jnp.split((h @ wq).reshape(b, s, 4, 3 * d // 4), 3, axis=-1)
        h = x + attention(q, k, v).reshape(b, s, d) @ wo
        return ((h + jax.nn.gelu(h @ w1) @ w2) ** 2).mean()
    return jax.value_and_grad(loss, argnums=(0, 1, 2, 3))(wq, wo, w1, w2)


def exact():
    """Programs whose results are exact."""
    x, w = whole(24, 16), whole(16, 12)
    odd = whole(10, 6)
    ids = whole(32, dtype=np.int32, low=0, high=40)
    yield Program('all_reduce', lambda a, b: a @ b, [x, w], [P(None, XY), P(XY)], P())
    yield Program('reduce_scatter', lambda a, b: a @ b, [x, w], [P(None, XY), P(XY)], P(XY))
    yield Program('dot_2d', lambda a, b: a @ b, [x, w], [P('x', 'y'), P('y', 'x')], P('x'))
    yield Program('all_gather', lambda a: a + 1, [x], [P(XY)], P())
    yield Program('all_to_all', lambda a: a * 2, [x], [P(XY)], P(None, XY))
    yield Program('permute', lambda a: a * 2, [x], [P(XY)], P(('y', 'x')))
    yield Program('roll', lambda a: jnp.roll(a, 3, 0), [x], [P(XY)], P(XY))
    yield Program('flip', lambda a: a[::-1], [x], [P(XY)], P(XY))
    yield Program('uneven_reverse_sum', lambda a: (a[::-1] * a).sum(0), [odd], [P()], P())
    yield Program('uneven_inside', lambda a: jax.lax.with_sharding_constraint(
        a[:21] * 2, NamedSharding(MESH, P(XY))).sum(0), [x], [P(XY)], P())
    yield Program('reshape', lambda a: a.reshape(3, 8, 16).sum(1), [x], [P(XY)], P())
    yield Program('transpose', lambda a: a.T @ a, [x], [P('x', 'y')], P('y', 'x'))
    yield Program('concatenate', lambda a, b: jnp.concatenate([a, b[:5]]), [x, x],
                  [P(XY), P(XY)])
    yield Program('slice', lambda a: a[5:17:2], [x], [P(XY)])
    yield Program('pad', lambda a: jnp.pad(a, ((3, 1), (0, 0))), [x], [P(XY)], P(XY))
    yield Program('update', lambda a, b, i: jax.lax.dynamic_update_slice(a, b, (i, 0)),
                  [x, whole(4, 16), np.int32(9)], [P(XY), P(), P()], P(XY))
    yield Program('dynamic_slice', lambda a, i: jax.lax.dynamic_slice(a, (i, 0), (5, 16)),
                  [x, np.int32(7)], [P(XY), P()])
    yield Program('convolution', convolution, [whole(2, 16, 12, 3), whole(3, 3, 3, 4)],
                  [P(None, 'x', 'y'), P()], P(None, 'x', 'y'))
    yield Program('convolution_gradient', lambda a, b: jax.grad(
        lambda b: (convolution(a, b) ** 2).sum())(b),
        [whole(2, 16, 12, 3, low=-1, high=2), whole(3, 3, 3, 4, low=-1, high=2)],
        [P(None, 'x', 'y'), P()], P())
    yield Program('reduce_window', pool, [whole(2, 16, 12, 3)], [P(None, 'x', 'y')])
    yield Program('select_and_scatter', jax.grad(lambda a: (pool(a) ** 2).sum()),
                  [whole(2, 16, 12, 3, low=-99, high=99)], [P(None, 'x', 'y')],
                  P(None, 'x', 'y'))
    yield Program('cumsum', lambda a: jnp.cumsum(a, 0), [x], [P(XY)], P(XY))
    yield Program('associative_scan', lambda a: jax.lax.associative_scan(jnp.maximum, a), [x],
                  [P(XY)], P(XY))
    yield Program('sort', lambda a: jnp.sort(a, 0), [x], [P(XY)], P(XY))
    yield Program('argsort', lambda a: jnp.argsort(a, 0), [x], [P('x', 'y')], P('x'))
    yield Program('top_k', lambda a: jax.lax.top_k(a, 3), [x.T], [P(None, XY)], P())
    yield Program('argmax', lambda a: (jnp.argmax(a, 0), a.max(0)), [x], [P(XY)], P())
    yield Program('gather', lambda t, i: t[i], [whole(40, 8), ids], [P(XY), P()], P())
    yield Program('gather_batch', lambda t, i: t[i], [whole(40, 8), ids], [P('x'), P('y')], P('y'))
    yield Program('scatter', lambda t, i: t.at[i].add(2), [whole(40, 8), ids], [P(XY), P()], P(XY))
    yield Program('segment_sum', lambda v, i: jax.ops.segment_sum(v, i, 40),
                  [whole(32, 8), ids], [P(XY), P(XY)], P())
    yield Program('integers', lambda a: (a.sum(0), a.max(0), a.min(0), (a % 2 == 0).all(0)),
                  [whole(24, 16, dtype=np.int32)], [P(XY)], P())
    yield Program('bytes', lambda a: (a + 1, a.sum(0, dtype=jnp.int32)),
                  [whole(24, 16, dtype=np.int8)], [P(XY)], P())
    yield Program('halves', lambda a, b: a @ b, [x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)],
                  [P(None, XY), P(XY)], P())
    yield Program('float16', lambda a: a.sum(0), [x.astype(np.float16)], [P(XY)], P())
    yield Program('complex', lambda a: (a * 1j).sum(0), [x.astype(np.complex64)], [P(XY)], P())
    yield Program('predicates', lambda a: (a > 0, (a > 0).any(0)), [x], [P(XY)], P())
    yield Program('loop', loop, [whole(8, 12), whole(6, 12, 12)], [P('x'), P(None, 'y')])
    yield Program('heat', heat, [whole(32, 4)], [P(XY)], P(XY))
    yield Program('conditional', lambda a, i: jax.lax.cond(
        i > 2, lambda a: a.sum(0), lambda a: a.max(0), a), [x, np.int32(5)], [P(XY), P()], P())
    if MESH.shape['x'] == 2:
        yield Program('manual', lambda a: jax.shard_map(
            lambda a: jax.lax.psum(jax.lax.ppermute(a, 'x', [(0, 1), (1, 0)]), 'y'), mesh=MESH,
            in_specs=P('x', 'y'), out_specs=P('x'))(a), [x], [P('x', 'y')], P(),
            wanted=np.roll(x, 12, 0).reshape(24, WIDE, 16 // WIDE).sum(1))
    yield Program('random', lambda a: a + jax.random.randint(jax.random.key(3), a.shape, 0, 9), [x],
                  [P(XY)], P(XY))


def rounded():
    """Programs whose results are rounded."""
    yield Program('train', train, [normal(32, 16), normal(16, 24), normal(24, 8)],
                  [P(XY), P(XY), P(XY)], limit=1e-2)
    yield Program('transformer', transformer,
                  [normal(8, 16, 32), normal(32, 96), normal(32, 32), normal(32, 64),
                   normal(64, 32)],
                  [P('x'), P('x', 'y'), P('y', 'x'), P('x', 'y'), P('y', 'x')], limit=2e-2)
    yield Program('softmax', lambda a: jax.nn.softmax(a), [normal(16, 32)], [P('x', 'y')],
                  P('x', 'y'), limit=1e-5)
    yield Program('fft', lambda a: jnp.fft.fft2(a).real, [normal(4, 16, 8)], [P(None, XY)],
                  limit=1e-4)
    spd = normal(8, 6, 6)
    spd = spd @ spd.transpose(0, 2, 1) + 6 * np.eye(6, dtype=np.float32)
    for name, function in (
            ('cholesky', jnp.linalg.cholesky), ('eigh', lambda a: jnp.linalg.eigh(a)[0]),
            ('qr', lambda a: jnp.abs(jnp.linalg.qr(a)[1])),
            ('svd', lambda a: jnp.linalg.svd(a, compute_uv=False)),
            ('solve', lambda a: jnp.linalg.solve(a, a[:, :, :2])),
            ('triangular', lambda a: jax.scipy.linalg.solve_triangular(a, a[:, :, :2]))):
        yield Program(f'solver_{name}', function, [spd], [P(XY)], limit=2e-3)
    batch = normal(8, 64, 4, 64, dtype=np.float32).astype(jnp.bfloat16)
    yield Program('cudnn_attention', lambda q, k, v: jax.nn.dot_product_attention(
        q, k, v, is_causal=True, implementation='cudnn'), [batch] * 3, [P('x', None, 'y')] * 3,
        P('x', None, 'y'), limit=5e-2)


def kernels():
    """Calls of kernels that are shipped, which sj.jit and the wrapper register."""
    x, w, gain = whole(24, 16), whole(16, 12), whole(16)
    yield Program('custom_relu', lambda a: call('custom_relu', a), [x], [P('x', 'y')],
                  wanted=np.maximum(x, 0))
    yield Program('rms_norm', lambda a, g: call('rms_norm', a, g), [x, gain], [P('x', 'y'), P('y')],
                  wanted=x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gain, limit=1e-5)
    yield Program('gemm', lambda a, b: call('gemm', a, b, shape=(24, 12)), [x, w],
                  [P('x', 'y'), P('y')], P('x'), wanted=x @ w)
    values, columns = whole(24), whole(24, dtype=np.int32, low=0, high=9)
    offsets, dense = 2 * np.arange(13, dtype=np.int32), whole(9, 12)
    sparse = np.zeros((12, 9), np.float32)
    np.add.at(sparse, (np.arange(24) // 2, columns), values)
    yield Program('sparse_matmul', lambda v, c, o, d: call('sparse_matmul', v, c, o, d,
                                                           shape=(12, 12)),
                  [values, columns, offsets, dense], [P(), P(), P(), P(None, XY)],
                  wanted=sparse @ dense)
    # Many calls on a stream that nobody waits for between them.
    square, small = whole(16, 16), whole(64, 16)
    turned = small
    for _ in range(20):
        turned = np.maximum(turned @ square % 5, 0)
    yield Program('gemm_loop', lambda a, b: jax.lax.fori_loop(
        0, 20, lambda _, a: call('custom_relu', call('gemm', a, b) % 5), a), [small, square],
        [P(XY), P()], P(XY), wanted=turned)


def row_softmax(platform):
    """A call of the kernel of examples/cuda_plugin."""
    library = ctypes.CDLL(os.path.join(HERE, 'librow_softmax.so'))
    kernel = library.row_softmax_cuda if platform == 'cuda' else library.row_softmax_host
    jax.ffi.register_ffi_target('row_softmax', jax.ffi.pycapsule(kernel),
                                platform='CUDA' if platform == 'cuda' else platform)
    x = normal(24, 16)
    if jax.device_count() == 1:  # the kernel's rule, tested on the device
        import shardcall.jax as sj
        relu = sj.target('row_softmax', {platform: kernel}, rule='r c -> r c',
                         need_replication=['c'])
        verdict = sj.check(relu, x, scale=np.float32(0.5))
        assert verdict, verdict
    exponentials = np.exp(x * 0.5)
    return Program('row_softmax', lambda a: call('row_softmax', a, scale=np.float32(0.5)), [x],
                   [P('x', 'y')], P('x'), limit=1e-5, targets=('row_softmax',),
                   wanted=exponentials / exponentials.sum(1, keepdims=True),
                   rules={'row_softmax': {'rule': 'r c -> r c', 'need_replication': ['c']}})


def programs(platform, how):
    if how == 'time':
        yield from timed()
        return
    if how != 'install':
        yield from (p for p in [*exact(), *rounded()] if platform == 'cuda' or 'cudnn' not in p.name)
    if how in ('jit', 'wrapper') and jax.device_count() > 1:
        yield from kernels()
    if how in ('jit', 'install'):
        yield row_softmax(platform)


def timed():
    """Programs of a size that shows what is sent."""
    rows = P(XY)
    yield Program('fsdp_mlp', train, [normal(512, 512), normal(512, 2048), normal(2048, 512)],
                  [rows, rows, rows])
    yield Program('fsdp_transformer', transformer,
                  [normal(8, 256, 256), normal(256, 768), normal(256, 256), normal(256, 1024),
                   normal(1024, 256)], [rows] * 5)
    yield Program('tensor_parallel', transformer,
                  [normal(8, 256, 256), normal(256, 768), normal(256, 256), normal(256, 1024),
                   normal(1024, 256)], [P('x'), P(None, 'y'), P('y'), P(None, 'y'), P('y')])
    yield Program('heat', heat, [whole(4096, 256)], [rows], rows)
    yield Program('convolution', convolution, [normal(4, 256, 256, 8), normal(3, 3, 8, 8)],
                  [P(None, 'x', 'y'), P()], P(None, 'x', 'y'))
    yield Program('sort', lambda a: jnp.sort(a, 0), [normal(65536, 8)], [rows], rows)
    yield Program('argmax', lambda a: jnp.argmax(a, 1), [normal(256, 32768)], [P(None, XY)], P())
    yield Program('segment_sum', lambda v, i: jax.ops.segment_sum(v, i, 4096),
                  [normal(16384, 64), whole(16384, dtype=np.int32, low=0, high=4096)],
                  [rows, rows], rows)


def time_of(program):
    """The text of the medians of steps, in ms: by sj.jit, and by jax.jit."""
    arguments = [placed(x, spec) for x, spec in zip(program.arguments, program.specs)]
    compiled = [jitted(program, how) for how in ('jit', 'jax')]
    took = [[], []]
    for step in range(12):
        for k, function in enumerate(compiled):
            begun = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            if step > 1:
                took[k].append(time.perf_counter() - begun)
    ours, theirs = (1e3 * sorted(t)[len(t) // 2] for t in took)
    return f'ours {ours:.2f} ms, JAX {theirs:.2f} ms, {theirs / ours:.2f}x ok'


def placed(x, spec):
    sharding = NamedSharding(MESH, spec)
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])


def differs(got, wanted, limit):
    """'' or where an array differs from the whole one."""
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f'is {got.dtype}{got.shape} and not {wanted.dtype}{wanted.shape}'
    for shard in got.addressable_shards:
        part, right = np.asarray(shard.data), wanted[shard.index]
        if limit == 0:
            if part.tobytes() != right.tobytes():
                at = np.argwhere(part != right)
                return f'differs in {len(at)} of {part.size}, first {at[:1].tolist()}'
        else:
            size = np.abs(wanted.astype(np.complex128)).max() + 1e-30
            off = np.abs(part.astype(np.complex128) - right.astype(np.complex128)).max() / size
            if not off <= limit:
                return f'differs by {off:.2g} of the largest'
    return ''


def jitted(program, how):
    """The function as it is compiled."""
    out = {} if program.out is None else {'out_shardings': NamedSharding(MESH, program.out)}
    if how == 'jit':
        import shardcall.jax as sj
        return sj.jit(program.function, strict=True, rules=program.rules, **out)
    if how == 'install' and program.targets:
        import shardcall.jax as sj
        sj.install(*program.targets, rules=program.rules)
    return jax.jit(program.function, **out)


def check(program, how):
    """'' or what is wrong."""
    arguments = [placed(x, spec) for x, spec in zip(program.arguments, program.specs)]
    reports = len(os.listdir(REPORTS)) if how == 'wrapper' else 0
    results = jitted(program, how)(*arguments)
    if how == 'wrapper' and MESH.size > 1 and len(os.listdir(REPORTS)) == reports:
        return 'was not partitioned by us'
    wanted = program.wanted
    if wanted is None:
        wanted = jax.jit(program.function)(*map(jnp.asarray, program.arguments))
    for k, pair in enumerate(zip(jax.tree.leaves(results), jax.tree.leaves(wanted), strict=True)):
        told = differs(pair[0], np.asarray(pair[1]), program.limit)
        if told:
            return f'result {k} {told}'
    return ''


def outcome(program, how):
    """Ends in "ok" where nothing is wrong."""
    return time_of(program) if how == 'time' else check(program, how) or 'ok'
