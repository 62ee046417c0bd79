# SPDX-License-Identifier: Apache-2.0
"""Bytes that one device sends in the collectives of a per-device HLO module, whoever
wrote it: counted over the text, by the usual ring algorithms for a group of g devices.

  all-gather          operand x (g - 1)
  all-reduce          2 x operand x (g - 1) / g
  reduce-scatter,
  all-to-all          operand x (g - 1) / g
  collective-permute  operand x the share of devices that send to another one

A loop's body counts as often as it runs, where that can be read off: a known trip count,
or a condition that compares with a constant. Of a conditional's branches the dearest
counts. The collectives of a program that starts and ends them apart count at the start."""

import math
import re

BITS = {'pred': 8, 'token': 0, 'opaque': 0, 'bf16': 16, 'c64': 64, 'c128': 128}
_ARRAY = re.compile(r'\b([a-z][a-z0-9]*)\[([\d,<= ]*)\]')
_BITS = re.compile(r'[a-z]+(\d+)')
_NAMES = re.compile(r'%?([\w.\-]+)')
KINDS = ('all-gather', 'all-reduce', 'reduce-scatter', 'all-to-all', 'ragged-all-to-all',
         'collective-permute', 'collective-broadcast')


def type_bytes(text):
    """Of all arrays of a type."""
    total = 0
    for name, dims in _ARRAY.findall(text):
        bits = BITS.get(name) if name in BITS else int(_BITS.match(name).group(1))
        total += math.prod(int(d.strip(' <=')) for d in dims.split(',') if d.strip()) * bits / 8
    return total


def _closing(text, at):
    """Behind the bracket that closes the one at `at`."""
    depth = 0
    quoted = False
    while at < len(text):
        c = text[at]
        if quoted:
            if c == '\\':
                at += 1
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in '([{':
            depth += 1
        elif c in ')]}':
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def type_of(operand, types):
    """Of an operand, given the types of instructions. `t#1`, as jaxlib 0.12 writes them, is an
    element of a tuple."""
    name, *indices = operand.split('#')
    text = types[name]
    for index in indices:
        text = elements(text)[int(index)]
    return text


def elements(text):
    """What stands between the brackets around a tuple's type or sharding."""
    found, depth, start = [], 0, 1
    for at, c in enumerate(text):
        depth += (c in '([{') - (c in ')]}')
        if c == ',' and depth == 1 or depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return found


class Instruction:
    def __init__(self, line):
        text = re.sub(r'/\*.*?\*/', '', line)
        name, _, rest = text.partition(' = ')
        self.root = name.strip().startswith('ROOT ')
        self.name = name.replace('ROOT ', '').strip().lstrip('%')
        rest = rest.lstrip()
        end = _closing(rest, 0) if rest.startswith('(') else rest.find(' ')
        self.type = rest[:end]
        rest = rest[end:].lstrip()
        begin = rest.find('(')
        self.opcode = rest[:begin]
        end = _closing(rest, begin)
        self.inside = rest[begin + 1:end - 1]  # operands, or a constant's value
        self.attributes = rest[end:]

    def attribute(self, name):
        found = re.search(r'[ ,]' + name + r'=', self.attributes)
        if not found:
            return ''
        rest = self.attributes[found.end():]
        if rest[0] in '{(':
            return rest[:_closing(rest, 0)]
        if rest.startswith(('mesh', '@')):
            return re.match(r'@?\w*(\[[^\]]*\])?[^{]*\{[^}]*\}', rest).group(0)
        if rest[0] == '[':
            return re.match(r'[\[\]\d,<=T()]*', rest).group(0).rstrip(',')
        return re.match(r'[^,\s]*', rest).group(0)

    def operands(self):
        return [part.split()[-1].lstrip('%') for part in self.inside.split(', ') if part]


