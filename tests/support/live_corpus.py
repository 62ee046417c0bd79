# SPDX-License-Identifier: Apache-2.0
"""JAX's programs whose source lies beside the full corpus, run live and held against JAX's
numbers: what their tests share."""
import argparse
import contextlib
import glob
import os
import re
import sys
import traceback
import types

import command
import numerics

LIMIT = 4e-6


class NotInThisJax(Exception):
    """Raised by what a program uses and this version of JAX has no longer."""


def stand_in_for_removed():
    """So that the programs can be imported, of which some use what JAX 0.12 has removed."""
    try:
        import jax.experimental.shard_alike  # noqa: F401
    except ImportError:
        def shard_alike(*args):
            raise NotInThisJax
        made = sys.modules['jax.experimental.shard_alike'] = types.ModuleType('shard_alike')
        made.shard_alike = shard_alike


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
    """How many programs ran, and how many of them are wrong. `options`: only, forms, first."""
    ran, failed = 0, 0
    todo = [(p, form) for p in base.PROGRAMS.values() for form in p.forms
            if form in options.forms.split(',') and not p.platform
            and os.path.exists(os.path.join(corpus, f'{p.name}.outputs.npz'))
            and re.search(options.only, f'{p.name}.{form}')]
    for program, form in command.sampled(todo, options.first):
        try:
            wrong = run(jax, base, program, form, corpus, reports, jit)
        except NotInThisJax:
            continue
        except Exception as error:  # what JAX or the plugin raises is the finding
            wrong = f'{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ""}'
            if os.environ.get('VERBOSE'):
                traceback.print_exc()
        ran += 1
        if wrong:
            failed += 1
            print(f'{program.name}.{form}: {wrong}', flush=True)
    return ran, failed


def parser():
    """With what chooses the programs."""
    made = argparse.ArgumentParser()
    made.add_argument('--only', default='', help='a regular expression of their names')
    made.add_argument('--forms', default='sdy,gspmd')
    made.add_argument('--first', type=int, default=0,
                      help='with SHARDCALL_CORPUS_EVERY=N: the first of every N-th program')
    return made


def corpus():
    """(the folder of the corpus, that of the sources); None where they are not at hand."""
    folder = os.environ.get('SHARDCALL_CORPUS', '')
    sources = os.path.join(os.path.dirname(os.path.abspath(folder)), 'hlo_programs')
    return (folder, sources) if folder and os.path.isdir(sources) else None


def main(options, reports, jit=None):
    """Runs the programs; an exit status. `reports`: the folder where each that is partitioned
    by us leaves a report. JAX is imported here, after the environment is set."""
    folder, sources = corpus()
    sys.path.insert(0, os.path.dirname(sources))
    sys.dont_write_bytecode = True
    try:
        import jax
        stand_in_for_removed()
        from hlo_programs import base  # the package registers all programs
    except ImportError as error:
        print(f'skipped: {error}')
        return 77
    ran, failed = run_all(jax, base, options, folder, reports, jit)
    print(f'{ran} programs, {failed} differ or fail')
    return 1 if failed or not ran else 0
