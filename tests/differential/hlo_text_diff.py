#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our reading and printing of HLO text with XLA's.

For every *.hlo file, and every text of accepted.txt: jaxlib reads it and what
`hlo_convert` makes of it into HloModuleProtos, which must be equal field by
field but for ids, names of instructions and computations, and the order of
computations and of the stack-frame tables. The same is done with the file in
each other form that XLA prints and reads itself (short, canonical, with operand
shapes, ...), which our parser must read too. Our short form of a file must be
XLA's byte for byte but for the order of computations, up to jaxlib 0.11: newer
ones write elements of tuples without a name of their own. What stands in
refused.txt must be refused by both.

  hlo_text_diff.py --tool=build/bin/hlo_convert DIR...

SHARDCALL_CORPUS adds one more folder. Exit code 77: jaxlib is not there.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402
import jaxlib_parser  # noqa: E402

MODULE = {'name': 1, 'entry_name': 2, 'computations': 3, 'program_shape': 4, 'id': 5,
          'entry_id': 6, 'schedule': 7, 'stack_frames': 17, 'frontend': 19, 'recovery': 20}
COMPUTATION = {'name': 1, 'instructions': 2, 'program_shape': 4, 'id': 5, 'root': 6}
INSTRUCTION = {'name': 1, 'metadata': 7, 'id': 35, 'operands': 36, 'controls': 37, 'called': 38,
               'frontend': 68}
PARAMETER_NAMES = 3  # of ProgramShapeProto
# What the parser of jaxlib 0.12 takes. JAX and XLA do not write such groups, which name no axis
# of the mesh, and XLA's verifier refuses such ops.
READ_BY_NEWER = ('E019 mesh groups of one device each', 'E020 a done of no start',
                 'E005 aliasing on an update')
RECOVERY_MODULE = 3  # of a row of the origin recovery table
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


def in_calling_order(computations, entry):
    """From the entry on, each computation where it is first called; then what
    hangs on computations that nobody calls, these by name."""
    by_id = {number(c, COMPUTATION['id']): c for c in computations}
    called = {at: [x for i in c[COMPUTATION['instructions']]
                   for x in numbers(decode(i).get(INSTRUCTION['called'], []))]
              for at, c in by_id.items()}
    uncalled = set(by_id) - {x for calls in called.values() for x in calls} - {entry}
    roots = [entry] + sorted(uncalled, key=lambda at: by_id[at][COMPUTATION['name']][0])
    order, seen, stack = [], set(), list(reversed(roots))
    while stack:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        order.append(by_id[at])
        stack += reversed(called[at])
    return order


def in_order_of_use(computation):
    """The instructions each behind its operands, what the root needs first: where a reader puts
    the elements of tuples that have no line of their own (`%t#0`) is its own affair."""
    raw = {number(decode(i), INSTRUCTION['id']): i for i in computation[COMPUTATION['instructions']]}
    by_id = {at: decode(i) for at, i in raw.items()}
    order, stack = {}, [*reversed(by_id), number(computation, COMPUTATION['root'])]
    while stack:
        at = stack.pop()
        missing = [x for x in numbers(by_id[at].get(INSTRUCTION['operands'], [])) +
                   numbers(by_id[at].get(INSTRUCTION['controls'], [])) if x not in order]
        if at not in order and not missing:
            order[at] = raw[at]
        elif at not in order:
            stack += [at, *reversed(missing)]
    return list(order.values())


def normalise(serialized, by_use=False):
    """The module with ids replaced by positions and names removed; `by_use`: in_order_of_use."""
    module = decode(serialized)
    meanings = frame_meanings(module)
    computations = [decode(c) for c in module[MODULE['computations']]]
    for c in computations if by_use else ():
        c[COMPUTATION['instructions']] = in_order_of_use(c)
    computations = in_calling_order(computations, number(module, MODULE['entry_id']))
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
    for k, table in enumerate(module.get(MODULE['recovery'], [])):
        rows = [decode(row) for row in decode(table).get(1, [])]
        for row in rows:
            row[RECOVERY_MODULE] = [normalise(m) for m in row.get(RECOVERY_MODULE, []) if m]
        module[MODULE['recovery']][k] = rows
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


def print_forms(hlo):
    """(name, options) of XLA's ways to print; not all can be read again."""

    def options(**fields):
        out = hlo.HloPrintOptions()
        out.print_large_constants = True
        for name, value in fields.items():
            setattr(out, name, value)
        return out

    canonical = hlo.HloPrintOptions.canonical()
    canonical.print_large_constants = True
    return [
        ('short', hlo.HloPrintOptions.short_parsable()),
        ('canonical', canonical),
        ('fingerprint', hlo.HloPrintOptions.fingerprint()),
        ('operand_shapes', options(print_operand_shape=True, print_percent=False)),
        ('compact_operands', options(compact_operands=True)),
        ('no_layouts', options(include_layout_in_shapes=False)),
        ('bare', options(print_program_shape=False, print_metadata=False,
                         print_backend_config=False, print_control_dependencies=False)),
        ('no_ids', options(print_ids=False)),
        ('no_result_shapes', options(print_result_shape=False)),
        ('canonical_names', options(canonicalize_instruction_names=True)),
        ('inline_computations', options(canonicalize_computations=True, indent_amount=3)),
    ]


