# SPDX-License-Identifier: Apache-2.0
"""HLO text, instruction by instruction, as workarounds.py rewrites it."""

import re

from collective_bytes import Instruction

# Opcodes that hand a dynamic-slice's elements on, and that XLA looks through.
MOVES = ('reshape', 'bitcast', 'copy', 'transpose', 'slice', 'convert', 'reverse', 'pad')


def dims_of(kind):
    """[2, 3] of f32[2,3]{1,0}."""
    inside = re.match(r'\w+\[([^\]]*)\]', kind).group(1)
    return [int(d.strip(' <=')) for d in inside.split(',') if d]


def element_of(kind):
    return kind.split('[', maxsplit=1)[0]


def array(element, dims):
    layout = '{' + ','.join(str(d) for d in reversed(range(len(dims)))) + '}' if dims else ''
    return f'{element}[{",".join(str(d) for d in dims)}]{layout}'


def listed(i, name):
    return [int(d) for d in re.findall(r'\d+', i.attribute(name))]


class Text:
    """The instructions of a module's text, which are told apart by their names."""

    def __init__(self, text):
        self.lines = text.split('\n')
        self.at = {k: Instruction(line) for k, line in enumerate(self.lines)
                   if ' = ' in line and line.startswith(' ')}
        self.by_name = {i.name: i for i in self.at.values()}
        self.handed = self.arguments()
        self.new = 0

    def arguments(self):
        """{parameter of a branch: what it is given}. XLA puts a single branch in its place."""
        parameters, inside = {}, ''
        for k, line in enumerate(self.lines):
            if line.startswith('%') and line.endswith('{'):
                inside = line.split(' ')[0]
            elif k in self.at and self.at[k].opcode == 'parameter':
                parameters.setdefault(inside, self.at[k].name)
        return {parameters[branch]: given for i in self.at.values() if i.opcode == 'conditional'
                for branch, given in zip(
                    i.attribute('branch_computations').strip('{}').split(', '), i.operands()[1:])
                if branch in parameters}

    def type(self, name):
        return self.by_name[name].type if name in self.by_name else ''

    def fresh(self, kind, rest):
        """A line of a new instruction, and its name."""
        self.new += 1
        name = f'around.{self.new}'
        return f'  %{name} = {kind} {rest}', name

    def line(self, i, operands, opcode=None, attributes=None):
        inside = ', '.join('%' + o for o in operands)
        return (f'  {"ROOT " if i.root else ""}%{i.name} = {i.type} {opcode or i.opcode}({inside})'
                f'{i.attributes if attributes is None else attributes}')

    def kept(self, i, *which):
        """`i` with these operands kept from XLA's simplifications."""
        operands, lines = i.operands(), []
        for k in which:
            line, name = self.fresh(self.type(operands[k]), f'opt-barrier(%{operands[k]})')
            operands[k] = name
            lines.append(line)
        return lines + [self.line(i, operands)]

    def source(self, name, more=()):
        """The instruction whose elements `name` hands on, `more` opcodes looked through too."""
        found = self.by_name.get(self.handed.get(name, name))
        while found and (found.opcode in (*MOVES, *more) or self.of_one(found)):
            name = found.operands()[0]
            found = self.by_name.get(self.handed.get(name, name))
        return found

    def of_one(self, i):
        """Whether it is its operand: x and x, say."""
        return i.opcode in ('maximum', 'minimum', 'and', 'or') and len(set(i.operands())) == 1

    def reducer(self, i):
        """The opcode of a computation of two scalars, like maximum; '' for any other."""
        body = re.search(r'(?m)^%' + re.escape(i.attribute('to_apply').lstrip('%')) +
                         r' .*\{\n((?:.*\n)*?)\}', '\n'.join(self.lines))
        roots = [Instruction(x) for x in body.group(1).split('\n') if 'ROOT ' in x] if body else []
        return roots[0].opcode if roots and body.group(1).count('\n') == 3 else ''


class Lines(list):
    """New instructions, most of one type."""

    def __init__(self, t, kind):
        super().__init__()
        self.t, self.kind = t, kind

    def new(self, opcode, *operands, rest='', kind=None, bare=False):
        """`bare`: the opcode has its value with it."""
        inside = '' if bare else '(' + ', '.join('%' + o for o in operands) + ')'
        line, name = self.t.fresh(kind or self.kind, f'{opcode}{inside}{rest}')
        self.append(line)
        return name

    def constant(self, value):
        line, name = self.t.fresh(element_of(self.kind) + '[]', f'constant({value})')
        self.append(line)
        return self.new('broadcast', name, rest=', dimensions={}')
