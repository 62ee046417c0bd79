# SPDX-License-Identifier: Apache-2.0
"""Whole arrays to the parts of devices and back, by sharding texts as XLA's own parser
reads them: nothing of this project's reading of shardings is used here.

A dimension of D elements over n tiles has tiles of ceil(D / n); what is past the end is
padding, filled with what would show: NaN, large integers, true."""

import numpy as np
from jaxlib import _hlo


def poison(dtype):
    if dtype == np.bool_:
        return True
    try:
        return dtype.type(float('nan')) if dtype.kind in 'fcV' else np.iinfo(dtype).max
    except (ValueError, TypeError):
        return dtype.type(1)


class Placement:
    """Which part of an array of rank `rank` each of n devices holds.

    `tiles`: tile counts of the dimensions; `devices`: device ids, an array of shape
    tiles + [copies, parts of a sum]."""

    def __init__(self, text, rank, n):
        self.n, self.device = n, None
        s = _hlo.HloSharding.from_string(text)
        if text.startswith('{mesh['):
            s = _hlo.HloSharding.v3_to_v2_sharding(s)
        if s.is_maximal() and not s.is_replicated() and 'maximal' in text:
            self.device = int(s.tile_assignment_devices()[0])
        if s.is_unreduced():
            self.tiles, self.devices = [1] * rank, np.arange(n).reshape([1] * rank + [1, n])
            return
        if not s.is_tiled() or self.device is not None:
            self.tiles, self.devices = [1] * rank, np.arange(n).reshape([1] * rank + [n, 1])
            return
        dims = list(s.tile_assignment_dimensions())
        devices = np.array(s.tile_assignment_devices()).reshape(dims)
        kinds = [str(t).rsplit('.', maxsplit=1)[-1] for t in s.subgroup_types()]
        if s.replicate_on_last_tile_dim():
            kinds = ['REPLICATED']
        if len(dims) != rank + len(kinds) or set(kinds) - {'REPLICATED', 'UNREDUCED', 'MANUAL'}:
            raise ValueError(f'{text} is no sharding of rank {rank}')
        summed = [rank + k for k, kind in enumerate(kinds) if kind == 'UNREDUCED']
        copied = [rank + k for k, kind in enumerate(kinds) if kind != 'UNREDUCED']
        devices = devices.transpose([*range(rank), *copied, *summed])
        self.tiles = dims[:rank]
        self.devices = devices.reshape(self.tiles + [
            int(np.prod([dims[d] for d in axes], dtype=int)) for axes in (copied, summed)])

    def extents(self, shape):
        return [-(-d // t) for d, t in zip(shape, self.tiles)]

    def cut(self, array):
        """The devices' parts, in order of their ids."""
        extents = self.extents(array.shape)
        padding = [(0, e * t - d) for e, t, d in zip(extents, self.tiles, array.shape)]
        if any(after for _, after in padding):
            whole = np.full([e * t for e, t in zip(extents, self.tiles)], poison(array.dtype),
                            array.dtype)
            whole[tuple(slice(0, d) for d in array.shape)] = array
            array = whole
        parts = [None] * self.n
        for at in np.ndindex(*self.tiles):
            part = array[tuple(slice(i * e, (i + 1) * e) for i, e in zip(at, extents))]
            part = np.ascontiguousarray(part).reshape(extents)
            for copy in self.devices[at]:
                for number, device in enumerate(copy):
                    parts[device] = part if number == 0 else np.zeros_like(part)
        return parts

    def join(self, parts, shape, check=None):
        """The whole array. `check(a, b)` is called for every two copies of a part."""
        if self.device is not None:
            return parts[self.device]
        extents = self.extents(shape)
        whole = np.empty([e * t for e, t in zip(extents, self.tiles)], parts[0].dtype)
        for at in np.ndindex(*self.tiles):
            values = []
            for copy in self.devices[at]:
                value = parts[copy[0]]
                for device in copy[1:]:
                    value = value + parts[device]
                values.append(value)
            where = tuple(slice(i * e, (i + 1) * e) for i, e in zip(at, extents))
            whole[where] = values[0]
            if check:
                valid = tuple(slice(0, max(0, min(e, d - i * e)))
                              for i, e, d in zip(at, extents, shape))
                for value in values[1:]:
                    check(values[0][valid], value[valid])
        return whole[tuple(slice(0, d) for d in shape)]