class Module:
    def __init__(self, text):
        self.computations, self.entry, current = {}, None, None
        self.partitions = 1
        for line in text.split('\n'):
            if line.startswith('HloModule'):
                found = re.search(r'num_partitions=(\d+)', line)
                self.partitions = int(found.group(1)) if found else 1
            elif current is None:
                found = re.match(r'(ENTRY )?%?([\w.\-$~]+).*\{\s*$', line)
                if found and ' = ' not in line.split('(', maxsplit=1)[0]:
                    current = self.computations[found.group(2)] = []
                    if found.group(1):
                        self.entry = found.group(2)
            elif line.startswith('}'):
                current = None
            elif ' = ' in line:
                current.append(Instruction(line))

    def group_size(self, groups):
        """The mean over devices, where groups differ in size."""
        lists = re.findall(r'\{([\d, ]+)\}', groups)
        if lists:
            sizes = [len(g.split(',')) for g in lists]
            return sum(s * s for s in sizes) / sum(sizes)
        iota = re.match(r'\[(\d+),(\d+)\]<=', groups)
        if iota:
            return int(iota.group(2))
        named = re.match(r"@?\w*\[([^\]]*)\].*\{([^}]*)\}", groups)
        if named:
            axes = {n: int(s) for n, s in re.findall(r"'([^']*)'=(\d+)", named.group(1))}
            return math.prod(int(part) if part else axes[n] for n, part in
                             re.findall(r"'([^']*)'(?::\(\d+\)(\d+))?", named.group(2)))
        return self.partitions

    def sent(self, instruction, types):
        """[kind, bytes] of one execution; None for what is no collective."""
        kind = instruction.opcode.removesuffix('-start')
        if kind not in KINDS or instruction.opcode.endswith('-done'):
            return None
        operand = sum(type_bytes(type_of(o, types)) for o in instruction.operands())
        if kind == 'collective-permute':
            pairs = re.findall(r'\{(\d+),(\d+)\}', instruction.attribute('source_target_pairs'))
            return kind, operand * sum(a != b for a, b in pairs) / self.partitions
        g = self.group_size(instruction.attribute('replica_groups'))
        share = {'all-gather': g - 1, 'all-reduce': 2 * (g - 1) / g,
                 'collective-broadcast': 1 / g if g > 1 else 0}.get(kind, (g - 1) / g)
        return kind, operand * share

    def trips(self, loop):
        known = re.search(r'known_trip_count\D*(\d+)', loop.attributes)
        if known:
            return int(known.group(1))
        condition = self.computations.get(loop.attribute('condition').lstrip('%'), [])
        by_name = {i.name: i for i in condition}
        bound = next((i for i in condition if i.root), None)
        if bound is None or bound.opcode != 'compare' or 'direction=LT' not in bound.attributes:
            return 1
        bound = by_name.get(bound.operands()[-1])
        while bound is not None and bound.opcode in ('copy', 'convert', 'reshape', 'bitcast'):
            bound = by_name.get(bound.operands()[0])
        if bound is not None and bound.opcode == 'constant' and bound.inside.isdigit():
            return max(1, int(bound.inside))
        return 1

    def totals(self, name=None, memo=None):
        """{kind: bytes} of a computation, the entry by default."""
        memo = {} if memo is None else memo
        name = name or self.entry
        if name in memo:
            return memo[name]
        sums = memo[name] = {}
        body = self.computations.get(name, [])
        types = {i.name: i.type for i in body}

        def add(more, times=1):
            for kind, value in more.items():
                sums[kind] = sums.get(kind, 0) + value * times
        for i in body:
            sent = self.sent(i, types)
            if sent:
                add({sent[0]: sent[1]})
            elif i.opcode == 'while':
                add(self.totals(i.attribute('body').lstrip('%'), memo), self.trips(i))
            elif i.opcode == 'conditional':
                names = _NAMES.findall(i.attribute('branch_computations')) or [
                    i.attribute(k).lstrip('%') for k in ('true_computation', 'false_computation')]
                add(max((self.totals(n, memo) for n in names if n), key=lambda t: sum(t.values())))
            elif i.opcode in ('call', 'fusion', 'async-start'):
                for key in ('to_apply', 'calls'):
                    callee = i.attribute(key).lstrip('%')
                    if callee:
                        add(self.totals(callee, memo))
        return sums


def total(text):
    return sum(Module(text).totals().values())
