#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The evaluator against XLA's CPU backend, op by op and type by type.

  SHARDCALL_COMMAND=build/bin/shardcall ops.py [--all|--full] [--only=TEXT] [--table=FILE.md]

Exit status: 0 all agree, 1 some do not, 77 jaxlib, numpy or ml_dtypes are not
there. README.md says how cases are written and what agreement means.
"""

import argparse
import collections
import importlib
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, '..', '..', 'support'))
import command  # noqa: E402
import known_aborts  # noqa: E402

CASES_A_PROGRAM = 96
# Without --all or --full, of the cases of each op one in so many: XLA takes minutes to compile all.
ONE_IN = 3


class Outcome:
    """What came of one case."""

    def __init__(self, case):
        self.case = case
        self.wrong = ''        # text: how it disagrees
        self.refused = ''      # text: why ours did not run
        self.xla = ''          # text: why XLA did not run
        self.died = False      # XLA's process ended over it
        self.compared = False
        self.elements = self.equal = self.by_reference = 0
        self.examples = ''     # text: where only the reference agrees
        self.farthest = 0.0    # from XLA, or from the reference where XLA refuses

    @property
    def death(self):
        """What is wrong about XLA's end over the case, or about the want of one."""
        known, always = known_aborts.why(str(self.case))
        if self.died and not known:
            return f'XLA {self.xla}, which known_aborts.py does not have'
        return f'XLA does not abort, known_aborts.py says that it does: {known}' \
            if always and not self.died else ''

    @property
    def fails(self):
        return bool(self.wrong or self.death or (self.refused and not self.case.missing) or
                    (not self.refused and self.case.missing))


def places(case, k, where, got, want, reference, np):
    """A few elements with their operands."""
    text = ''
    for at in [tuple(int(i) for i in b) for b in np.argwhere(where)[:6]]:
        given = [str(x[at]) for x in case.inputs if np.shape(x) == got.shape]
        text += '\n      at %s%s: %s' % (list(at), ' of ' + ', '.join(given) if given else '',
                                        got[at])
        if want is not None:
            text += f', XLA {want[at]}'
        if reference is not None:
            text += f', reference {reference[k][at]}'
    return text


def judge(case, ours, xla, np, T, suite, engines):
    out = Outcome(case)
    if isinstance(xla, Exception):
        out.xla, out.died = str(xla), isinstance(xla, engines.Died)
    elif [x.shape for x in xla] != [dims for _, dims in case.result_types()]:
        out.xla = 'results of other shapes'  # it took another type for ours
    if isinstance(ours, Exception):
        out.refused = str(ours)
        return out
    if case.missing:
        out.wrong = f'is said to be missing ({case.missing}), but runs'
    reference = suite.reference_arrays(case)
    for k, ((name, dims), got) in enumerate(zip(case.result_types(), ours)):
        if got.shape != dims and not any(d < 0 for d in dims):
            out.wrong = f'result {k} has shape {got.shape} in place of {dims}'
            continue
        out.elements += got.size
        right = np.zeros(got.shape, bool)
        want = None
        agreement = case.agreement
        if not out.xla:
            want = T.cast(xla[k], name)
            out.compared = True
            ok = agreement.accepts(got, want)
            equal = T.same_bits(got, want, agreement.payload)
            out.equal += int(equal.sum())
            distance = agreement.distance(got, want)
            if not case.reference_first:
                right |= ok
            if ok.any() and agreement.kind != 'bitwise':
                out.farthest = max(out.farthest, float(distance[ok].max()))
        if reference is not None:
            exact = reference[k]
            ok = agreement.accepts(got, exact)
            out.by_reference += int((ok & ~right).sum()) if not out.xla else 0
            right |= ok
            if out.xla:
                out.compared = True
                out.equal += int(T.same_bits(got, exact, agreement.payload).sum())
                if ok.any() and agreement.kind != 'bitwise':
                    out.farthest = max(out.farthest,
                                       float(agreement.distance(got, exact)[ok].max()))
        if not out.compared:
            continue
        if not right.all():
            out.wrong = f'result {k}: {int((~right).sum())} of {got.size} elements differ' + places(
                case, k, ~right, got, want, reference, np)
        if want is not None and reference is not None:
            only = right & ~agreement.accepts(got, want)
            out.examples += places(case, k, only, got, want, reference, np)
    return out


def families(only):
    names = sorted(f[:-3] for f in os.listdir(HERE) if f.startswith('family_') and
                   f.endswith('.py'))
    return [n for n in names if not only or any(o in n for o in only)]


def by_xla(xla, cases, engines):
    """What XLA answers; each case that ends its process in a program of its own."""
    def fatal(case):
        return known_aborts.why(str(case))[1]
    answers = engines.run_all(xla, [case for case in cases if not fatal(case)])
    for case in filter(fatal, cases):
        answers.update(engines.run_all(xla, [case]))
    return answers


def one_in(count, cases):
    """Of each op the first case and every `count`-th after it."""
    seen = collections.Counter()
    chosen = []
    for case in cases:
        if seen[case.family, case.op] % count == 0:
            chosen.append(case)
        seen[case.family, case.op] += 1
    return chosen


