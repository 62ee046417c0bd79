# SPDX-License-Identifier: Apache-2.0
"""Small HLO programs for the verifier, and what is done to break them.

A program is lines `name = shape op(operands), attributes` of the entry. A base,
one line of ops.txt, names shapes as operands; they become parameters.
Computations are those of LIBRARY that a line names, `_f32` being the type put
for T.
"""

import os
import re
import sys

from verifier_modules import MODULES, PROGRAMS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from brackets import closing, split  # noqa: E402

LIBRARY = {
    'add': 'a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b)',
    'one': 'a = T[] parameter(0)\n ROOT r = T[] copy(a)',
    'three': ('a = T[] parameter(0)\n b = T[] parameter(1)\n c = T[] parameter(2)\n'
              ' ROOT r = T[] add(a, b)'),
    'lt': ('a = T[] parameter(0)\n b = T[] parameter(1)\n'
           ' ROOT r = pred[] compare(a, b), direction=LT'),
    'lt2': ('a = T[] parameter(0)\n b = T[] parameter(1)\n c = s32[] parameter(2)\n'
            ' d = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT'),
    'add2': ('a = T[] parameter(0)\n b = s32[] parameter(1)\n c = T[] parameter(2)\n'
             ' d = s32[] parameter(3)\n e = T[] add(a, c)\n f = s32[] add(b, d)\n'
             ' ROOT r = (T[], s32[]) tuple(e, f)'),
    'addv': 'a = T[4] parameter(0)\n b = T[4] parameter(1)\n ROOT r = T[4] add(a, b)',
    'vec': 'a = T[4] parameter(0)\n ROOT r = T[4] copy(a)',
    'vec2': 'a = T[4] parameter(0)\n b = T[4] parameter(1)\n ROOT r = (T[4], T[4]) tuple(a, b)',
    'cond': 'a = T[4] parameter(0)\n ROOT r = pred[] constant(true)',
    'condt': 'a = (s32[], T[4]) parameter(0)\n ROOT r = pred[] constant(true)',
    'bodyt': ('a = (s32[], T[4]) parameter(0)\n b = s32[] get-tuple-element(a), index=0\n'
              ' c = T[4] get-tuple-element(a), index=1\n ROOT r = (s32[], T[4]) tuple(b, c)'),
    'nothing': 'ROOT r = T[4] constant({1,2,3,4})',
    'scan': ('x = T[3] parameter(0)\n c = T[3] parameter(1)\n y = T[3] add(x, c)\n'
             ' ROOT r = (T[3], T[3]) tuple(y, y)'),
    'gathered': 'a = T[2] parameter(0)\n ROOT r = T[8] all-gather(a), dimensions={0}',
    'reduced': ('a = T[4] parameter(0)\n'
                ' ROOT r = T[4] all-reduce(a), to_apply=add_T'),
    'scattered': ('a = T[8] parameter(0)\n'
                  ' ROOT r = T[2] reduce-scatter(a), dimensions={0}, to_apply=add_T'),
}
OTHER_COMPUTATIONS = ['add_f32', 'add_s32', 'one_f32', 'three_f32', 'lt_f32', 'add2_f32', 'vec_f32',
                      'cond_f32', 'nothing_f32']
TYPES = ['pred', 's4', 's8', 's32', 's64', 'u4', 'u8', 'u32', 'u64', 'f16', 'bf16', 'f32', 'f64',
         'f8e4m3fn', 'f8e5m2', 'f4e2m1fn', 'c64', 'c128']
OTHER_TYPES = ['s32', 'u32', 'f32', 'bf16', 'f64', 'pred', 'c64', 's4', 'u8']

UNARY = '''abs ceil floor negate not sign real imag is-finite round-nearest-afz round-nearest-even
popcnt count-leading-zeros copy acos acosh asin asinh atanh cbrt cosine cosh erf exponential
exponential-minus-one log log-plus-one logistic rsqrt sine sinh sqrt tan tanh'''.split()
BINARY = '''add subtract multiply mulhi divide remainder maximum minimum power atan2 and or xor
shift-left shift-right-arithmetic shift-right-logical complex'''.split()
# Every type is tried for these, and for those that ops.txt marks.
SWEPT = []
for op in UNARY:
    result = {'is-finite': 'pred'}.get(op, 'f32')
    SWEPT.append(f'{result}[2,3] {op}(f32[2,3])')
for op in BINARY:
    SWEPT.append(f'f32[2,3] {op}(f32[2,3], f32[2,3])')
