#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shardy's and GSPMD's form of one program are partitioned alike: the same collectives, as often and
with as many bytes.

All pairs of files of tests/data/hlo and of the folder SHARDCALL_CORPUS are compared, with a rule for
every custom call whose own rule only Shardy's form holds. Without the flags of a compiled program
(in its header) results that have no sharding are whole in GSPMD's form and open in Shardy's: such
programs are left out."""

import concurrent.futures
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

# Which say different things in the two forms, and why.
OTHERS = {
    # Shardy groups the values themselves. GSPMD annotates copies of them, beside which a value may
    # have another sharding, by which less is sent.
    'custom_call_api_shard_alike.sdy.hlo',
}
FORMS = re.compile(r'\.(sdy|jax12)\.hlo$')


def gspmd_form(path):
    return path.replace('.sdy.hlo', '.gspmd.hlo').replace('.jax12.hlo', '.gspmd12.hlo')


def sent(path):
    """{opcode: (executions, bytes)}; or the text of what went wrong."""
    result = command.run(['partition', path, '-o', '/dev/null', '--report=/dev/stdout',
                          *command.device_flags(path), *command.RULE_FLAGS])
    if result.fault:
        raise AssertionError(f'{os.path.basename(path)}: {result.fault}')
    if result.code:
        return result.diagnostic
    totals = json.loads(result.out)['totals']
    return {opcode: (total['weighted']['count'], total['weighted']['bytes_moved'])
            for opcode, total in totals.items()}


def examine(path):
    """What differs; ''. None: one form cannot be partitioned, for want of a rule."""
    shardy, gspmd = sent(path), sent(gspmd_form(path))
    if 'E101' in (shardy, gspmd):
        return None
    return '' if shardy == gspmd else f'{shardy}, and in GSPMD\'s form {gspmd}'


def main():
    files = [f for f in command.hlo_files()
             if FORMS.search(f) and os.path.exists(gspmd_form(f))
             and os.path.basename(f) not in OTHERS
             and 'num_partitions' in command.header(f)
             and (not sys.argv[1:] or any(part in f for part in sys.argv[1:]))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(zip(files, pool.map(examine, files)))
    wrong = [(f, text) for f, text in found if text]
    for path, text in wrong:
        print(f'{os.path.basename(path)}: {text}')
    without = sum(text is None for _, text in found)
    print(f'{len(files)} programs in two forms, {len(wrong)} differ, {without} have no rule for a '
          'call in one form')
    return 1 if wrong or without > len(files) // 10 or not files else 0


if __name__ == '__main__':
    sys.exit(main())
