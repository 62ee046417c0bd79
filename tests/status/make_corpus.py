#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps the programs of the corpus anew, with the JAX of this Python (0.12 or later).

  SHARDCALL_CORPUS=DIR make_corpus.py OUT [--only REGEX]

The programs' source lies beside the corpus (SHARDCALL_CORPUS/../hlo_programs). Written are, as
tests/data/hlo_jax_0_12 has them,

  OUT/NAME.jax12.hlo      what XLA reads, dumped before optimizations, in the form that JAX
                          writes without any flag
  OUT/NAME.gspmd12.hlo    with jax_use_shardy_partitioner off
  OUT/NAME.inputs.npz     those of the corpus
  OUT/NAME.outputs.npz    what this JAX computes from them, on one device; on the mesh where the
                          program has manual regions

At the end it says which programs this JAX cannot make, and whose outputs are not those of the
corpus. XLA may abort: worker processes make the files, and the next one goes on."""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import command  # noqa: E402
import live_corpus  # noqa: E402
import numerics  # noqa: E402

# The address of a Python object, another one in every process: that of the corpus stands there,
# since manifests name it.
ADDRESS = re.compile(r'(?<=backend_config=")\d{12,}(?=")')
FORMS = {'jax12': True, 'gspmd12': False}  # whether Shardy partitions
FLAGS = ('--xla_force_host_platform_device_count=512 --xla_backend_optimization_level=0 '
         '--xla_dump_to={} --xla_dump_hlo_as_text --xla_dump_large_constants')


def programs():
    """The programs by name, once the folder of their source is in the path."""
    sys.path.insert(0, os.path.dirname(live_corpus.corpus()[1]))
    sys.dont_write_bytecode = True
    live_corpus.stand_in_for_removed()
    from hlo_programs.base import PROGRAMS  # the package registers all programs
    return PROGRAMS


def built(jax, program, plain):
    """(mesh, the jitted function, its arguments' shapes with shardings)."""
    from hlo_programs.base import Grid
    grid = Grid(program.axes, program.explicit, plain)
    fn, args, *options = program.build(grid)

    def named(*arguments):
        return fn(*arguments)
    named.__name__ = named.__qualname__ = program.name
    return grid.mesh, jax.jit(named, keep_unused=True, **(options[0] if options else {})), args


def lowered_text(fn, args, platform):
    """Of a program for a platform whose compiler is not here."""
    from jaxlib import _hlo
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    lowered = fn.trace(*args).lower(lowering_platforms=(platform,))
    return lowered.compiler_ir('hlo').as_hlo_module().to_string(options)


def write_outputs(jax, program, executable, args, out):
    """What the program gives for the corpus's inputs, on one device or by `executable`."""
    import numpy as np
    source = os.path.join(live_corpus.corpus()[0], f'{program.name}.inputs.npz')
    shutil.copy(source, out)
    with np.load(source) as stored:
        leaves = [stored[f'arg{i}'] for i in range(len(stored.files))]
    if program.truth == 'one':
        _, executable, args = built(jax, program, plain=True)
    shapes, tree = jax.tree.flatten(args)
    values = [x.astype(s.dtype) if program.truth == 'one' else
              jax.device_put(x.astype(s.dtype), s.sharding) for x, s in zip(leaves, shapes)]
    results = live_corpus.flat(jax, executable(*jax.tree.unflatten(tree, values)))
    np.savez_compressed(os.path.join(out, f'{program.name}.outputs.npz'),
                        **{f'out{i}': x for i, (x, _) in enumerate(results)})


def make(jax, program, form, out, dumps):
    jax.clear_caches()  # else inner functions keep the stack frames of an earlier program
    config = {**program.config, 'jax_use_shardy_partitioner': FORMS[form]}
    before = {key: getattr(jax.config, key) for key in config}
    try:
        for key, value in config.items():
            jax.config.update(key, value)
        mesh, fn, args = built(jax, program, plain=False)
        with jax.set_mesh(mesh) if program.explicit else contextlib.nullcontext():
            if program.platform:
                text, executable = lowered_text(fn, args, program.platform), None
            else:
                try:
                    executable = fn.lower(*args).compile()
                except jax.errors.JaxRuntimeError:  # kernels that are not here: after the dump
                    executable = None
                text = dumped(program.name, dumps)
        store(out, program.name, form, text)
        answers = os.path.exists(os.path.join(live_corpus.corpus()[0],
                                              f'{program.name}.inputs.npz'))
        first = 'sdy' in program.forms and form == 'jax12' or 'sdy' not in program.forms
        if answers and first and (executable or program.truth == 'one'):
            write_outputs(jax, program, executable, args, out)
    finally:
        for key, value in before.items():
            jax.config.update(key, value)


def dumped(name, dumps):
    """The text of that program, taken out of the folder; '' if there is none."""
    text = ''
    for file in sorted(os.listdir(dumps)):
        if file.endswith(f'.jit_{name}.before_optimizations.txt'):
            with open(os.path.join(dumps, file), encoding='utf-8') as f:
                text = f.read()
    shutil.rmtree(dumps)
    os.mkdir(dumps)
    return text


def store(out, name, form, text):
    file = f'{name}.{form}.hlo'
    addresses = dict(zip(dict.fromkeys(ADDRESS.findall(text)),
                         dict.fromkeys(ADDRESS.findall(text_of_corpus(command.twin(file))))))
    text = ADDRESS.sub(lambda found: addresses.get(found[0], found[0]), text)
    with open(os.path.join(out, file), 'w', encoding='utf-8') as f:
        f.write(text)


def text_of_corpus(file):
    try:
        with open(os.path.join(live_corpus.corpus()[0], file), encoding='utf-8') as f:
            return f.read()
    except FileNotFoundError:
        return ''


def supply(jax):
    """What the programs ask for and this JAX gives in another way."""
    from jax._src import core
    from jax._src.pallas.triton import gpu_info
    if not hasattr(jax.core, 'abstract_token'):
        jax.core.abstract_token = core.abstract_token
    # Pallas asks for which GPU it is, though the programs are only lowered for one.
    gpu_info.registry['cpu'] = lambda: gpu_info.get_gpu_info_from_version(gpu_info.GpuVersion.H100)


def work(options):
    """Prints a line for each file: what is wrong with it, or ''."""
    import jax
    jax.config.update('jax_hlo_source_file_canonicalization_regex', '^.*/')
    supply(jax)
    every = programs()
    for file in options.worker:
        name, _, form = file.rpartition('.')
        why = ''
        try:
            make(jax, every[name], form, options.out, options.dumps)
        except live_corpus.NotInThisJax:
            why = 'uses what this JAX has no longer'
        except Exception as error:  # what JAX says is the answer
            why = f'{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ""}'
        print(f'DONE {why}', flush=True)


def make_all(todo, options):
    """{file: why it is not there, or what XLA does after its dump}."""
    wrong = {}
    with tempfile.TemporaryDirectory() as dumps:
        environment = dict(os.environ, JAX_PLATFORMS='cpu', XLA_FLAGS=FLAGS.format(dumps))
        while todo:
            run = subprocess.run([sys.executable, __file__, options.out, '--dumps=' + dumps,
                                  '--worker', *todo], env=environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, check=False)
            done = re.findall(r'^DONE ?(.*)$', run.stdout, re.M)
            wrong.update({file: why for file, why in zip(todo, done) if why})
            todo = todo[len(done):]
            if todo:
                text = dumped(todo[0].rpartition('.')[0], dumps)
                says = re.findall(r'Check failed: .*', run.stderr) or run.stderr.splitlines()[-1:]
                wrong[todo[0]] = f'the process ends with {run.returncode}, {says[:1]}'
                if text:
                    store(options.out, *todo[0].split('.'), text)
                    wrong[todo[0]] += ', after the dump'
                todo = todo[1:]
    return wrong


def other_outputs(out, names):
    """Lines about programs whose outputs the corpus has otherwise."""
    for name in names:
        new, old = (os.path.join(folder, f'{name}.outputs.npz')
                    for folder in (out, live_corpus.corpus()[0]))
        if os.path.exists(new) != os.path.exists(old):
            yield f'{name}: outputs are in only one corpus'
        elif os.path.exists(new):
            wrong = numerics.difference(numerics.read(old), numerics.read(new), True, 0)
            if wrong:
                yield f'{name}: {wrong}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('out')
    parser.add_argument('--only', default='', help='a regular expression of NAME.FORM')
    parser.add_argument('--dumps', help=argparse.SUPPRESS)
    parser.add_argument('--worker', nargs='*', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options)
        return 0
    if live_corpus.corpus() is None:
        raise SystemExit('SHARDCALL_CORPUS names no corpus with hlo_programs beside it')
    os.makedirs(options.out, exist_ok=True)
    os.environ['JAX_PLATFORMS'] = 'cpu'
    every = programs()
    todo = [f'{p.name}.{form}' for p in every.values() for form in FORMS
            if ('sdy' if form == 'jax12' else 'gspmd') in p.forms]
    todo = [file for file in todo if re.search(options.only, file)]
    wrong = make_all(todo, options)
    for file, why in wrong.items():
        print(f'{file}: {why}')
    for line in other_outputs(options.out, sorted({f.rpartition('.')[0] for f in todo})):
        print(f'other outputs than in the corpus: {line}')
    print(f'{len(todo)} files, {len(wrong)} with a remark')
    return 0


if __name__ == '__main__':
    sys.exit(main())