def run(args, np, T, suite, engines):
    cases = suite.Suite()
    for name in families(args.family):
        cases.family = name
        importlib.import_module(name).register(cases.add, args.full)
    chosen = [c for c in cases.cases if not args.only or any(o in str(c) for o in args.only)]
    if not (args.all or args.full or args.only):
        chosen = one_in(ONE_IN, chosen)
    xla, ours = engines.Xla(args.timeout), engines.Ours(args.timeout)
    outcomes = []
    try:
        for begin in range(0, len(chosen), CASES_A_PROGRAM):
            part = chosen[begin:begin + CASES_A_PROGRAM]
            theirs, mine = by_xla(xla, part, engines), engines.run_all(ours, part)
            for case in part:
                outcomes.append(judge(case, mine[id(case)], theirs[id(case)], np, T, suite,
                                      engines))
    finally:
        xla.close()
    return outcomes


def figure(x):
    return f'{x:.0f}' if x == int(x) else f'{x:.2g}'


def words(o):
    """The agreement cell of one case."""
    if o.refused:
        return '**missing**'
    if o.wrong:
        return '**differs**'
    a = o.case.agreement
    whom = '' if not o.xla else ' (reference)'
    if not o.compared:
        return 'runs; nothing to compare with'
    if o.equal == o.elements:
        return 'bitwise' + whom
    if a.kind == 'bitwise':
        return 'bitwise, or the reference'
    unit = {'ulp': 'ulp', 'parts': 'ulp of each part'}.get(a.kind, 'of the largest')
    return f'within {a.limit:g} {unit}' + whom + (', or of the reference' if o.by_reference else '')


def table(outcomes):
    """Markdown: one row for each op and agreement, with the types that have it."""
    rows = collections.OrderedDict()
    for o in outcomes:
        rows.setdefault((o.case.family, o.case.op), collections.OrderedDict()).setdefault(
            o.case.types, []).append(o)
    lines = ['| Op | Types | Agreement with XLA | Cases | Elements | Farthest | By the reference '
             'only; why |', '|---|---|---|---|---|---|---|']
    rank = {'**differs**': 0, '**missing**': 1}
    for (_, op), by_type in rows.items():
        merged = collections.OrderedDict()
        for types, group in by_type.items():
            worst = min((words(o) for o in group),
                        key=lambda w: (rank.get(w, 2), w.startswith('bitwise'),
                                       w == 'bitwise', w))
            why = sorted({o.case.freedom for o in group if o.by_reference and o.case.freedom} |
                         {'XLA refuses' for o in group if o.xla and not o.refused} |
                         {o.case.missing or o.refused for o in group if o.refused})
            merged.setdefault((worst, '; '.join(why)), []).append((types, group))
        for (worst, why), members in merged.items():
            group = [o for _, g in members for o in g]
            by_reference = sum(o.by_reference for o in group)
            farthest = max(o.farthest for o in group)
            note = (f'{by_reference}; ' if by_reference else '') + why
            lines.append('| `%s` | %s | %s | %d | %d | %s | %s |' % (
                op, ' '.join(t for t, _ in members), worst, len(group),
                sum(o.elements for o in group), figure(farthest) if farthest else '',
                note.replace('|', '/')))
    return '\n'.join(lines) + '\n'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--all', action='store_true',
                        help=f'all cases, not one in {ONE_IN} of each op')
    parser.add_argument('--full', action='store_true', help='many more values and cases')
    parser.add_argument('--only', action='append', help='cases whose "op types label" has the text')
    parser.add_argument('--family', action='append', help='family files whose name has the text')
    parser.add_argument('--table', help='write the table here')
    parser.add_argument('--timeout', type=float, default=300, help='seconds for one program')
    parser.add_argument('--verbose', action='store_true',
                        help='also why XLA refuses, and where only the reference agrees')
    args = parser.parse_args()
    try:
        import numpy as np
        import ml_dtypes  # noqa: F401
        import jaxlib  # noqa: F401
        import jax  # noqa: F401
    except ImportError as e:
        print(f'SKIPPED: {e}; pip install jax ml_dtypes')
        return command.SKIPPED
    import engines
    import hlo_types as T
    import suite
    started = time.time()
    outcomes = run(args, np, T, suite, engines)
    for o in outcomes:
        if o.fails:
            print(f'{o.case}: {o.wrong or o.death or "is refused: " + o.refused}')
        elif args.verbose and o.xla:
            print(f'{o.case}: XLA: {o.xla}')
        elif args.verbose and o.by_reference:
            print(f'{o.case}: {o.by_reference} by the reference only{o.examples}')
    text = table(outcomes)
    if args.table:
        with open(args.table, 'w', encoding='utf-8') as f:
            f.write(text)
    failed = sum(o.fails for o in outcomes)
    print('%d cases, %d elements; %d disagree, %d missing, %d without XLA, which died over %d; '
          '%.0f s' % (
        len(outcomes), sum(o.elements for o in outcomes), failed,
        sum(bool(o.refused) for o in outcomes), sum(bool(o.xla) for o in outcomes),
        sum(o.died for o in outcomes),
        time.time() - started))
    return 1 if failed or not outcomes else 0


if __name__ == '__main__':
    sys.exit(main())
