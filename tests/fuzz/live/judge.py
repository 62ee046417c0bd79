# SPDX-License-Identifier: Apache-2.0
"""One program live: through sj.jit with XLA's optimiser as it is, against the unpartitioned program
in our evaluator."""
import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np

import programs
import shardcall
import shardcall.jax as sj

LIMIT = 2e-4  # of the largest magnitude, for values with roundings


def _extreme_of_nan(per_device, want):
    return re.search(r' scatter\(.*(max|min)', per_device) and any(
        r.dtype.kind in 'fV' and np.isnan(r.astype(np.float64)).any() for r in want)


def _bits_of_sum(per_device, want):
    return ('bitcast-convert(' in per_device and
            re.search(r' (all-reduce|reduce-scatter)\(', per_device))


# What XLA makes of programs that are right, whoever partitioned them, and that nothing which we
# emit avoids: what says that a program has it, and the reason. It counts only where jax.jit is wrong,
# too.
KNOWN = [
    (_extreme_of_nan, 'XLA:CPU loses NaN in the maximum or minimum of a scatter with equal indices, '
     'under its own partitioner, too'),
    (_bits_of_sum, 'XLA:CPU adds the parts of an all-reduce to +0: a sum of -0, of which a program '
     'sees the bits, is +0, under its own partitioner, too'),
]


@dataclasses.dataclass
class Verdict:
    kind: str  # 'right', 'refused' (by JAX too), 'known', 'wrong', 'raised'
    text: str = ''
    blames: str = ''  # whose fault the numbers are, as far as other engines tell


class Live(programs.Placed):
    """A program with its arrays and shardings."""

    def __init__(self, program):
        super().__init__(program)
        self.arrays = [a.array(program.seed) for a in program.arguments]

    def under(self, jit):
        """The results of a jit like JAX's."""
        made = jit(lambda *args: self.f(*args), **self.options())
        return [np.asarray(r) for r in jax.block_until_ready(made(*self.arrays))]

    def eagerly(self):
        """Op by op on one device: nothing for XLA to simplify."""
        with jax.disable_jit():
            constrain, self.f.__globals__['constrain'] = self.constrain, lambda x, spec: x
            try:
                return [np.asarray(r) for r in self.f(*map(jnp.asarray, self.arrays))]
            finally:
                self.f.__globals__['constrain'] = constrain


def differs(got, want):
    """'' where they agree."""
    for k, (g, w) in enumerate(zip(got, want)):
        if g.shape != w.shape or str(g.dtype) != str(w.dtype):
            return f'result {k} is {g.dtype}{g.shape}, should be {w.dtype}{w.shape}'
        if g.dtype.kind in 'iub' and not np.array_equal(g, w):
            return f'result {k}: {np.sum(g != w)} of {g.size} whole numbers are others'
        a, b = (x.astype(np.complex128 if x.dtype.kind == 'c' else np.float64) for x in (g, w))
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return f'result {k}: other NaN'
        off = np.nan_to_num(np.abs(np.where(a == b, 0, a - b)))
        finite = np.abs(b[np.isfinite(b)])
        most = max(1., finite.max() if finite.size else 1.)
        if off.size and off.max() > LIMIT * most * {'bfloat16': 100, 'float16': 30}.get(
                str(g.dtype), 1):
            return f'result {k}: {np.sum(off > LIMIT * most)} of {g.size} are off, by {off.max():.4g}'
    return ''


def judge(program):
    live = Live(program)
    try:
        lowered = sj.jit(lambda *args: live.f(*args), **live.options()).lower(*live.arrays)
        got = [np.asarray(r) for r in jax.block_until_ready(lowered.compile()(*live.arrays))]
    except Exception as e:  # any: a user gets it
        return _raised(live, e)
    # Arguments that nothing reads are dropped by JAX.
    kept = sorted(lowered._lowering.compile_args['kept_var_idx'])
    want = shardcall.run(lowered, [live.arrays[k] for k in kept], num_partitions=1)
    why = differs(got, want)
    if not why:
        return Verdict('right')
    arrays = [live.arrays[k] for k in kept]
    blames = _blame(live, lowered, arrays, got, want)
    if 'jax.jit as sj.jit' in blames or 'jax.jit otherwise' in blames:
        text = shardcall.partition(lowered).text
        for has, reason in KNOWN:
            if has(text, want):
                return Verdict('known', reason, blames)
    return Verdict('wrong', why, blames)


def _raised(live, error):
    try:
        live.under(jax.jit)
    except Exception:
        return Verdict('refused', type(error).__name__)
    return Verdict('raised', f'{type(error).__name__}: {error}')


def _blame(live, lowered, arrays, got, want):
    said = []
    for name, make in (('eager', live.eagerly), ('jax.jit', lambda: live.under(jax.jit)),
                       ('our devices', lambda: shardcall.run(lowered, arrays))):
        try:
            results = make()
        except Exception as e:
            said.append(f'{name} raises {type(e).__name__}')
            continue
        said.append(name + (' right' if not differs(results, want) else
                            ' as sj.jit' if not differs(results, got) else ' otherwise'))
    return ', '.join(said)
