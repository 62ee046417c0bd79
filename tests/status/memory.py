#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section of tests/STATUS.md on memory: what one device needs by our model and by XLA's buffer
assignment, file by file.

  SHARDCALL_COMMAND=build/bin/shardcall memory.py --write tests/STATUS.md | --check tests/STATUS.md
  SHARDCALL_CORPUS=DIR SHARDCALL_COMMAND=... memory.py --record cpu
  SHARDCALL_CORPUS=DIR SHARDCALL_COMMAND=... memory.py --record gpu --pjrt-plugin=xla_cuda_plugin.so

--record partitions the files with GSPMD's annotations, has XLA compile the per-device modules, and
writes its part of memory.json anew: XLA's bytes, from its dump of the buffer assignment, and ours.
cpu is this Python's jaxlib, gpu a PJRT plugin that compiles for GPUs that need not be there. --write
makes the section of what is recorded. --check counts ours of the files that are there (of
tests/data/hlo, or SHARDCALL_CORPUS) and fails where fewer of them are within 10 % of what is
recorded of XLA.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import command  # noqa: E402
import sections  # noqa: E402
import xla_partitioner  # noqa: E402

RECORD = os.path.join(HERE, 'memory.json')
H100 = os.path.join(HERE, '..', 'partitioner', 'bindings', 'pjrt', 'h100.txtpb')
LARGE = 1 << 20
TITLE = '## Memory against XLA'
HEAD = TITLE + """

What one device needs by our model, for all programs of the tests, against the buffer assignment of
XLA for the same per-device module: arguments, results that are not in their memory, and temporaries
(`tests/status/memory.json`). Custom calls without a rule are gathered. On GPUs each buffer begins at
a multiple of 256 bytes, so that small programs are mostly made up of what the model leaves out, as
loops that XLA unrolls.

"""
NAMES = {'cpu': 'XLA:CPU', 'gpu': 'XLA:GPU (H100)'}
FLAGS = ['--allow-replicate=all']


def read():
    if not os.path.exists(RECORD):
        return {}
    with open(RECORD, encoding='utf-8') as f:
        return json.load(f)


def write(record):
    with open(RECORD, 'w', encoding='utf-8') as f:
        json.dump(record, f, indent=0, sort_keys=True)
        f.write('\n')


def needed(memory, backend):
    whole = memory['all']
    return whole['arguments'] + whole['outputs'] + memory[backend] - whole['aliased']


def ours(path):
    """{backend: temporaries} and the whole of `memory` of the report; None where it is refused."""
    answer = command.run(['explain', path, *FLAGS, '--format=json'], timeout=120)
    if answer.code != 0:
        return None
    memory = json.loads(answer.out)['memory']
    return {'cpu': memory['xla_cpu']['temporaries'], 'gpu': memory['temporaries'], 'all': memory}


def assigned(directory):
    """The bytes of XLA's buffer assignment that was dumped there, by kind; None without a dump."""
    found = sorted(glob.glob(os.path.join(directory, '*buffer-assignment.txt')),
                   key=os.path.getsize)
    if not found:
        return None
    out = {'arguments': 0, 'results': 0, 'temporaries': 0}
    with open(found[-1], encoding='utf-8') as f:  # the largest: others are of its own helpers
        for line in f:
            if line.startswith('Total'):
                break
            m = re.match(r'allocation \d+: (?:0x\w+, )?size (\d+),? ?(.*):$', line)
            if not m or re.search('thread-local|constant', m[2]):
                continue
            size, kind = int(m[1]), m[2]
            if 'parameter' in kind:
                out['arguments'] += size
            elif 'output shape' in kind and '(' in kind:
                continue  # the table of the results' addresses
            else:
                out['results' if 'maybe-live-out' in kind else 'temporaries'] += size
    return out


def donors_of(text):
    """The numbers of the parameters that an HLO module donates."""
    listed = re.search(r'buffer_donor=\{ ((?:\(\d+, \{\}\),? )*)\}', text[:text.find('\n')])
    return [int(k) for k in re.findall(r'\((\d+)', listed[1])] if listed else []


def donate(module, parameters):
    """Says so in the module, as JAX does: the way from HLO to StableHLO leaves it out."""
    from jaxlib.mlir import ir
    main = next(op for op in module.body.operations if op.attributes['sym_name'].value == 'main')
    attributes = [ir.DictAttr(a) for a in main.arg_attrs]
    for k in parameters:
        kept = {a.name: a.attr for a in attributes[k]}
        attributes[k] = ir.DictAttr.get({**kept, 'jax.buffer_donor': ir.BoolAttr.get(True)})
    main.arg_attrs = ir.ArrayAttr.get(attributes)