def short_form(hlo, text):
    """XLA's, with what ours differs in: control predecessors and -0.0."""
    options = hlo.HloPrintOptions.short_parsable()
    options.print_control_dependencies = True
    return jaxlib_parser.for_xla(hlo.hlo_module_from_text(text).to_string(options))


def forms(hlo, text):
    """The file's text, and what XLA makes of it in forms that it reads itself."""
    yield 'file', text
    module = hlo.hlo_module_from_text(text)
    for name, options in print_forms(hlo):
        printed = module.to_string(options)
        try:
            hlo.hlo_module_from_text(printed)
        except Exception:  # pylint: disable=broad-except
            continue
        yield name, printed


def cases(path):
    """(title, text) of each text in a file; see tests/data/hlo_text/README.md."""
    with open(path, encoding='utf-8', newline='') as f:
        parts = re.split(r'(?m)^### (.*)\n', f.read())
    for title, text in zip(parts[1::2], parts[2::2]):
        if text.startswith('body\n'):
            text = 'HloModule m\n\nENTRY %e {\n' + text[len('body\n'):] + '}\n'
        yield title, text


def main():
    tool, files, hlo = jaxlib_parser.start()
    failures = compared = 0
    with tempfile.TemporaryDirectory() as temp:
        inputs, outputs = os.path.join(temp, 'in'), os.path.join(temp, 'out')
        os.mkdir(inputs)
        os.mkdir(outputs)
        names, refused = [], []

        def add(name, text):
            names.append(name)
            with open(os.path.join(inputs, name), 'w', encoding='utf-8', newline='') as f:
                f.write(text)

        shorts = {}
        newer = jaxlib_parser.writes_elements_without_names()
        for file in files:
            with open(file, encoding='utf-8', newline='') as f:
                text = jaxlib_parser.for_xla(f.read())
            if not newer:
                shorts[os.path.basename(file) + '.file'] = short_form(hlo, text)
            for form, printed in forms(hlo, text):
                add(f'{os.path.basename(file)}.{form}', jaxlib_parser.for_xla(printed))
        for title, text in cases(os.path.join(command.DATA, 'hlo_text', 'accepted.txt')):
            add(f'accepted.txt, {title.replace("/", " ")}', text)
        for title, text in cases(os.path.join(command.DATA, 'hlo_text', 'refused.txt')):
            add(f'refused.txt, {title.replace("/", " ")}', text)
            refused.append(names.pop())
        run = subprocess.run([tool, '--to=text', f'--out={outputs}'] +
                             [os.path.join(inputs, n) for n in names + refused],
                             capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):
            print('hlo_convert ended with', run.returncode, run.stderr[-2000:])
            return 1
        short_out = os.path.join(temp, 'short')
        os.mkdir(short_out)
        subprocess.run([tool, '--to=text', '--short', f'--out={short_out}'] +
                       [os.path.join(inputs, n) for n in shorts], check=False)
        for name, expected in shorts.items():
            path = os.path.join(short_out, name)
            printed = open(path, encoding='utf-8', newline='').read() if os.path.exists(path) else ''
            # XLA does not keep the order of computations when it prints again.
            ours, theirs = (sorted(t.split('\n\n')) for t in (printed, expected))
            if ours != theirs:
                differing = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
                print(f'{name}: the short form is not XLA\'s: {str(differing[:1])[:2000]}')
                failures += 1
        for name in refused:
            with open(os.path.join(inputs, name), encoding='utf-8', newline='') as f:
                text = f.read()
            try:
                hlo.hlo_module_from_text(text)
                if not newer or name.removeprefix('refused.txt, ') not in READ_BY_NEWER:
                    print(f'{name}: XLA reads it')
                    failures += 1
            except Exception:  # pylint: disable=broad-except
                pass
            if os.path.exists(os.path.join(outputs, name)):
                print(f'{name}: was read')
                failures += 1
        for name in names:
            out = os.path.join(outputs, name)
            if not os.path.exists(out):
                found = run.stderr.find(os.path.join(inputs, name))
                print(f'{name}: not read\n{run.stderr[max(found - 200, 0):found + 400]}')
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
    print(f'{len(files)} files, {compared} texts compared, {len(refused)} refused, '
          f'{failures} differ')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
