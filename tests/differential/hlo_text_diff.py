#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our reading and printing of HLO text with XLA's.

For every *.hlo file: jaxlib reads the file and what `hlo_roundtrip` makes of it
into HloModuleProtos, which must be equal field by field but for ids, names of
instructions and computations, and the order of the stack-frame tables. The same
is done with the file as XLA prints it in other forms (short, with operand
shapes), which our parser must read too.

  hlo_text_diff.py --tool=build/bin/hlo_roundtrip DIR...

SHARDCALL_CORPUS adds one more folder. Exit code 77: jaxlib is not there.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile

MODULE = {'name': 1, 'entry_name': 2, 'computations': 3, 'program_shape': 4, 'id': 5,
          'entry_id': 6, 'schedule': 7, 'stack_frames': 17, 'frontend': 19}
COMPUTATION = {'name': 1, 'instructions': 2, 'program_shape': 4, 'id': 5, 'root': 6}
INSTRUCTION = {'name': 1, 'metadata': 7, 'id': 35, 'operands': 36, 'controls': 37, 'called': 38,
               'frontend': 68}
PARAMETER_NAMES = 3  # of ProgramShapeProto
STACK_FRAME_ID = 15  # of OpMetadata


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def decode(data):
    """One message as {field number: [values]}; numbers, or bytes."""
    fields, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = data[at:at + 8], at + 8
        elif wire == 5:
            value, at = data[at:at + 4], at + 4
        elif wire == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f'wire type {wire}')
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def numbers(values):
    """A repeated integer field, packed or not."""
    out = []
    for value in values:
        if isinstance(value, int):
            out.append(value)
            continue
        at = 0
        while at < len(value):
            item, at = varint(value, at)
            out.append(item)
    return out


def number(fields, key):
    """A single integer field; proto3 leaves zeros out."""
    return fields.get(key, [0])[0]


def sorted_map(fields, key):
    """A map's entries have no order on the wire."""
    for k, value in enumerate(fields.get(key, [])):
        inner = decode(value)
        fields[key][k] = sorted(str(sorted(decode(e).items())) for e in inner.get(1, []))


def frame_meanings(module):
    """For each stack frame id (from 1) the chain of places that it stands for."""
    tables = decode(module.get(MODULE['stack_frames'], [b''])[0])
    files, functions = tables.get(1, []), tables.get(2, [])
    locations = [decode(x) for x in tables.get(3, [])]
    frames = [decode(x) for x in tables.get(4, [])]
    meanings = [()]
    for frame in frames:
        place = decode(b'')
        location = number(frame, 1)
        if 0 < location <= len(locations):
            place = locations[location - 1]
        file, function = number(place, 1), number(place, 2)
        here = (files[file - 1] if file else b'', functions[function - 1] if function else b'',
                tuple(number(place, k) for k in (3, 4, 5, 6)))
        parent = number(frame, 2)
        meanings.append((here,) + (meanings[parent] if parent < len(meanings) else ()))
    return meanings


def normalise(serialized):
    """The module with ids replaced by positions and names removed."""
    module = decode(serialized)
    meanings = frame_meanings(module)
    computations = [decode(c) for c in module[MODULE['computations']]]
    positions = {number(c, COMPUTATION['id']): k for k, c in enumerate(computations)}
    out_computations = []
    sequences = {}
    for position, c in enumerate(computations):
        instructions = [decode(i) for i in c[COMPUTATION['instructions']]]
        ids = {number(i, INSTRUCTION['id']): k for k, i in enumerate(instructions)}
        sequences[position] = ids
        for i in instructions:
            for field in ('name', 'id'):
                i.pop(INSTRUCTION[field], None)
            for field in ('operands', 'controls'):
                n = INSTRUCTION[field]
                if n in i:
                    i[n] = [ids[x] for x in numbers(i[n])]
            if INSTRUCTION['called'] in i:
                n = INSTRUCTION['called']
                i[n] = [positions[x] for x in numbers(i[n])]
            sorted_map(i, INSTRUCTION['frontend'])
            if INSTRUCTION['metadata'] in i:
                metadata = decode(i[INSTRUCTION['metadata']][0])
                frame = metadata.pop(STACK_FRAME_ID, [0])[0]
                metadata[STACK_FRAME_ID] = meanings[frame] if frame < len(meanings) else ()
                i[INSTRUCTION['metadata']] = metadata
        c[COMPUTATION['instructions']] = instructions
        c[COMPUTATION['root']] = ids[number(c, COMPUTATION['root'])]
        for field in ('name', 'id'):
            c.pop(COMPUTATION[field], None)
        shape = decode(c[COMPUTATION['program_shape']][0])
        shape.pop(PARAMETER_NAMES, None)
        c[COMPUTATION['program_shape']] = shape
        out_computations.append(c)
    module[MODULE['computations']] = out_computations
    module[MODULE['entry_id']] = positions[number(module, MODULE['entry_id'])]
    for field in ('entry_name', 'id', 'stack_frames'):
        module.pop(MODULE[field], None)
    shape = decode(module[MODULE['program_shape']][0])
    shape.pop(PARAMETER_NAMES, None)
    module[MODULE['program_shape']] = shape
    if MODULE['schedule'] in module:
        schedule = {}
        for entry in decode(module[MODULE['schedule']][0]).get(1, []):
            e = decode(entry)
            position = positions[number(e, 1)]
            sequence = decode(e[2][0]) if 2 in e else {}
            schedule[position] = [sequences[position][x] for x in numbers(sequence.get(1, []))]
        module[MODULE['schedule']] = schedule
    sorted_map(module, MODULE['frontend'])
    return module


