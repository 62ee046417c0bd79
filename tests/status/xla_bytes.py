#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section of tests/STATUS.md on bytes: what one device sends by our partitioner and
by XLA's, file by file.

  SHARDCALL_CORPUS=DIR xla_bytes.py --record       runs XLA's partitioner (jaxlib) over the
                                                   corpus and writes xla_bytes.json anew

The rest is make_status.py's: it counts our bytes, writes the table from the record, and
its --check fails where a file sends more than the table says. Both counts are of
tests/support/collective_bytes.py. The record has the files with Shardy's and with GSPMD's
annotations; where XLA does not partition, it has the reason.
"""

import json
import math
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import collective_bytes  # noqa: E402
import command  # noqa: E402

RECORD = os.path.join(HERE, 'xla_bytes.json')
TITLE = '## Bytes against XLA'
HEAD = TITLE + """

What one device sends in a run, by the ring algorithms, in the module of `shardcall partition` and
in that of XLA's own partitioner (jaxlib 0.10.2, recorded in `tests/status/xla_bytes.json`), from
Shardy's annotations (`sdy`) and from GSPMD's (`gspmd`). XLA gathers the operands of custom calls,
which here have a rule. A file may not send more than this table says.

"""


def record():
    with open(RECORD, encoding='utf-8') as f:
        return json.load(f)


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


def section(counts):
    """`counts`: {file: our bytes}."""
    theirs = {n: b for n, b in record().items() if n in counts and not isinstance(b, str)}
    more = [n for n in theirs if counts[n] > theirs[n]]
    ratios = [r for n in theirs for r in [ratio(counts[n], theirs[n])] if r]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 1
    out = HEAD + (f'{len(theirs) - len(more)} of {len(theirs)} files send no more than by XLA; '
                  f'geometric mean of the ratios {mean:.2f} over the {len(ratios)} files in which '
                  f'both send.\n\n| More than XLA | ours | XLA | ratio |\n|---|---|---|---|\n')
    for n in sorted(more, key=lambda n: -counts[n] / (theirs[n] or 1e-9)):
        r = ratio(counts[n], theirs[n])
        out += f'| `{n}`, more | {counts[n]} | {theirs[n]} | {f"{r:.2f}" if r else "-"} |\n'
    out += '\n| Bytes of | ours | XLA |\n|---|---|---|\n'
    for n, count in counts.items():
        known = record().get(n, '')
        out += f'| `{n}`, bytes | {count} | {known if not isinstance(known, str) else known[:80]} |\n'
    return out


def read_table(text):
    """{file: our bytes}."""
    return {name: float(count) for name, count in
            re.findall(r'^\| `([^`]+)`, bytes \| ([\d.]+) \|', text, re.M)}


def make_record():
    import xla_partitioner
    partitioner, found = xla_partitioner.Partitioner(), {}
    for path in command.hlo_files():
        name = os.path.basename(path)
        if name.endswith('.v3.hlo'):
            continue
        answer = partitioner.ask(path)
        why = re.sub(r'\s+', ' ', answer.get('why', ''))
        found[name] = rounded(collective_bytes.total(answer['text'])) if 'text' in answer else \
            re.sub(r'/\S*/', '', why).replace('|', '/')[:120]
        print(name, found[name], flush=True)
    partitioner.close()
    with open(RECORD, 'w', encoding='utf-8') as f:
        json.dump(found, f, indent=0)
        f.write('\n')


if __name__ == '__main__':
    if sys.argv[1:] != ['--record']:
        sys.exit(__doc__)
    make_record()
