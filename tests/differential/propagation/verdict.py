# SPDX-License-Identifier: Apache-2.0
"""Says how one sharding of a value stands to another one."""

import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'xla_runs'))
from shards import Placement  # noqa: E402

WORDS = {
    'same': 'every device has the same part',
    'more': 'ours is cut further',
    'less': "XLA's is cut further",
    'other': 'cut in other dimensions, or the same ones over other devices',
    'beyond': "XLA's has more parts than the dimension has elements, some of them empty",
}


def verdict(ours, theirs, dims, devices):
    """One of WORDS; texts as in HLO, '' for none."""
    a, b = (placement_of(text, len(dims), devices) for text in (ours, theirs))
    if any(tiles > size for tiles, size in zip(b.tiles, dims)):
        return 'beyond'
    x, y = part_of(a), part_of(b)
    if np.array_equal(x, y):
        return 'same'
    if refines(a, b, x, y):
        return 'more'
    return 'less' if refines(b, a, y, x) else 'other'


def placement_of(text, rank, devices):
    """'' is none; jaxlib 0.12 has another word for one device."""
    text = re.sub(r'single_device\[device_id=(\d+)\]', r'maximal device=\1', text)
    return Placement(text or '{replicated}', rank, devices)


def devices_only(ours, theirs, rank, devices):
    """Whether both are cut alike, over other devices."""
    a, b = (placement_of(text, rank, devices) for text in (ours, theirs))
    return list(a.tiles) == list(b.tiles)


def part_of(placement):
    """The number of the part that each device has: [devices][dimension]."""
    if placement.device is not None:
        return np.full((placement.n, len(placement.tiles)), placement.device + placement.n)
    part = np.zeros((placement.n, len(placement.tiles)), int)
    for at in np.ndindex(*placement.tiles):
        for device in placement.devices[at].ravel():
            part[device] = at
    return part


def refines(fine, coarse, part_of_fine, part_of_coarse):
    """Whether each part of `fine` lies in one of `coarse`, along every dimension."""
    return all(f % c == 0 for f, c in zip(fine.tiles, coarse.tiles)) and np.array_equal(
        part_of_fine * coarse.tiles // np.maximum(fine.tiles, 1), part_of_coarse)
