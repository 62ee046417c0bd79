# SPDX-License-Identifier: Apache-2.0
"""One program before the judge: partitioned and run by `shardcall`, then compiled and
run by XLA on the same inputs.

A case, as xla_worker.py takes it: `local` and `report`, what `partition` wrote; `inputs`,
npz; `expected`, [[whose, npz of outputs]]; `compile_only`; `limit`, how far floats may be
apart (relative to the largest value; null: compare.py's own); `elements`, of the shard of
an untyped call; `of_tests`: the program is one of ours, not JAX's."""

import json
import math
import os
import re

import command
import files

SECONDS = 120
# Arguments and results of a program that is run. Larger ones take minutes and gigabytes.
MOST_BYTES = 24 << 20
# JAX's callbacks into Python: the dump names a place in the memory of a process.
LOST = 'xla_ffi_python_cpu_callback'


class Outcome:
    """`verdict`: 'ran', 'compiled' or 'failed'; `text` says why or where."""

    def __init__(self, name, verdict, text='', stage=''):
        self.name, self.verdict, self.text, self.stage = name, verdict, text, stage


def stirred_targets():
    """Targets with a rule in tests/data/plugins and without a kernel."""
    with open(command.RULES[1], encoding='utf-8') as f:
        return {t['name'] for t in json.load(f)['targets']} - {LOST}


STIRRED = stirred_targets()


def manifest(text, handlers, path):
    """Flags that give the program's targets without a kernel one of the handlers' library."""
    calls = set(re.findall(r'custom_call_target="([^"]*)"', text)) & STIRRED
    if not calls or not handlers:
        return []
    versions = re.findall(r'api_version=API_VERSION_(\w+)', text)
    version = {'STATUS_RETURNING': 2, 'STATUS_RETURNING_UNIFIED': 3, 'TYPED_FFI': 4}.get(
        versions[0] if versions else '', 1)
    symbol = 'XlaRunsStir' if version == 4 else 'XlaRunsStirUntyped'
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({'library': handlers, 'targets': [
            {'name': c, 'symbol': symbol, 'api_version': version} for c in sorted(calls)]}, f)
    return ['--plugin=' + path]


def for_xla(text, of_tests=False):
    """The per-device module as XLA takes it.

    - The kernel of a custom_partitioning call is chosen by the call's backend_config.
    - Calls in programs of tests are of the typed ABI, whatever they say, with row-major
      operands, as JAX writes calls: XLA may choose other layouts where none is stated.
    - Fusions are XLA's to make: given one, it aborts in many ways, so they are calls."""
    def call(found):
        line = found[0]
        typed = ', api_version=API_VERSION_TYPED_FFI, backend_config={}'
        if 'API_VERSION_TYPED_FFI' in line:
            typed = ''
        else:
            line = re.sub(r', api_version=\w+|, backend_config="[^"]*"', '', line)
        line = line.replace('"CustomSPMDPartitioning"', '"fft"')
        layouts = ''
        if 'operand_layout_constraints' not in line:
            operands = re.search(r' custom-call\(([^)]*)\)', line).group(1).split(', ')
            layouts = ', operand_layout_constraints={' + ', '.join(types[o] for o in operands) + '}'
        return re.sub(r'custom_call_target="\w+"', lambda target: target[0] + layouts + typed, line)

    def unfused(found):
        line = re.sub(r', kind=k\w+', '', found[0]).replace(' calls=', ' to_apply=')
        return re.sub(r'\bfusion\(', 'call(', line, count=1)
    types = dict(re.findall(r'(?m)^\s*(?:ROOT )?(%\S+) = (\w+\[[^ ]*)', text))
    text = re.sub(r'(?m)^.*custom_call_target="' +
                  (r'\w+' if of_tests else 'CustomSPMDPartitioning') + '".*$', call, text)
    return re.sub(r'(?m)^.* fusion\(.*, kind=k\w+.*$', unfused, text)


def untyped_elements(text):
    found = re.search(r'= f32\[([\d,]*)\]\S* custom-call\(.*custom_call_target="my_target"', text)
    return math.prod(int(d) for d in found.group(1).split(',')) if found else 0


def first_error(result):
    return result.fault or ' '.join(result.err.split())[:400] or f'exit {result.code}'


def judge(path, directory, worker, handlers, entry=None, seed=1):
    """The Outcome of one HLO file, whose files are made in `directory`. `entry` is what
    known.json says of it: "limit", and "integers" for its arguments."""
    entry = entry or {}
    name = os.path.basename(path)

    def place(suffix):
        return os.path.join(directory, name + suffix)

    with open(path, encoding='utf-8', newline='') as f:
        text = f.read()
    flags = [*command.device_flags(path), *command.plugin_flags(path),
             *manifest(text, handlers, place('.plugin.json'))]
    partition = ['partition', path, '-o', place('.local.hlo'), '--report=' + place('.json')]
    made = command.run([*partition, *flags], timeout=SECONDS)
    if made.diagnostic == 'E101':
        flags += [f for f in command.RULE_FLAGS if f not in flags]
        made = command.run([*partition, *flags], timeout=SECONDS)
    if made.code != 0:
        return Outcome(name, 'failed', first_error(made), 'partition')
    with open(place('.local.hlo'), encoding='utf-8', newline='') as f:
        local = f.read()
    report = files.report(place('.json'))
    size = files.element_bytes(report['parameters']) + files.element_bytes(report['results'])
    case = {'local': place('.local.hlo'), 'report': place('.json'), 'limit': entry.get('limit'),
            'elements': untyped_elements(local), 'expected': [],
            'compile_only': ''}
    if size > MOST_BYTES:
        case['compile_only'] = f'{size >> 20} MiB of arguments and results'
    elif LOST in local:
        case['compile_only'] = 'its Python callback was lost with its process'
    elif 'custom_call_target="tpu_custom_call"' in local:
        case['compile_only'] = "a TPU's kernel of the untyped ABI"
    if not case['compile_only']:
        given = command.numerics(path, 'inputs')
        case['inputs'] = given or place('.inputs.npz')
        if not given:
            kinds = files.array_leaves(report['parameters'])
            files.save(case['inputs'], 'arg', files.random_arrays(
                kinds, seed, entry.get('integers')), kinds)
        os.environ['XLA_RUNS_ELEMENTS'] = str(case['elements'])
        ran = command.run(['run', path, *flags, '--inputs=' + case['inputs'],
                           '--outputs=' + place('.outputs.npz')], timeout=SECONDS)
        if ran.code != 0:
            return Outcome(name, 'failed', first_error(ran), 'shardcall run')
        case['expected'].append(['ours', place('.outputs.npz')])
        if command.numerics(path, 'outputs'):
            case['expected'].append(["JAX's", command.numerics(path, 'outputs')])
    answer = worker.ask(case)
    if answer['status'] != 'ok':
        return Outcome(name, 'failed', answer['reason'], answer['stage'])
    if case['compile_only']:
        return Outcome(name, 'compiled', case['compile_only'])
    whose = 'JAX and ours' if len(case['expected']) > 1 else 'ours'
    return Outcome(name, 'ran', whose)