def compile_on_cpu(path):
    """In a process of its own: XLA reads its flags once, and aborts on a failed check."""
    import numpy as np
    import jax
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
    with open(path, encoding='utf-8') as f:
        text = f.read()
    n = xla_partitioner.devices_of(text)
    options = xla_partitioner.options_for(np.arange(n, dtype=np.int32).reshape(1, n))
    options.executable_build_options.use_spmd_partitioning = n > 1
    code = xla_partitioner.stablehlo_of(text)
    client = jax.devices('cpu')[0].client
    with mlir.make_ir_context():
        module = ir.Module.parse(code)
        donate(module, donors_of(text))
        client.compile_and_load(module, _jax.DeviceList(tuple(jax.devices('cpu')[:n])), options)


def xla_flags(directory, devices):
    # The modules are partitioned already.
    return (f'--xla_dump_to={directory} --xla_dump_hlo_as_text '
            f'--xla_force_host_platform_device_count={devices} --xla_disable_hlo_passes='
            'spmd-partitioning,sharding-propagation,sharding-remover,spmd-prepare')


def of_xla(path, plugin):
    """Compiles a file of the corpus; what XLA assigned, or None."""
    with open(path, encoding='utf-8', errors='replace') as f:
        devices = xla_partitioner.devices_of(f.read())
    with tempfile.TemporaryDirectory() as directory:
        env = dict(os.environ, XLA_FLAGS=xla_flags(directory, devices))
        if plugin:
            args = [command.command_path(), 'compile', path, *FLAGS, '--pjrt-plugin=' + plugin,
                    f'--topology=1x1x{devices}', '--target-config=' + H100]
        else:
            local = os.path.join(directory, 'local.hlo')
            if command.run(['partition', path, *FLAGS, '-o', local], timeout=120).code != 0:
                return None
            args = [sys.executable, os.path.abspath(__file__), '--compile', local]
        try:
            # A compilation that ends at a call without a handler has dumped it before.
            subprocess.run(args, env=env, capture_output=True, timeout=600, check=False)
        except subprocess.TimeoutExpired:
            pass
        return assigned(directory)


def files():
    return [p for p in command.hlo_files() if p.endswith('.gspmd.hlo')]


def make_record(backend, plugin):
    rows = {}
    for path in files():
        theirs = of_xla(path, plugin)
        mine = ours(path) if theirs else None
        if not mine:
            continue
        rows[os.path.basename(path)] = {
            'xla': theirs['arguments'] + theirs['results'] + theirs['temporaries'],
            'ours': needed(mine, backend)}
        print(os.path.basename(path), rows[os.path.basename(path)], flush=True)
    record = read()
    if plugin:
        version = os.path.basename(os.path.dirname(os.path.abspath(plugin)))
    else:
        import jaxlib
        version = jaxlib.__version__
    record[backend] = {'version': version, 'files': rows}
    write(record)


def within(rows, part):
    return sum(abs(r['ours'] / max(1, r['xla']) - 1) <= part for r in rows)


def table(cells):
    return '| ' + ' | '.join(map(str, cells)) + ' |\n'


def section():
    record = read()
    head = ('backend', 'programs', 'within 10 %', 'within 25 %', 'of 1 MiB and more',
            'within 10 %', 'within 25 %')
    out = HEAD + table(head) + '|---' * len(head) + '|\n'
    for backend, found in record.items():
        rows = list(found['files'].values())
        large = [r for r in rows if r['xla'] >= LARGE]
        out += table((f'{NAMES[backend]}, {found["version"]}', len(rows), within(rows, .1),
                      within(rows, .25), len(large), within(large, .1), within(large, .25)))
    out += '\n| Bytes that a device needs | ours | XLA:CPU | ratio | ours | XLA:GPU | ratio |\n'
    out += '|---' * 7 + '|\n'
    for name in sorted({n for found in record.values() for n in found['files']}):
        cells = [f'`{name}`, memory']
        for backend in ('cpu', 'gpu'):
            row = record.get(backend, {'files': {}})['files'].get(name)
            cells += ([row['ours'], row['xla'], f'{row["ours"] / max(1, row["xla"]):.2f}']
                      if row else ['', '', ''])
        out += table(cells)
    return out


def wrong(text):
    """What the files that are there say now."""
    if section().strip() not in text:
        yield f'the section is not what {os.path.basename(RECORD)} says: --write it'
    now = {os.path.basename(p): ours(p) for p in files()}
    for backend, found in read().items():
        before, after = [], []
        for name, row in found['files'].items():
            if not now.get(name):
                continue
            before.append(row)
            after.append({**row, 'ours': needed(now[name], backend)})
        if within(after, .1) < within(before, .1):
            yield (f'{NAMES[backend]}: {within(after, .1)} of {len(after)} programs are within '
                   f'10 %, of which the record has {within(before, .1)}; --record anew where '
                   'programs changed')


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument('--record', choices=('cpu', 'gpu'))
    parser.add_argument('--pjrt-plugin', default='')
    parser.add_argument('--compile')
    args, rest = parser.parse_known_args()
    if args.compile:
        compile_on_cpu(args.compile)
        return 0
    if args.record:
        make_record(args.record, args.pjrt_plugin)
        return 0
    sys.argv[1:] = rest
    return sections.main(TITLE, section, wrong, 'memory is as recorded')


if __name__ == '__main__':
    sys.exit(main())
