#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the StableHLO that we write with the StableHLO that XLA writes.

For every *.hlo file, XLA reads the bytecode that we write for it, and the bytecode that XLA's own
conversion gives. Both must be the same program: equal op for op, in any order, but for names,
metadata, tuples that are taken apart again, and copies, which StableHLO does not have. Annotations
of a tuple's element repeat those of the tuple (else our writer refuses them), and groups of
replicas may be listed or named by axes of a mesh. What our writer refuses is printed, and must be
one of REFUSED.

  stablehlo_diff.py --tool=build/bin/hlo_convert DIR...

SHARDCALL_CORPUS adds one more folder. Exit code 77: jaxlib is not there.
"""
import collections
import hashlib
import itertools
import os
import re
import subprocess
import sys
import tempfile

from hlo_text_diff import COMPUTATION, INSTRUCTION, MODULE, decode, number, numbers, sorted_map

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import jaxlib_parser  # noqa: E402

# What StableHLO has no op for, or what our writer leaves to XLA's.
REFUSED = [
    r'an op (acos|acosh|asin|asinh|atanh|cosh|sinh|mulhi|stochastic-convert|async-\w+|\S+-start'
    r'|\S+-done|rng|rng-get-and-update-state|bitcast|domain|fusion|scan|ragged-dot|scaled-dot'
    r'|ragged-all-to-all|add-dependency|set-dimension-size|dynamic-reshape|infeed|outfeed|send|recv'
    r'|replica-id)',
    r'a value \S*[<?]', 'replicas', 'a schedule', 'control edges', 'a backend_config', 'a composite',
    'a tuple as a parameter', 'an algorithm', 'result_accuracy',
    'several arrays', 'groups of several sizes', 'an alias that must',
    'that StableHLO lacks', 'with annotations', 'a copy with a sharding', 'the smallest',
    'a window', 'of tuples', 'of parts', 'debug attributes', 'tiles or a memory space', 'a donor',
    'nested too deeply', 'with a layout, or with a root',
]
# Fields of HloInstructionProto.
METADATA, TUPLE_INDEX, SHARDING, GROUPS, AXES_GROUPS = 7, 13, 40, 49, 93
LISTED_GROUPS = 87  # with the same list in a message of its own


def listed(i):
    """The groups of an instruction: a list of lists, or None."""
    axes_groups = i.pop(AXES_GROUPS, None)
    lists = i.pop(GROUPS, None)
    if LISTED_GROUPS in i:
        lists = decode(i.pop(LISTED_GROUPS)[0]).get(1, [])
    if axes_groups is None:
        return lists and [numbers(decode(group).get(1, [])) for group in lists]
    message = decode(axes_groups[0])
    mesh = decode(message[1][0])
    assert set(mesh) == {1}, 'a mesh with an order of its own'
    refs = [decode(ref) for ref in message[2]]
    assert not any(2 in ref for ref in refs), 'a part of an axis'
    sizes = [number(decode(axis), 2) for axis in mesh[1]]
    named = [number(ref, 1) for ref in refs]
    devices = list(itertools.product(*map(range, sizes)))
    groups = {}
    for device, places in enumerate(devices):
        others = tuple(p for axis, p in enumerate(places) if axis not in named)
        groups.setdefault(others, []).append(([places[axis] for axis in named], device))
    return [[device for _, device in sorted(group)] for group in groups.values()]


def contents(serialized):
    """Of each reachable op of the entry a hash of all that it computes; how many there are."""
    module = decode(serialized)
    computations = {}
    for c in module[MODULE['computations']]:
        c = decode(c)
        computations[number(c, COMPUTATION['id'])] = c
    known = {}

    def of(computation):
        if computation in known:
            return known[computation]
        c = computations[computation]
        hashes, tuples = {}, {}
        effects = []
        for raw in c[COMPUTATION['instructions']]:
            i = decode(raw)
            own = number(i, INSTRUCTION['id'])
            operands = [hashes[x] for x in numbers(i.get(INSTRUCTION['operands'], []))]
            opcode = i[2][0]
            if opcode == b'copy':
                hashes[own] = operands[0]
                continue
            if opcode == b'get-tuple-element':
                i.pop(SHARDING, None)
                i.pop(INSTRUCTION['frontend'], None)
            if opcode == b'tuple':
                tuples[own] = operands
            if opcode == b'get-tuple-element':
                source = numbers(i[INSTRUCTION['operands']])[0]
                if source in tuples:
                    hashes[own] = tuples[source][number(i, TUPLE_INDEX)]
                    continue
            for field in ('name', 'id', 'operands'):
                i.pop(INSTRUCTION[field], None)
            i.pop(METADATA, None)
            sorted_map(i, INSTRUCTION['frontend'])
            called = [of(x)[0] for x in numbers(i.pop(INSTRUCTION['called'], []))]
            text = repr((listed(i), sorted(i.items()), operands, called))
            hashes[own] = hashlib.sha1(text.encode()).hexdigest()
            if opcode in (b'custom-call', b'rng', b'after-all', b'parameter'):
                effects.append(hashes[own])
        root = hashes[number(c, COMPUTATION['root'])]
        known[computation] = (hashlib.sha1(repr((root, sorted(effects))).encode()).hexdigest(),
                              hashes)
        return known[computation]

    return of(number(module, MODULE['entry_id']))[0]


def main():
    tool, files, hlo = jaxlib_parser.start()
    from jax._src.lib import _jax
    with tempfile.TemporaryDirectory(prefix='stablehlo_diff.') as out:
        run = subprocess.run([tool, '--to=mlirbc', f'--out={out}'] + files, capture_output=True,
                             text=True, check=False)
        refused = collections.Counter()
        failed = []
        for block in re.findall(r'(?ms)^(\S+\.hlo: .*?)(?=^\S+\.hlo: |\Z)', run.stderr):
            if not any(re.search(why, block) for why in REFUSED):
                failed.append(block)
            refused[block.split('E149')[-1].split('\n')[0]] += 1

        def read(code):
            made = _jax.mlir.mlir_module_to_xla_computation(code, use_tuple_args=False,
                                                            return_tuple=False)
            return made.as_serialized_hlo_module_proto()

        equal = 0
        for path in files:
            name = os.path.basename(path)
            ours = os.path.join(out, name[:-len('.hlo')] + '.mlirbc')
            if not os.path.exists(ours):
                continue
            with open(path, encoding='utf-8') as f:
                text = jaxlib_parser.for_xla(f.read())
            try:
                proto = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
                theirs = read(_jax.mlir.hlo_to_stablehlo(proto))
            except Exception:  # XLA does not convert it
                continue
            try:
                with open(ours, 'rb') as f:
                    own = read(f.read())
            except Exception as e:
                failed.append(f'{name}: XLA does not read ours: {str(e)[:300]}')
                continue
            if contents(own) == contents(theirs):
                equal += 1
            else:
                failed.append(f'{name}: another program')
    for why, count in refused.most_common():
        print(f'not written: {count} x{why}')
    for why in failed:
        print('FAILED', why)
    print(f'{equal} equal, {sum(refused.values())} refused, {len(failed)} failed, '
          f'of {len(files)} files')
    return 1 if failed or not equal else 0


if __name__ == '__main__':
    sys.exit(main())
