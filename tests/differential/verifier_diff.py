#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our verifier against XLA's, over thousands of small programs.

verifier_cases.py has a valid program for each form of each op, and breaks each
in many ways. Both verifiers judge every text; --table prints the counts by op:

  both accept | both refuse | we alone refuse | XLA alone refuses

Where XLA takes what we refuse, EXPLAINED says why, and TAKEN where we take what XLA
refuses. A disagreement that neither covers fails the test, and so does a reason that
no case needs.

  verifier_diff.py --tool=build/bin/verify_batch [--table] [--show]

Exit code 77: the jaxlib that XLA's verifier is taken from is not there.
"""

import argparse
import collections
import re
import subprocess
import sys
import time

import verifier_cases
import xla_verifier

# (ours, why): our message, and why XLA may accept what it is about.
EXPLAINED = [
    # XLA reads the shape and forgets it, or fills in another.
    (r'E023 (add-dependency|after-all|send|send-done|recv|recv-done|infeed|outfeed): the written'
     r'|E021 after-all: operand|E021 (recv|infeed): the result has the wrong form'
     r'|E021 send: operand 1 must be a token',
     "XLA's parser makes these shapes itself and drops the written one; a text that contradicts "
     'itself is an error here'),
    (r'E019 This op has exactly one dimension', 'XLA takes the first of several dimensions'),
    (r'E022 map: dimensions', "XLA's parser drops the dimensions of a map"),
    (r'E010 A layout does not fit|E011 A literal has a dynamic shape|E001 Syntax error'
     r'|E003 An integer is out of range|E019 A dimension is negative|E016 Invalid sharding',
     'no value is described by these'),
    (r'E019 Invalid iota replica groups', 'not a permutation'),
    (r'E020 The shape does not fit an async start',
     'the static and the dynamic shape are mixed up; XLA compares bounds'),
    (r'E012 Wrong number of operands of (dot|rng-bit-generator)',
     'XLA counts no operands here; the third would mean nothing'),
    # Called computations that XLA does not look at.
    (r'E024 (all-reduce|all-reduce-start|reduce-scatter): (parameter|result|to_apply=)',
     'XLA does not look at the reduction, which then fails when it is compiled'),
    (r'E024 (async-start|fusion): calls=\w+ has the wrong number of parameters',
     'XLA compares only as many operands as there are parameters'),
    # Types and sizes for which the op has no meaning.
    (r'E021 (shift-\w+|shift-right-\w+|mulhi): the operand has the wrong element type',
     'bits are shifted of integers only'),
    (r'E022 compare: complex numbers have no order', 'they have none'),
    (r'E021 convert: a complex value has no real conversion', 'which part is meant is not said'),
    (r"E021 (dot|ragged-dot|convolution): the result's element type cannot hold",
     'a real number does not hold a complex product'),
    (r'E021 ragged-dot: operand 2 must hold the sizes', 'a size is an integer'),
    (r'E021 ragged-all-to-all: (input and output|operand 0 must|operands 0 and 1)',
     'rows of the input are put into the output as they are'),
    (r'E021 batch-norm-inference: operand [34]', 'XLA forgets to look at mean and variance'),
    (r'E021 bitcast: ', 'bits are neither made nor lost; arrays only'),
    (r'E021 rng-bit-generator: ', 'bits are those of integers, or of floats of their width'),
    (r'E021 fft: operand dimension', 'the length of a transform is that of its data'),
    (r'E021 dynamic-reshape: operand \d+ must be a scalar', 'a size is a scalar'),
    (r'E021 scaled-dot: operand 3 does not scale', 'bf16[1] has another rank than what it scales'),
    (r'E021 convolution: operand 1 must be an array', 'XLA takes a tuple for its first element'),
    (r'E02[12] (gather|scatter): (batching dimension|\w+ and \w+ share a dimension)',
     'one dimension with two roles, or batches of different sizes'),
    (r'E022 convolution: window is impossible.*: expected rhs_reversal 0 or 1',
     'a dimension is reversed or it is not'),
    # Devices.
    (r'E025 all-gather: use_global_device_ids=true needs a channel',
     'channel_id=-1 is no channel'),
    (r'E023 (all-gather|reduce-scatter): the written',
     'a group of one gathers nothing, and channel_id=-1 is no channel; XLA takes a group of one '
     'for one of unknown size'),
    (r'E023 collective-broadcast: the written', 'XLA looks at the first operand only'),
    (r'E025 replica_groups (has a device|names a device twice|has an empty group|does not name)',
     'XLA does not look at the groups of a collective-broadcast'),
    (r'E026 input_output_alias joins output',
     'a buffer cannot hold two values of different sizes; XLA sees this once layouts are assigned'),
]
# (XLA's, why): XLA's message, and why we take what it is about.
TAKEN = [
    (r'verifier: Invalid sharding.*tile_assignment should have \d+ devices but has \d+',
     'devices that a sharding does not name hold copies of what it says'),
    (r'verifier: RET_CHECK.*Inconsistent while sharding',
     'what a body ends with is resharded to what the loop carries'),
    (r'verifier: RET_CHECK.*Inconsistent conditional sharding',
     'what a branch ends with is resharded to what the conditional gives'),
]


def ours(tool, cases):
    text = ''.join(text + '\n//==\n' for _, _, text in cases)
    out = subprocess.run([tool], input=text, capture_output=True, text=True, check=True).stdout
    return out.split('\n')[:-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--tool', required=True)
    parser.add_argument('--table', action='store_true', help='counts by op')
    parser.add_argument('--show', action='store_true', help='what is not explained, in full')
    options = parser.parse_args()
    cases = verifier_cases.all_cases()
    begin = time.time()
    we = ours(options.tool, cases)
    if len(we) != len(cases):
        sys.exit(f'{len(we)} answers to {len(cases)} programs')
    middle = time.time()
    try:
        xla = xla_verifier.XlaVerifier()
    except xla_verifier.Unavailable as error:
        print(f'skipped: {error}')
        return 77
    they = xla.check_all([text for _, _, text in cases])
    print(f'{len(cases)} programs: {middle - begin:.1f} s here, '
          f'{time.time() - middle:.1f} s in XLA')

    table = collections.defaultdict(lambda: [0, 0, 0, 0])
    needed = {'we alone': [0] * len(EXPLAINED), 'XLA alone': [0] * len(TAKEN)}
    faults = []
    for (opcode, what, text), a, b in zip(cases, we, they):
        accepted, xla_accepts = a == 'ok', b == 'ok'
        if b.startswith('mixed: '):  # XLA has verifiers of both opinions
            xla_accepts = accepted
        table[opcode][(0 if xla_accepts else 3) if accepted else (2 if xla_accepts else 1)] += 1
        if accepted == xla_accepts:
            continue
        alone, reasons, says = ('XLA alone', TAKEN, b) if accepted else ('we alone', EXPLAINED, a)
        reason = next((k for k, (pattern, _) in enumerate(reasons) if re.match(pattern, says)), None)
        if reason is None:
            faults.append((what, text, a, b))
        else:
            needed[alone][reason] += 1
    total = [sum(row[k] for row in table.values()) for k in range(4)]
    if options.table:
        print(f'{"":28} accept  refuse  we alone  XLA alone')
        for opcode, row in sorted(table.items()):
            print(f'{opcode:28} {row[0]:6} {row[1]:7} {row[2]:9} {row[3]:10}')
        for alone, reasons in (('we alone', EXPLAINED), ('XLA alone', TAKEN)):
            for count, (_, why) in zip(needed[alone], reasons):
                print(f'{count:5} {alone}: {why}')
    print('both accept %d, both refuse %d, we alone refuse %d, XLA alone refuses %d' % tuple(total))
    for what, text, a, b in faults[:None if options.show else 20]:
        print(f'\n{what}\n  we:  {a}\n  XLA: {b}')
        if options.show:
            print(text)
    unused = [why for alone, reasons in (('we alone', EXPLAINED), ('XLA alone', TAKEN))
              for count, (_, why) in zip(needed[alone], reasons) if count == 0]
    for why in unused:
        print(f'no case needs the reason: {why}')
    return 1 if faults or unused else 0


if __name__ == '__main__':
    sys.exit(main())