OPS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data/verifier/ops.txt')
BASES = list(SWEPT)
with open(OPS) as lines:
    for line in lines:
        if line[0] == '*':
            SWEPT.append(line[2:].rstrip())
        if line[0] != '#':
            BASES.append(line.lstrip('* ').rstrip())

_SHAPE = re.compile(r'(\w+)\[([^\]]*)\](\{[^}]*\})?$')
_LINE = re.compile(r'(ROOT )?(\w+) = (.*)$', re.S)


def instruction(text):
    """(shape, opcode, operands, attributes) of `shape op(operands), attributes`."""
    if text[0] == '(':
        end = closing(text, 0) + 1
    else:
        end = text.index(' ')
    shape, rest = text[:end], text[end:].strip()
    begin = rest.index('(')
    end = closing(rest, begin)
    return shape, rest[:begin], split(rest[begin + 1:end]), split(rest[end + 1:])


def is_shape(text):
    return bool(_SHAPE.match(text)) or (text[:1] == '(' and '[' in text or text == '()')


def computations(text):
    """LIBRARY's computations that `text` names, those they name first."""
    out, seen = [], set()

    def need(text):
        for name, kind in re.findall(r'\b([a-z]\w*?)_(\w+)\b', text):
            if name in LIBRARY and (name, kind) not in seen:
                seen.add((name, kind))
                body = LIBRARY[name].replace('_T', '_' + kind)
                body = re.sub(r'\bT\b', kind, body)
                need(body)
                out.append(f'{name}_{kind} {{\n {body}\n}}\n')
    need(text)
    return ''.join(out)


class Program:
    """lines: [root, name, shape, opcode, operands, attributes]."""

    def __init__(self, text):
        self.lines = []
        for line in text.splitlines():
            root, name, rest = _LINE.match(line).groups()
            self.lines.append([bool(root), name, *instruction(rest)])

    @staticmethod
    def of(line):
        shape, opcode, operands, attributes = instruction(line)
        if opcode == 'constant' or not all(is_shape(x) for x in operands):
            return Program('ROOT r = ' + line)
        text = ''.join(f'p{k} = {x} parameter({k})\n' for k, x in enumerate(operands))
        names = ', '.join(f'p{k}' for k in range(len(operands)))
        more = ''.join(', ' + x for x in attributes)
        return Program(f'{text}ROOT r = {shape} {opcode}({names}){more}')

    def text(self, header):
        body = ''
        for root, name, shape, opcode, operands, attributes in self.lines:
            more = ''.join(', ' + x for x in attributes)
            start = f' {"ROOT " if root else ""}{name} = {shape} {opcode}'
            body += f'{start}({", ".join(operands)}){more}\n'
        return f'HloModule m{header}\n{computations(body)}ENTRY e {{\n{body}}}\n'

    def changed(self, line, field, value):
        copy = Program('')
        copy.lines = [list(x) for x in self.lines]
        copy.lines[line][field] = value
        return copy


def other_shapes(shape):
    """Shapes that are nearly `shape`."""
    if shape[0] == '(':
        parts = split(shape[1:-1])
        for k, part in enumerate(parts):
            for other in other_shapes(part):
                yield '(' + ', '.join(parts[:k] + [other] + parts[k + 1:]) + ')'
            yield '(' + ', '.join(parts[:k] + parts[k + 1:]) + ')'
        yield '(' + ', '.join(parts + ['f32[]']) + ')'
        yield '(' + ', '.join(reversed(parts)) + ')'
        yield f'({shape})'
        yield 'f32[]'
        return
    kind, dims, _ = _SHAPE.match(shape).groups()
    dims = [d for d in dims.split(',') if d]
    if kind == 'token':
        yield 'f32[]'
        yield '(token[])'
        return

    def array(dims, kind=kind):
        return f'{kind}[{",".join(dims)}]'
    for k, d in enumerate(dims):
        n = int(d.strip('<='))
        for other in (str(n + 1), str(max(0, n - 1)), '0', d[2:] if d[0] == '<' else '<=' + d):
            yield array(dims[:k] + [other] + dims[k + 1:])
        yield array(dims[:k] + dims[k + 1:])
    yield array(dims + ['1'])
    yield array(['2'] + dims)
    if len(dims) > 1:
        yield array(dims[1:] + dims[:1])
    for other in OTHER_TYPES:
        if other != kind:
            yield array(dims, other)
    yield f'({array(dims)})'
    yield f'({array(dims)}, {array(dims)})'
    yield 'token[]'


_INT = re.compile(r'(?<![A-Za-z_.\d"])-?\d+|(?<=\dx)\d+|(?<=\d_)-?\d+|(?<=_)\d+(?=x)')
_LIST = re.compile(r'\{[-\d,]*\}')


