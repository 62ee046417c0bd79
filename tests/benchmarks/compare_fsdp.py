#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps with sharded weights that state no constraint, on eight host devices: under jax.jit
and under shardcall.jax.jit, in turns of one run.

    compare_fsdp.py --package=build/lib/python [--rounds=9] [--only=WORD] [--results=free]
                    [--search=all]

The programs are those of tests/support/fsdp_programs.py: five models, four meshes, weights by rows,
by columns and by their largest dimension. Prints for each the shortest time of a step in
milliseconds, how many times JAX's it takes, the bytes sent by both, and how far the results are
apart; at the end the geometric mean and the largest of the ratios. Exit status 77 without JAX."""
import argparse
import math
import os
import sys
import time

os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))


def timed_in_turns(functions, arguments, rounds):
    """The shortest time of each function, in milliseconds."""
    import jax
    best = [math.inf] * len(functions)
    for _ in range(rounds):
        for k, function in enumerate(functions):
            start = time.perf_counter()
            jax.block_until_ready(function(*arguments))
            best[k] = min(best[k], 1e3 * (time.perf_counter() - start))
    return best


def filled(shape, random, scale):
    """Normal numbers times `scale`, or the ends of edges between 2,048 nodes."""
    import numpy as np
    if np.issubdtype(shape.dtype, np.integer):
        return random.integers(0, 2048, shape.shape, dtype=shape.dtype)
    return (random.standard_normal(shape.shape) * scale).astype(shape.dtype)


def compared(programs, sj, name, rounds, search):
    """(ms under JAX, ms under shardcall, bytes of both, the largest relative difference)."""
    import collective_bytes
    import jax
    import numpy as np
    model, mesh, how, kind = name
    loss, weights, x = programs.MODELS[model]
    of_arguments, options = programs.shardings(model, mesh, how, kind)
    random = np.random.default_rng(1)
    arguments = tuple(
        jax.tree.map(lambda s, sharding: jax.device_put(filled(s, random, scale), sharding), *part)
        for scale, *part in zip((1 / 16, 1), (weights, x), of_arguments))
    theirs = jax.jit(kind(loss), **options)
    ours = sj.jit(kind(loss), search=search, **options)
    want, found = ([np.asarray(leaf) for leaf in jax.tree.leaves(f(*arguments))]
                   for f in (theirs, ours))
    apart = max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-30))
                for a, b in zip(want, found))
    compiled = theirs.lower(*arguments).compile().as_text()
    sent = collective_bytes.total(compiled), sj.explain(ours, *arguments).total_bytes
    return timed_in_turns((theirs, ours), arguments, rounds), sent, apart


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--package', required=True)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--only', default='', help='programs whose name contains this')
    parser.add_argument('--results', choices=('step', 'free'), default='step')
    parser.add_argument('--search', choices=('', 'none', 'small', 'all'), default='')
    options = parser.parse_args()
    sys.path.insert(0, options.package)
    try:
        import fsdp_programs as programs
        import shardcall.jax as sj
    except ImportError as e:
        print(f'SKIPPED: {e}')
        return 77
    kind = programs.step if options.results == 'step' else programs.gradients
    ratios = []
    print('program                        JAX ms  ours ms  ratio  JAX bytes  our bytes  apart')
    for name in [(model, mesh, how, kind) for model in programs.MODELS for mesh in programs.MESHES
                 for how in programs.WEIGHTS]:
        text = ' '.join(name[:3])
        if options.only not in text:
            continue
        (theirs, ours), sent, apart = compared(programs, sj, name, options.rounds,
                                                    options.search)
        ratios.append(ours / theirs)
        print(f'{text:30s} {theirs:6.1f}  {ours:7.1f}  {ours / theirs:5.2f} {sent[0]:10.0f} '
              f'{sent[1]:10.0f}  {apart:.0e}', flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f'{len(ratios)} programs: {mean:.2f} in the geometric mean, at most {max(ratios):.2f}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
