#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section of tests/STATUS.md on bytes: what one device sends by our partitioner and
by XLA's, file by file.

  SHARDCALL_CORPUS=DIR xla_bytes.py --record       runs the XLA partitioner of this Python's jaxlib
                                                   over the corpus and writes its part of
                                                   xla_bytes.json anew

jaxlib 0.12 and later take the files that JAX 0.12 dumped, SHARDCALL_NEWEST_CORPUS=DIR; an older
one takes the others. The rest is make_status.py's: it counts our bytes, writes the table from the
record, and its --check fails where a file sends more than the table says. Both counts are of
tests/support/collective_bytes.py. The record has the files with Shardy's and with GSPMD's
annotations, under the names of JAX 0.10.2; where XLA does not partition, it has the reason.
"""

import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import collective_bytes  # noqa: E402
import command  # noqa: E402
import sections  # noqa: E402

RECORD = os.path.join(HERE, 'xla_bytes.json')
TITLE = '## Bytes against XLA'
HEAD = TITLE + """

What one device sends in a run, by the ring algorithms, in the module of `shardcall partition` and
in that of XLA's own partitioner (jaxlib, recorded in `tests/status/xla_bytes.json`), from
Shardy's annotations (`sdy`) and from GSPMD's (`gspmd`), each jaxlib with the files that the JAX of
its version dumps. XLA gathers the operands of custom calls, which here have a rule.

"""
TOTALS = ('jaxlib', 'files', 'send no more than by XLA', 'both send in',
          'geometric mean of their ratios', 'ours in all', 'by XLA in all')


def rounded(count):
    """Fractions are of uneven groups, and of permutes in which not all devices send."""
    return round(count, 1) if count != int(count) else int(count)


def ours(path):
    """Of a per-device module that `partition` wrote."""
    with open(path, encoding='utf-8', newline='') as f:
        return rounded(collective_bytes.total(f.read()))


def ratio(mine, theirs):
    """None where neither sends anything, or only one does."""
    return mine / theirs if mine and theirs else None


def compared(counts, theirs):
    """{file: (our bytes, XLA's)} of the files that XLA partitions."""
    return {n: (counts[n], b) for n, b in theirs.items() if n in counts and not isinstance(b, str)}


def totals(version, pairs):
    """The row of that jaxlib."""
    ratios = [r for pair in pairs.values() for r in [ratio(*pair)] if r]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1
    no_more = sum(mine <= theirs for mine, theirs in pairs.values())
    return (version, len(pairs), no_more, len(ratios), f'{mean:.2f}',
            *(f'{sum(pair[k] for pair in pairs.values()):.0f}' for k in (0, 1)))


def section(counts, newest_counts):
    """`counts`, `newest_counts`: {name of JAX 0.10.2: our bytes} in its files, and in those of
    JAX 0.12."""
    out = HEAD + row(TOTALS) + '|---' * len(TOTALS) + '|\n'
    versions = sections.record(RECORD)
    for version, theirs in versions.items():
        of_files = newest_counts if sections.is_newest(version) else counts
        out += row(totals(version, compared(of_files, theirs)))
    newest, theirs = next(iter(versions.items()))
    pairs = compared(newest_counts, theirs)
    out += f'\n| More than XLA | ours | XLA {newest} | ratio |\n|---|---|---|---|\n'
    more = {n: pair for n, pair in pairs.items() if pair[0] > pair[1]}
    for n, pair in sorted(more.items(), key=lambda item: -item[1][0] / (item[1][1] or 1e-9)):
        r = ratio(*pair)
        out += row((f'`{n}`, more', *pair, f'{r:.2f}' if r else '-'))
    out += ('\nA file may not send more than this table says, nor may the same program as JAX 0.12 '
            f'dumps it.\n\n| Bytes of | ours | XLA {newest} |\n|---|---|---|\n')
    for n, count in {**newest_counts, **counts}.items():
        out += row((f'`{n}`, bytes', count, str(theirs.get(n, ''))[:80]))
    return out


def row(cells):
    return '| ' + ' | '.join(map(str, cells)) + ' |\n'


def read_table(text):
    """{file: our bytes}."""
    return {name: float(count) for name, count in
            re.findall(r'^\| `([^`]+)`, bytes \| ([\d.]+) \|', text, re.M)}


def without_paths(why):
    """Of why XLA refuses a file, what may stand in a table."""
    return re.sub(r'/\S*/', '', re.sub(r'\s+', ' ', why)).replace('|', '/')[:120]


def make_record():
    import jaxlib
    import xla_partitioner
    partitioner, found, version = xla_partitioner.Partitioner(), {}, jaxlib.__version__
    for path in command.hlo_files():
        name = os.path.basename(path)
        if name.endswith('.v3.hlo') or command.is_of_newest(name) != sections.is_newest(version):
            continue
        answer = partitioner.ask(path)
        found[command.twin(name)] = rounded(collective_bytes.total(answer['text'])) \
            if 'text' in answer else without_paths(answer.get('why', ''))
        print(name, found[command.twin(name)], flush=True)
    partitioner.close()
    sections.write_record(RECORD, version, found)


if __name__ == '__main__':
    if sys.argv[1:] != ['--record']:
        sys.exit(__doc__)
    make_record()
