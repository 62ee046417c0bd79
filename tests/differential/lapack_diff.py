#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The LAPACK targets against those of jaxlib: each routine in its four types, on
one device and on four that share the batch. Factors are compared as they are,
eigenvectors and singular vectors up to a factor of size 1 per vector.
"""

import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax._src.lax import linalg
    from jax.sharding import NamedSharding, PartitionSpec
except ImportError as e:
    print(f'SKIPPED: {e}; pip install jax jaxlib')
    sys.exit(command.SKIPPED)

BATCH, M, N = 4, 5, 3
TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def numbers(rng, dtype, *shape):
    x = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def adjoint(x):
    return np.swapaxes(x, -1, -2).conj()


def cases(rng, t):
    """(name, function, arguments, {result: dimension along which vectors lie})."""
    tall, wide = numbers(rng, t, BATCH, M, N), numbers(rng, t, BATCH, N, M)
    square = numbers(rng, t, BATCH, M, M)
    hermitian = square + adjoint(square)
    positive = square @ adjoint(square) + M * np.eye(M, dtype=t)
    singular = square.copy()
    singular[1] = 0
    undefined = square.copy()
    undefined[2, 1, 1] = np.nan
    qr, tau = (np.asarray(x) for x in linalg.geqrf(tall))
    for label, a in (('tall', tall), ('wide', wide), ('singular', singular)):
        yield f'getrf_{label}', linalg.lu, (a,), {}
        yield f'geqrf_{label}', linalg.geqrf, (a,), {}
        if label != 'singular':
            pivots = np.zeros((BATCH, a.shape[-1]), np.int32)
            yield f'geqp3_{label}', linalg.geqp3, (a, pivots), {}
    yield 'orgqr', linalg.householder_product, (qr, tau), {}
    yield 'potrf', lambda a: linalg.cholesky(a, symmetrize_input=False), (positive,), {}
    yield 'potrf_indefinite', lambda a: linalg.cholesky(a, symmetrize_input=False), (hermitian,), {}
    for left in (True, False):
        c = numbers(rng, t, BATCH, *((M, 2) if left else (2, M)))
        for turned in (True, False):
            yield (f'ormqr_{left}_{turned}',
                   lambda a, u, c, l=left, s=turned: linalg.ormqr(a, u, c, left=l, transpose=s),
                   (qr, tau, c), {})
            for lower in (True, False):
                yield (f'trsm_{left}_{turned}_{lower}',
                       lambda a, b, l=left, s=turned, w=lower: linalg.triangular_solve(
                           a, b, left_side=l, transpose_a=s, lower=w, conjugate_a=s and w,
                           unit_diagonal=l != w), (square, c), {})
    diagonals = [numbers(rng, t, BATCH, M) for _ in range(3)]
    diagonals[1] += 4
    yield ('gtsv', lambda *a: linalg.tridiagonal_solve(*a),
           (*diagonals, numbers(rng, t, BATCH, M, 2)), {})
    for lower in (True, False):
        yield (f'syevd_{lower}', lambda a, w=lower: linalg.eigh(a, lower=w, symmetrize_input=False),
               (hermitian,), {0: -2})
        yield f'sytrd_{lower}', lambda a, w=lower: linalg.tridiagonal(a, lower=w), (hermitian,), {}
    yield 'geev', linalg.eig, (square,), {1: -2, 2: -2}
    yield ('geev_right', lambda a: linalg.eig(a, compute_left_eigenvectors=False), (square,),
           {1: -2})
    yield 'geev_nan', linalg.eig, (undefined,), {1: -2, 2: -2}
    yield 'gees', linalg.schur, (hermitian,), {1: -2}
    # The order of the eigenvalues may be any, and with it what stands above them, so
    # that only what no order changes is compared.
    yield ('gees_values',
           lambda a: [f for x in linalg.schur(a, compute_schur_vectors=False)
                      for f in (jnp.trace(x, axis1=-2, axis2=-1),
                                jnp.trace(x @ x, axis1=-2, axis2=-1),
                                jnp.trace(x @ x @ x, axis1=-2, axis2=-1),
                                jnp.sqrt((abs(x) ** 2).sum((-2, -1))),
                                jnp.tril(x, -2))], (square,), {})
    yield 'gehrd', linalg.hessenberg, (square,), {}
    for algorithm in (linalg.SvdAlgorithm.DEFAULT, linalg.SvdAlgorithm.QR):
        for label, a in (('tall', tall), ('wide', wide)):
            for full in (True, False):
                # Vectors of the null space may be any.
                free = {1: -2, 2: -1}
                yield (f'{algorithm.name}_svd_{label}_{full}',
                       lambda a, f=full, g=algorithm: [
                           x[..., :N] if k == 1 else x[..., :N, :] if k == 2 else x
                           for k, x in enumerate(linalg.svd(a, full_matrices=f, algorithm=g))],
                       (a,), free)
            yield (f'{algorithm.name}_svd_{label}_values',
                   lambda a, g=algorithm: linalg.svd(a, compute_uv=False, algorithm=g), (a,), {})


def aligned(x, axis):
    """Every vector turned such that its largest element is positive."""
    at = np.expand_dims(np.argmax(np.abs(x) > 0.7 * np.abs(x).max(axis, keepdims=True), axis), axis)
    largest = np.take_along_axis(x, at, axis)
    with np.errstate(invalid='ignore', divide='ignore'):
        return x * np.where(largest == 0, 1, np.abs(largest) / largest)


def difference(want, got, vectors):
    for k, (a, b) in enumerate(zip(want, got)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f'out{k} is {b.dtype}{b.shape} in place of {a.dtype}{a.shape}'
        if a.dtype.kind not in 'fc':
            if not np.array_equal(a, b):
                return f'out{k} differs'
            continue
        if k in vectors:
            a, b = aligned(a, vectors[k]), aligned(b, vectors[k])
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            return f'out{k}: NaN on one side only'
        a, b = np.nan_to_num(a), np.nan_to_num(b)
        limit = 1e-5 if a.dtype.itemsize // (2 if a.dtype.kind == 'c' else 1) == 4 else 1e-12
        off = np.abs(a - b).max() / max(1.0, np.abs(a).max())
        if off > limit:
            return f'out{k} is off by {off:.1e}'
    return '' if len(want) == len(got) else f'{len(got)} outputs in place of {len(want)}'


def run(text, arguments, flags, directory):
    program, inputs, outputs = (os.path.join(directory, n) for n in ('p.hlo', 'i.npz', 'o.npz'))
    with open(program, 'w', encoding='utf-8') as f:
        f.write(text)
    np.savez(inputs, **{f'arg{k}': a for k, a in enumerate(arguments)})
    result = command.run(['run', program, *flags, '--inputs=' + inputs, '--outputs=' + outputs],
                         timeout=30)
    if result.code != 0:
        return None, result.fault or result.err.strip()
    with np.load(outputs) as archive:
        count = sum(n.startswith('out') for n in archive.files)
        return [archive[f'out{k}'] for k in range(count)], ''


def collectives(text, flags):
    """What a batch of independent matrices should not need."""
    result = command.run(['partition', '-', *flags], stdin=text.encode(), timeout=30)
    found = re.findall(r' ((?:all|collective|reduce)-[a-z-]+)\(', result.out)
    return f'partitioned with {", ".join(sorted(set(found)))}' if found else result.err.strip()


def main():
    jax.config.update('jax_enable_x64', True)
    jax.config.update('jax_num_cpu_devices', BATCH)
    mesh = jax.make_mesh((BATCH,), ('batch',), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec('batch'))
    names = sys.argv[1:]
    failures = count = 0
    with tempfile.TemporaryDirectory() as directory:
        for t in TYPES:
            rng = np.random.default_rng(7)
            for name, function, arguments, vectors in cases(rng, t):
                if names and not any(part in name for part in names):
                    continue
                want = [np.asarray(x) for x in jax.tree.leaves(jax.jit(function)(*arguments))]
                whole = jax.jit(function).lower(*arguments)
                shared = jax.jit(function, in_shardings=sharding,
                                 out_shardings=sharding).lower(*arguments)
                for label, lowered, flags in (('1 device', whole, ['--num-partitions=1']),
                                              ('batch', shared, [f'--num-partitions={BATCH}'])):
                    count += 1
                    text = lowered.compiler_ir('hlo').as_hlo_text(print_large_constants=True)
                    got, error = run(text, arguments, flags, directory)
                    error = error or difference(want, got, vectors)
                    if not error and label == 'batch':
                        error = collectives(text, flags)
                    if error:
                        failures += 1
                        print(f'{name} {np.dtype(t).name}, {label}: {error}')
    print(f'{count} programs, {failures} differ')
    return 1 if failures or not count else 0


if __name__ == '__main__':
    sys.exit(main())
