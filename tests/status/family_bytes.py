#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section of tests/STATUS.md on bytes by family of ops: what one device sends in the small
programs of family_programs.py, partitioned by us and by XLA.

  SHARDCALL_COMMAND=build/bin/shardcall family_bytes.py --write tests/STATUS.md | --check ...
  family_bytes.py --record         runs the XLA partitioner of this Python's jaxlib

family_bytes.json keeps both counts by program. --write counts ours anew. --check fails where a
program sends more than it says. Only bytes count here: a collective costs no latency, as if the
arrays were large.
"""

import concurrent.futures
import json
import math
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import collective_bytes  # noqa: E402
import command  # noqa: E402
import family_programs  # noqa: E402
import sections  # noqa: E402
import xla_bytes  # noqa: E402

RECORD = os.path.join(HERE, 'family_bytes.json')
TITLE = '## Families of ops against XLA'
HEAD = TITLE + """

What one device sends in small programs of one op, by `tests/status/family_programs.py`: operands and
result sharded in every way over 8 devices, in sizes that the shards divide and in sizes that they do
not. XLA's count is of jaxlib {version}; both are recorded in `tests/status/family_bytes.json`, and a
program may not send more than that says. Collectives cost no latency here, as for large arrays. The
mean of the ratios counts 64 bytes more on both sides, since many send nothing.

"""
FLAGS = ['--cost=latency=1e-12']


def read():
    with open(RECORD, encoding='utf-8') as f:
        return json.load(f)


def write(record):
    with open(RECORD, 'w', encoding='utf-8') as f:
        json.dump(record, f, indent=0)
        f.write('\n')


def count(text):
    """None where the program is refused."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = os.path.join(directory, 'm.hlo'), os.path.join(directory, 'local.hlo')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        if command.run(['partition', path, *FLAGS, '-o', out], timeout=60).code != 0:
            return None
        return xla_bytes.ours(out)


def ours():
    """{family: {program: bytes}}."""
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for family, programs in family_programs.programs().items():
            found[family] = dict(zip(programs, pool.map(count, programs.values())))
    return found


def by_xla():
    import jaxlib
    import xla_partitioner
    partitioner, found = xla_partitioner.Partitioner(), {}
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'm.hlo')
        for family, programs in family_programs.programs().items():
            found[family] = {}
            for name, text in programs.items():
                with open(path, 'w', encoding='utf-8') as f:
                    f.write(text)
                answer = partitioner.ask(path)
                if 'text' in answer:
                    found[family][name] = xla_bytes.rounded(collective_bytes.total(answer['text']))
            print(family, len(found[family]), 'of', len(programs), flush=True)
    partitioner.close()
    return jaxlib.__version__, found


def pairs_of(record, family):
    """{program: (our bytes, XLA's)}."""
    mine, theirs = record['ours'][family], record['xla'].get(family, {})
    return {n: (mine[n], theirs[n]) for n in mine if n in theirs and mine[n] is not None}


def totals(pairs):
    mean = sum(math.log((a + 64) / (b + 64)) for a, b in pairs) / max(len(pairs), 1)
    return (len(pairs), sum(a <= b for a, b in pairs), f'{math.exp(mean):.2f}',
            *(f'{sum(pair[k] for pair in pairs):.0f}' for k in (0, 1)))


def section():
    return page(read())


def page(record):
    out = HEAD.format(version=record['jaxlib'])
    heads = ('family', 'programs', 'send no more than by XLA', 'geometric mean of the ratios',
             'ours in all', 'by XLA in all')
    out += xla_bytes.row(heads) + '|---' * len(heads) + '|\n'
    every, more = [], []
    for family in record['ours']:
        pairs = pairs_of(record, family)
        every += pairs.values()
        more += [(a / (b or 1e-9), family, n, a, b) for n, (a, b) in pairs.items() if a > b]
        out += xla_bytes.row((family, *totals(list(pairs.values()))))
    out += xla_bytes.row(('all', *totals(every)))
    out += '\n| More than XLA by over 5 % | ours | XLA |\n|---|---|---|\n'
    for ratio, family, name, a, b in sorted(more, reverse=True):
        if ratio > 1.05:
            out += xla_bytes.row((f'{family}: `{name}`', a, b))
    return out


def wrong(text):
    record = read()
    if page(record).strip() not in text:
        yield 'the section differs from family_bytes.json; run family_bytes.py --write'
    for family, programs in ours().items():
        for name, now in programs.items():
            before = record['ours'][family].get(name)
            if now is None or before is None or now > before:
                yield f'{family}: {name}: sends {now} bytes, recorded are {before}'


def main():
    if sys.argv[1:] == ['--record']:
        version, theirs = by_xla()
        write({'jaxlib': version, 'xla': theirs, 'ours': ours()})
        return 0
    if '--write' in sys.argv[1:]:
        write({**read(), 'ours': ours()})
    return sections.main(TITLE, section, wrong, 'no program sends more than recorded')


if __name__ == '__main__':
    sys.exit(main())