def other_attributes(attributes):
    for k, attribute in enumerate(attributes):
        def with_(value, k=k):
            return attributes[:k] + [value] + attributes[k + 1:]
        yield attributes[:k] + attributes[k + 1:]
        key, _, value = attribute.partition('=')
        if key == 'dim_labels':
            for other in ('b01f_01io->bf01', 'bf_io->bf', 'b0f_0io->b0f', 'bf01_oi01->bf01',
                          'b01f_01oi->b01f', 'f01b_i01o->b01f', 'b012f_012io->b012f',
                          'bb1f_01io->b01f', 'b01f_01io->b00f', 'b01?f_01io->b01f'):
                yield with_('dim_labels=' + other)
            continue
        if key in ('to_apply', 'calls', 'condition', 'body', 'select', 'scatter',
                   'true_computation', 'false_computation'):
            for other in OTHER_COMPUTATIONS:
                if other != value:
                    yield with_(f'{key}={other}')
            continue
        if key in ('branch_computations', 'called_computations'):
            names = split(value[1:-1])
            for other in OTHER_COMPUTATIONS:
                yield with_(f'{key}={{{", ".join(names[:-1] + [other])}}}')
            yield with_(f'{key}={{{", ".join(names + names[:1])}}}')
            yield with_(f'{key}={{{", ".join(names[1:])}}}')
            continue
        if key.endswith('shape') or key.endswith('constraints'):
            continue
        if value in ('true', 'false'):
            yield with_(f'{key}={"false" if value == "true" else "true"}')
            continue
        for found in _INT.finditer(value):
            n = int(found.group())
            for other in {n - 1, n + 1, 0, 1, -1, 7, 1000000} - {n}:
                yield with_(key + '=' + value[:found.start()] + str(other) + value[found.end():])
        for found in _LIST.finditer(value):
            items = [x for x in found.group()[1:-1].split(',') if x]
            others = [items[:j] + items[j + 1:] for j in range(len(items))]
            others += [items + items[-1:], items + ['0'], list(reversed(items)), []]
            for other in others:
                yield with_(key + '=' + value[:found.start()] + '{' + ','.join(other) + '}' +
                            value[found.end():])


def variants(program):
    """The program and every broken form of it, (what was done, program)."""
    yield 'as it is', program
    for k, (_, name, shape, opcode, operands, attributes) in enumerate(program.lines):
        for other in other_shapes(shape):
            yield f'{name}: shape {other}', program.changed(k, 2, other)
        if opcode in ('parameter', 'constant'):
            continue
        for j in range(len(operands)):
            yield f'{name}: operand {j} dropped', program.changed(
                k, 4, operands[:j] + operands[j + 1:])
            yield f'{name}: operand {j} twice', program.changed(
                k, 4, operands[:j] + [operands[j]] + operands[j:])
            for i in range(j):
                swapped = list(operands)
                swapped[i], swapped[j] = swapped[j], swapped[i]
                yield f'{name}: operands {i} and {j} swapped', program.changed(k, 4, swapped)
        for other in other_attributes(attributes):
            yield f'{name}: attributes {", ".join(other)}', program.changed(k, 5, other)


def all_cases():
    """[(opcode, what, text)], each text once."""
    out, seen = [], set()

    def add(opcode, what, text):
        if text not in seen:
            seen.add(text)
            out.append((opcode, what, text))

    def header(text):
        if 'domain' in text or 'partition-id' in text:
            return ', num_partitions=2'
        if 'channel_id' in text and ('{6,7}' in text or 'f32[2,24]' in text):
            return ', replica_count=4, num_partitions=2'
        if 'channel_id=1' in text and 'use_global' not in text:
            return ', num_partitions=4'
        return ', replica_count=4'
    for line in BASES:
        opcode = instruction(line)[1]
        for what, program in variants(Program.of(line)):
            add(opcode, f'{line}; {what}', program.text(header(line)))
    for line in SWEPT:
        opcode = instruction(line)[1]
        for kind in TYPES:
            swept = re.sub(r'(?<![a-z\d])f32(?=\[)|(?<=_)f32\b', kind, line)
            add(opcode, swept, Program.of(swept).text(header(line)))
    for text in PROGRAMS:
        program = Program(text)
        opcode = next((x[3] for x in program.lines if x[3] not in ('parameter', 'after-all')), '')
        for what, broken in variants(program):
            add(opcode, f'{text}; {what}', broken.text(', replica_count=4'))
    for text in MODULES:
        add('module', text, text)
    return out
