# SPDX-License-Identifier: Apache-2.0
"""Sentences of the section "Every op" of tests/STATUS.md: how ops without a program of
op_programs.py are treated, and why operands are gathered. "Not done": a better way is known."""

IN_REGION = ('in a manual region as written; shards over its free axes are moved or gathered, if '
             'they cut what it changes')
STARTED = ('in a manual region as written; shards over its free axes are gathered. Not done: keep '
           'them')
TREATED = {
    'parameter': 'a device gets its shard of the sharding that is written on it or propagated',
    'constant': 'whole on every device, and cut where a shard is wanted',
    'partition-id replica-id': 'as written: the number of the device that runs it',
    'tuple get-tuple-element': 'no work: each element has a sharding of its own',
    'after-all': 'as written: it has no data',
    'while': 'condition and body are partitioned; what is carried has one sharding, inside and out',
    'conditional': 'the branches are partitioned, and their results have one sharding; the number '
                   'of the branch is whole',
    'call': 'inlined; partitioned once for all calls, where the copies would become too large; or '
            'run whole by the one device that its sharding names',
    'fusion': 'gathered: it is made after partitioning, and its computation is not partitioned',
    'custom-call': 'by the rule of its target, in a registry, a manifest or the program; without '
                   'one E101, or gathered with `--allow-replicate`',
    'copy-start copy-done': 'gathered: such pairs are made after partitioning. Not done: as `copy`',
    'infeed outfeed': 'each device feeds its shard of the sharding that is written on it, or one '
                      'device all of it; without one E104',
    'send recv send-done recv-done': 'by the one device that `sharding={maximal device=k}` names: '
                                     'what it sends is gathered, what it gets is sent to all; '
                                     'without one E104',
    'rng-get-and-update-state': 'by one device; an all-reduce brings the numbers to the others',
    'all-gather all-reduce reduce-scatter all-to-all': IN_REGION,
    'collective-broadcast ragged-all-to-all collective-permute': IN_REGION,
    'all-gather-start all-gather-done all-reduce-start all-reduce-done': STARTED,
    'collective-permute-start collective-permute-done': STARTED,
    'async-start async-update async-done': 'gathered: its computation is not partitioned; a '
                                           'collective is as those above',
}

DYNAMIC = 'a value of dynamic shape is whole on every device; its sizes are known at run time only'
BITCAST = ('it is made where layouts are assigned, after partitioning. Not done: as a reshape, if '
           'layouts are row-major')
STEPS = ('no identity is known for a shard to start with. Not done: start with its first row, if '
         'the computation is associative')
CARRIES = 'every device makes the last carries, whole'
SIZES = 'a group begins behind all groups before it, so all sizes are needed'
ANY_ROW = 'an update may be of any device\'s rows; to add up all results sends more'
DRAWN = 'as from one generator. Not done: each device draws its own shard'
REASONS = {
    ('bitcast', 'rows'): BITCAST,
    ('bitcast', 'columns'): BITCAST,
    ('set-dimension-size', 'set'): DYNAMIC,
    ('set-dimension-size', 'others'): DYNAMIC,
    ('dynamic-reshape', 'elements'): DYNAMIC,
    ('dynamic-update-slice', 'updated'): 'whose rows it changes is known at run time only',
    ('dynamic-update-slice', 'placed'): 'the update is small beside a shard, all of which an '
                                        'exchange goes over',
    ('reduce', 'line'): STEPS,
    ('reduce-window', 'line'): STEPS,
    ('sort', 'line'): 'floats may compare alike and differ, so that a merge has to send their places, '
                      'too; integers are merged: 2.38 MiB',
    ('scan', 'outer'): CARRIES,
    ('scan', 'inner'): CARRIES,
    ('dot', 'short'): 'the result is larger than both, and to add it up sends more',
    ('ragged-dot', 'groups'): SIZES,
    ('ragged-dot', 'sizes'): SIZES,
    ('scaled-dot', 'blocks'): 'to add up products of whole operands sends more',
    ('gather', 'rows+lookups'): 'a lookup may be of any device\'s rows; the lookups are few',
    ('scatter', 'updates'): ANY_ROW,
    ('scatter', 'few'): ANY_ROW,
    ('scatter', 'writes'): 'an update may be of any device\'s rows; the last of a row counts',
    ('rng', 'rows'): DRAWN,
    ('rng', 'columns'): DRAWN,
    ('rng-bit-generator', 'rows'): 'Not done: start at the counter of the shard\'s first number',
    ('rng-bit-generator', 'columns'): 'a shard has numbers of every row, whose counters are apart',
}
