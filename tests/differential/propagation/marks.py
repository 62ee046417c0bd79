# SPDX-License-Identifier: Apache-2.0
"""Finds the values of a program again behind a compiler's passes: each instruction gets an op_name
of its own, which stays with it where names and numbers do not."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'support'))
import collective_bytes  # noqa: E402

_INSTRUCTION = re.compile(r'\s*(ROOT )?%?[\w.\-$~]+ = ')
_TEXT = r'"(?:\\.|[^"\\])*"'
_METADATA = re.compile(rf'({_TEXT})|, metadata=\{{(?:{_TEXT}|[^{{}}"]|\{{[^}}]*\}})*\}}')
# Whose values do not follow from their operands, or are not in this computation.
HIDDEN = {'parameter', 'while', 'conditional', 'call', 'custom-call', 'rng'}
_MARK = re.compile(r'mark_(\d+)_')


def without_metadata(line):
    return _METADATA.sub(lambda found: found.group(1) or '', line)


def marked(text):
    """(the same module with marks, {mark: opcode})."""
    lines, opcodes = [], {}
    for line in text.split('\n'):
        if _INSTRUCTION.match(line):
            mark = len(opcodes)
            opcodes[mark] = collective_bytes.Instruction(line).opcode
            line = without_metadata(line.rstrip()) + f', metadata={{op_name="mark_{mark}_"}}'
        lines.append(line)
    return '\n'.join(lines), opcodes


def values(text, opcodes):
    """{mark: (type, sharding, name)} of the instructions that are still there, once each, and are what
    they were. What was inlined has the mark of the call in front of its own."""
    found = {}
    for line in text.split('\n'):
        if not _INSTRUCTION.match(line):
            continue
        i = collective_bytes.Instruction(line)
        marks = _MARK.findall(line)
        if marks and opcodes.get(int(marks[-1])) == i.opcode:
            found.setdefault(int(marks[-1]), []).append(
                (i.type, i.attribute('sharding'), i.name))
    return {mark: of[0] for mark, of in found.items() if len(of) == 1}


def leaves(type_text, sharding):
    """[(element type, dims, sharding)] of the arrays of a value; the sharding of a tuple is a list,
    or one for all."""
    types = _parts(type_text)
    given = collective_bytes.elements(sharding) if sharding.startswith('{{') else \
        [sharding] * len(types)
    if len(given) != len(types):
        return []
    arrays = [re.match(r'([a-z]\w*)\[([\d,]*)\]', t.strip()) for t in types]
    return [(a.group(1), [int(d) for d in a.group(2).split(',') if d], s.strip())
            for a, s in zip(arrays, given) if a]


def of_constants(text):
    """The names of the instructions that are computed from constants alone."""
    found = set()
    for computation in collective_bytes.Module(text).computations.values():
        for i in computation:
            if i.opcode in ('constant', 'iota') or \
                    i.opcode not in HIDDEN and i.inside and found.issuperset(i.operands()):
                found.add(i.name)
    return found


def _parts(type_text):
    if not type_text.startswith('('):
        return [type_text]
    return [leaf for part in collective_bytes.elements(type_text) for leaf in _parts(part.strip())]