def first_difference(a, b, path='module'):
    if type(a) is not type(b):
        return f'{path}: {a!r:.200} against {b!r:.200}'
    if isinstance(a, dict):
        for key in sorted(set(a) | set(b)):
            if key not in a or key not in b:
                return f'{path}.{key}: only on {"our" if key in b else "XLA"} side'
            found = first_difference(a[key], b[key], f'{path}.{key}')
            if found:
                return found
        return None
    if isinstance(a, list):
        if len(a) != len(b):
            return f'{path}: {len(a)} against {len(b)} entries'
        for k, (x, y) in enumerate(zip(a, b)):
            found = first_difference(x, y, f'{path}[{k}]')
            if found:
                return found
        return None
    return None if a == b else f'{path}: {a!r:.200} against {b!r:.200}'


def forms(hlo, text):
    """The file's text, and what XLA makes of it in other printing forms."""
    yield 'file', text
    module = hlo.hlo_module_from_text(text)
    short = hlo.HloPrintOptions.short_parsable()
    shapes = hlo.HloPrintOptions()
    shapes.print_operand_shape = True
    shapes.print_large_constants = True
    shapes.print_percent = False
    yield 'short', module.to_string(short)
    yield 'operand_shapes', module.to_string(shapes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--tool', required=True)
    parser.add_argument('dirs', nargs='+')
    args = parser.parse_args()
    try:
        from jaxlib import _hlo as hlo
        hlo.hlo_module_from_text
    except (ImportError, AttributeError) as e:
        print(f'SKIPPED: jaxlib with an HLO parser cannot be imported ({e}); '
              'pip install jaxlib==0.10.2')
        return 77
    dirs = list(args.dirs)
    if os.environ.get('SHARDCALL_CORPUS'):
        dirs.append(os.environ['SHARDCALL_CORPUS'])
    files = sorted({os.path.basename(f): f for d in dirs
                    for f in glob.glob(os.path.join(d, '*.hlo'))}.values())
    if not files:
        print('no *.hlo files in', dirs)
        return 1
    failures = compared = 0
    with tempfile.TemporaryDirectory() as temp:
        inputs, outputs = os.path.join(temp, 'in'), os.path.join(temp, 'out')
        os.mkdir(inputs)
        os.mkdir(outputs)
        names = []
        for file in files:
            with open(file, encoding='utf-8', newline='') as f:
                text = f.read()
            for form, printed in forms(hlo, text):
                name = f'{os.path.basename(file)}.{form}'
                names.append(name)
                with open(os.path.join(inputs, name), 'w', encoding='utf-8', newline='') as f:
                    f.write(printed)
        run = subprocess.run([args.tool, f'--out={outputs}'] +
                             [os.path.join(inputs, n) for n in names],
                             capture_output=True, text=True, check=False)
        if run.stderr:
            print(run.stderr)
        for name in names:
            out = os.path.join(outputs, name)
            if not os.path.exists(out):
                print(f'{name}: not read')
                failures += 1
                continue
            protos = []
            for path in (os.path.join(inputs, name), out):
                with open(path, encoding='utf-8', newline='') as f:
                    module = hlo.hlo_module_from_text(f.read())
                protos.append(normalise(module.as_serialized_hlo_module_proto()))
            compared += 1
            difference = first_difference(*protos)
            if difference:
                print(f'{name}: {difference}')
                failures += 1
    print(f'{len(files)} files, {compared} texts compared, {failures} differ')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
