#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the shardings that `shardcall propagate` decides beside those of XLA's own propagation: by
Shardy for programs with its annotations, by GSPMD for the others. Value by value, in random JAX
programs in both styles and in the programs of the corpus.

  propagation_diff.py [--seed=1] [--count=60] [--most-stopped=N] [FILE.hlo...]

prints how many values are cut as XLA cuts them, and each that is cut less or otherwise, and why.
Fails where an op stopped what XLA passes on, for more than N of a hundred thousand values. Exit
status 77 without JAX."""

import argparse
import collections
import dataclasses
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ('.', '../../support', '../../fuzz/live'):
    sys.path.insert(0, os.path.join(HERE, folder))
DEVICES = 8
STYLES = ('sdy', 'gspmd')
# Values that are no more than others under another name.
NAMES_ONLY = {'tuple', 'get-tuple-element', 'opt-barrier'}


def set_environment():
    """Before JAX is imported."""
    os.environ.setdefault('XLA_FLAGS', f'--xla_force_host_platform_device_count={DEVICES}')
    os.environ['JAX_PLATFORMS'] = 'cpu'


@dataclasses.dataclass
class Program:
    name: str
    text: str
    may_set: tuple = None  # see xla_partitioner.compile_until_partitioned


@dataclasses.dataclass
class Value:
    """One that differs."""
    word: str
    mark: int
    ours: str
    theirs: str
    why: str  # of WHY


# Why ours is cut less, or otherwise.
WHY = {
    'constant': 'computed from constants alone: every user has one of its own, cut as it likes',
    'loop': 'a loop indexes it along that dimension, and gathers it once instead of at each turn',
    'stated': 'the program says so, or states no sharding for an argument or a result',
    'devices': 'cut alike, over other devices: a reverse exchanges shards here, and gives devices '
               'other numbers there',
    'conflict': 'its axes lie in another dimension, of those that wanted them',
    'stopped': 'an op that does not pass it on',
}


def random_program(seed, style):
    """None where JAX refuses it."""
    import jax
    import programs
    jax.config.update('jax_use_shardy_partitioner', style == 'sdy')
    made = programs.generated(seed)
    placed = programs.Placed(made)
    arguments = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in made.arguments]
    try:
        lowered = jax.jit(placed.f, **placed.options(), keep_unused=True).lower(*arguments)
    except Exception:  # whatever JAX says
        return None
    text = lowered.compiler_ir('hlo').as_hlo_text()
    head, _, rest = text.partition('\n')
    if 'num_partitions' not in head:
        head += f', num_partitions={placed.mesh.size}'
    return Program(f'{style} {seed}', head + '\n' + rest,
                   ([not a.spec for a in made.arguments], [not s for s in made.result_specs]))


def flags(program):
    if program.may_set is None:
        return []
    return [f'--allow-{what}=' + ','.join('01'[may] for may in each)
            for what, each in zip(('parameters', 'output'), program.may_set) if each]


class Differential:
    def __init__(self):
        import xla_partitioner
        self.xla = xla_partitioner.Partitioner()
        self.after = xla_partitioner.PROPAGATED
        self.devices_of = xla_partitioner.devices_of

    def compare(self, program):
        """({word of verdict.WORDS: values}, [Value] of those that differ), or why not."""
        import marks
        text, opcodes = marks.marked(program.text)
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'program.hlo')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(text)
            return self.compare_marked(program, path, text, opcodes)

    def compare_marked(self, program, path, text, opcodes):
        """The same of the text with marks, which is that of the file, too."""
        import command
        import marks
        import verdict
        ours = command.run(['propagate', path, '--search=none', *flags(program),
                            *command.device_flags(path)], timeout=60)
        if ours.code != 0:
            return ours.err.strip()[:200]
        theirs = self.xla.ask(path, self.after, program.may_set)
        if 'text' not in theirs:
            return 'XLA: ' + re.sub(r'\s+', ' ', theirs['why'])[:200]
        devices, counts, differ = self.devices_of(text), collections.Counter(), []
        of_xla = marks.values(theirs['text'], opcodes)
        for mark, value in marks.values(ours.out, opcodes).items():
            if opcodes[mark] in NAMES_ONLY or mark not in of_xla:
                continue
            leaves = zip(marks.leaves(*value[:2]), marks.leaves(*of_xla[mark][:2]))
            for k, (a, b) in enumerate(leaves):
                if a[:2] != b[:2] or not a[1]:
                    continue
                word = verdict.verdict(a[2], b[2], a[1], devices)
                counts[word] += 1
                if word in ('less', 'other'):
                    why = verdict.devices_only(a[2], b[2], len(a[1]), devices) and 'devices'
                    name = value[2] + (f'#{k}' if value[0].startswith('(') else '')
                    differ.append((name, Value(word, mark, a[2], b[2], why)))
        if any(not v.why for _, v in differ):
            self.explain(program, path, ours.out, differ)
        return counts, [v for _, v in differ]

    def explain(self, program, path, ours, differ):
        """Fills in why values differ, of which the names are given."""
        import command
        import marks
        constant = marks.of_constants(ours)
        trace = command.run(['propagate', path, '--search=none', '--trace', *flags(program),
                             *command.device_flags(path)], timeout=60).out
        reasons = dict(re.match(r'%(\S+) \S*(.*)', line).groups() for line in trace.splitlines()
                       if re.match(r'%\S+ ', line))
        for name, v in differ:
            reason = reasons.get(name, '')
            v.why = v.why or (
                'constant' if name in constant else 'loop' if 'a loop indexes' in reason else
                'stated' if re.search('annotated so|states no sharding', reason) else
                'conflict' if v.word == 'other' else 'stopped')

    def close(self):
        self.xla.close()


def line_of(text, mark):
    """Of that mark in the program as it was."""
    import marks
    for numbered, line in zip(marks.marked(text)[0].split('\n'), text.split('\n')):
        if f'"mark_{mark}_"' in numbered:
            return marks.without_metadata(line.strip())
    return ''


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=60)
    parser.add_argument('--most-stopped', type=int, help='of 100,000 values')
    parser.add_argument('files', nargs='*')
    args = parser.parse_args()
    set_environment()
    try:
        import jax  # noqa: F401
    except ImportError:
        print('SKIPPED: JAX cannot be imported')
        return 77
    made = [Program(os.path.basename(p), read(p)) for p in args.files] or [
        p for style in STYLES for seed in range(args.seed, args.seed + args.count)
        for p in [random_program(seed, style)] if p is not None]
    totals, whys = collections.Counter(), collections.Counter()
    refused, differential = 0, Differential()
    for program in made:
        answer = differential.compare(program)
        if isinstance(answer, str):
            print(f'{program.name}: {answer}')
            refused += 1
            continue
        totals.update(answer[0])
        whys.update(v.why for v in answer[1])
        for v in answer[1]:
            print(f'{program.name}: {v.word}, {v.why}: {line_of(program.text, v.mark)[:160]}\n'
                  f'    ours {v.ours or "{replicated}"}, XLA {v.theirs or "{replicated}"}')
    differential.close()
    values = sum(totals.values())
    print(f'{len(made)} programs, {values} values: ' +
          ', '.join(f'{n} {word}' for word, n in totals.most_common()) +
          f'; {refused} programs refused')
    for why, n in whys.most_common():
        print(f'{n} {why}: {WHY[why]}')
    stopped = 100000 * whys['stopped'] // max(values, 1)
    if args.most_stopped is not None and (stopped > args.most_stopped or not values):
        print(f'{stopped} of 100,000 are cut less for want of an op that passes it on, more than '
              f'{args.most_stopped}')
        return 1
    return 0


def read(path):
    with open(path, encoding='utf-8', newline='') as f:
        return f.read()


if __name__ == '__main__':
    sys.exit(main())
