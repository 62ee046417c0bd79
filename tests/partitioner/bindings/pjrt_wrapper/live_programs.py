#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's programs live, unmodified, under the plugin that wraps XLA:CPU's; with JAX's
numbers, and partitioned by us.

    live_programs.py --library=libshardcall_pjrt.so --plugin=xla_cpu_pjrt.so [--only=REGEX]
                     [--forms=sdy,gspmd]

Runs the programs whose source lies beside the full corpus (SHARDCALL_CORPUS/../hlo_programs)
and that have numbers. Exit status 77 without jax, the plugin or the sources.
"""
import argparse
import contextlib
import glob
import os
import re
import shutil
import sys
import tempfile
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../../support'))
import framework  # noqa: E402
import numerics  # noqa: E402

LIMIT = 4e-6


def flat(jax, results):
    import numpy as np
    arrays = []
    for x in jax.tree.leaves(results):
        x = np.asarray(x)
        narrow = x.dtype.name == 'bfloat16'
        arrays.append((x.astype(np.float32) if narrow else x, 'bf16' if narrow else ''))
    return arrays


def run(jax, base, program, form, corpus, reports, jit=None):
    """'' or what is wrong. `jit`: in place of jax.jit."""
    import numpy as np
    stem = os.path.join(corpus, program.name)
    with np.load(f'{stem}.inputs.npz') as stored:
        leaves = [stored[f'arg{i}'] for i in range(len(stored.files))]
    expected = numerics.read(f'{stem}.outputs.npz')
    config = {'jax_use_shardy_partitioner': form != 'gspmd', **program.config}
    before = {key: getattr(jax.config, key) for key in config}
    for key, value in config.items():
        jax.config.update(key, value)
    try:
        grid = base.Grid(program.axes, program.explicit)
        fn, args, *options = program.build(grid)
        jitted = (jit or jax.jit)(fn, keep_unused=True, **(options[0] if options else {}))
        shapes, tree = jax.tree.flatten(args)
        placed = [jax.device_put(x.astype(s.dtype), s.sharding) for x, s in zip(leaves, shapes)]
        count = len(glob.glob(os.path.join(reports, '*.json')))
        with jax.set_mesh(grid.mesh) if program.explicit else contextlib.nullcontext():
            results = flat(jax, jitted(*jax.tree.unflatten(tree, placed)))
        if len(glob.glob(os.path.join(reports, '*.json'))) == count and grid.mesh.size > 1:
            return 'was not partitioned by us'
    finally:
        for key, value in before.items():
            jax.config.update(key, value)
    with open(f'{stem}.{form}.hlo', encoding='utf-8') as f:
        limit = max(LIMIT, numerics.limit_of(f.read()))
    return numerics.difference(expected, results, False, limit)


def run_all(jax, base, options, corpus, reports, jit=None):
    """How many programs ran, and how many of them are wrong. `options`: only, forms, every."""
    ran, failed = 0, 0
    todo = [(p, form) for p in base.PROGRAMS.values() for form in p.forms
            if form in options.forms.split(',') and not p.platform
            and os.path.exists(os.path.join(corpus, f'{p.name}.outputs.npz'))
            and re.search(options.only, f'{p.name}.{form}')]
    for program, form in todo[::options.every]:
        try:
            wrong = run(jax, base, program, form, corpus, reports, jit)
        except Exception as error:  # what JAX or the plugin raises is the finding
            wrong = f'{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ""}'
            if os.environ.get('VERBOSE'):
                traceback.print_exc()
        ran += 1
        if wrong:
            failed += 1
            print(f'{program.name}.{form}: {wrong}', flush=True)
    return ran, failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--library', default=os.environ.get('SHARDCALL_PJRT_LIBRARY', ''))
    parser.add_argument('--plugin', default=os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', ''))
    parser.add_argument('--only', default='')
    parser.add_argument('--forms', default='sdy,gspmd')
    parser.add_argument('--every', type=int, default=1, help='every N-th program')
    options = parser.parse_args()
    corpus = os.environ.get('SHARDCALL_CORPUS', '')
    sources = os.path.join(os.path.dirname(os.path.abspath(corpus)), 'hlo_programs')
    if not options.plugin or not corpus or not os.path.isdir(sources):
        print('skipped: SHARDCALL_PJRT_CPU_PLUGIN names no plugin, or no sources are at hand')
        return 77
    scratch = tempfile.mkdtemp(prefix='live_programs.')
    reports = os.path.join(scratch, 'reports')
    os.environ.update({**framework.variables(options.library, options.plugin, scratch),
                       'SHARDCALL_REPORT': reports})
    try:
        import jax
    except ImportError:
        print('skipped: no jax')
        return 77
    sys.path.insert(0, os.path.dirname(sources))
    sys.dont_write_bytecode = True
    try:
        from hlo_programs import base  # the package registers all programs
    except ImportError as error:
        print(f'skipped: {error}')
        return 77
    ran, failed = run_all(jax, base, options, corpus, reports)
    shutil.rmtree(scratch, ignore_errors=True)
    print(f'{ran} programs, {failed} differ or fail')
    return 1 if failed or not ran else 0


if __name__ == '__main__':
    sys.exit(main())
