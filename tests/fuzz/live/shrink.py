# SPDX-License-Identifier: Apache-2.0
"""Findings made small."""
import copy
import dataclasses
import os
import re

import generate
import judge


def _uses(name, text):
    return re.search(rf'\b{name}\b', text)


def _without_unused(program):
    p = copy.deepcopy(program)
    while True:
        lines = [(n, t) for n, t in p.lines
                 if n in p.results or any(_uses(n, u) for _, u in p.lines)]
        if len(lines) == len(p.lines):
            break
        p.lines = lines
    p.arguments = [a for a in p.arguments if a.name in p.results or
                   any(_uses(a.name, t) for _, t in p.lines)]
    return p


def _smaller(program):
    """Programs with less in them, those first that lack most."""
    for k in range(len(program.results) - 1, -1, -1):
        if len(program.results) > 1:
            p = copy.deepcopy(program)
            p.results, p.result_specs = [p.results[k]], [p.result_specs[k]]
            yield p
    for k, (name, _) in enumerate(program.lines):  # a value as the result
        if [name] != program.results:
            p = copy.deepcopy(program)
            p.results, p.result_specs, p.lines = [name], [''], p.lines[:k + 1]
            yield p
    for k, (name, text) in enumerate(program.lines):  # a value that is an argument
        for a in program.arguments:
            if _uses(a.name, text) and name not in program.results:
                p = copy.deepcopy(program)
                p.lines = [(n, re.sub(rf'\b{name}\b', a.name, t)) for n, t in
                           p.lines[:k] + p.lines[k + 1:]]
                yield p
        others = [n for n, _ in program.lines[:k] if _uses(n, text)]
        for other in others:
            p = copy.deepcopy(program)
            p.lines = [(n, re.sub(rf'\b{name}\b', other, t)) for n, t in
                       p.lines[:k] + p.lines[k + 1:]]
            p.results = [other if r == name else r for r in p.results]
            yield p
    for k, a in enumerate(program.arguments):
        if a.spec:
            p = copy.deepcopy(program)
            p.arguments[k].spec = ''
            yield p
    for k, s in enumerate(program.result_specs):
        if s:
            p = copy.deepcopy(program)
            p.result_specs[k] = ''
            yield p
    if program.order is not None:
        p = copy.deepcopy(program)
        p.order = None
        yield p


def shrunk(program, verdict, tries=60):
    """(the smallest program of the same verdict's kind that was found, its verdict)."""
    progress = True
    while progress:
        progress = False
        for p in _smaller(program):
            tries -= 1
            if tries < 0:
                return program, verdict
            p = _without_unused(p)
            try:
                v = judge.judge(p)
            except Exception:  # no valid program
                continue
            if v.kind == verdict.kind:
                program, verdict, progress = p, v, True
                break
    return program, verdict


def script(p):
    """A program that runs by itself."""
    order = '' if p.order is None else f'[{list(p.order)}]'
    n = 1
    for size in p.mesh:
        n *= size
    ins = ', '.join(f'sharding("{a.spec}")' for a in p.arguments)
    outs = ', '.join(f'sharding("{s}")' for s in p.result_specs)
    arrays = ''.join(
        f'{a.name} = generate.Argument(**{dataclasses.asdict(a)}).array({p.seed})\n'
        for a in p.arguments)
    names = ', '.join(a.name for a in p.arguments)
    return (
        'import os, sys\n'
        f'sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n'
        'os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"\n'
        'os.environ["JAX_PLATFORMS"] = "cpu"\n'
        'import jax, jax.numpy as jnp, numpy as np, shardcall, shardcall.jax as sj\n'
        'from jax import lax\n'
        'import generate\n'
        'from jax.sharding import Mesh, NamedSharding, PartitionSpec as P\n'
        f'mesh = Mesh(np.array(jax.devices()[:{n}]){order}.reshape{p.mesh}, '
        f'{tuple(generate.AXES[:len(p.mesh)])})\n'
        'sharding = lambda spec: NamedSharding(mesh, eval(spec)) if spec else None\n'
        'constrain = lambda x, spec: lax.with_sharding_constraint(x, NamedSharding(mesh, spec))\n'
        f'{arrays}{p.body()}'
        f'options = dict(in_shardings=[{ins}], out_shardings=({outs},))\n'
        f'lowered = sj.jit(f, **options).lower({names})\n'
        f'arrays = [[{names}][k] for k in sorted(lowered._lowering.compile_args["kept_var_idx"])]\n'
        'print("evaluator", shardcall.run(lowered, arrays, num_partitions=1))\n'
        f'print("jax.jit", jax.jit(f, **options)({names}))\n'
        f'print("sj.jit", lowered.compile()({names}))\n')
