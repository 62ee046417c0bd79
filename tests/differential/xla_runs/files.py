# SPDX-License-Identifier: Apache-2.0
"""The files of a case: what `shardcall partition --report` says of parameters and
results, and npz files of arrays in HLO's types."""

import json
import re

import numpy as np

import hlo_types as T


def report(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def _kind(leaf):
    found = re.match(r'(\w+)\[([^\]]*)\]', leaf['shape'])
    if not found or found.group(1) in ('token', 'opaque'):
        return None
    # A bounded dimension (<=8) is as large as its bound.
    return found.group(1), tuple(int(d.lstrip('<=')) for d in found.group(2).split(',') if d)


def is_array(leaf):
    return _kind(leaf) is not None


def arrays_of(leaves):
    return [leaf for leaf in leaves if is_array(leaf)]


def array_leaves(leaves):
    """[(element type, dims)] of the leaves that are arrays."""
    return [_kind(leaf) for leaf in arrays_of(leaves)]


def element_bytes(leaves):
    return sum(int(np.prod(dims, dtype=np.int64)) * max(8, T.bits(name)) // 8
               for name, dims in array_leaves(leaves))


def loaded(array, name):
    """An array of an npz file as HLO type `name`: types that numpy lacks stand there by
    their bits, or widened."""
    dtype = T.DTYPES[name]
    if array.dtype == dtype:
        return array
    if dtype.isbuiltin != 1 and array.dtype.kind in 'uV' and array.dtype.itemsize == dtype.itemsize \
            and 'int' not in dtype.name:
        return array.view(dtype)
    return array.astype(dtype)


def arrays(path, prefix, kinds):
    """Those with elements; tokens leave gaps in the numbers."""
    with np.load(path) as archive:
        names = sorted((n for n in archive.files if re.fullmatch(prefix + r'\d+', n)),
                       key=lambda n: int(n[len(prefix):]))
        found = [archive[n] for n in names]
    if len(found) > len(kinds):
        found = [a for a in found if a.dtype != object][:len(kinds)]
    if len(found) != len(kinds):
        raise ValueError(f'{path} has {len(found)} arrays in place of {len(kinds)}')
    return [loaded(a, name) for a, (name, _) in zip(found, kinds)]


def random_arrays(kinds, seed, integers=None):
    """Small whole numbers: -4 to 4 without 0 in floats, 0 to 7 in integers (what fits),
    or `integers` in all of them."""
    draw = np.random.default_rng(seed)
    out = []
    for name, dims in kinds:
        if name == 'pred':
            out.append(draw.integers(0, 2, dims).astype(np.bool_))
        elif name in T.INTEGERS and integers is not None:
            out.append(np.full(dims, integers).astype(T.DTYPES[name]))
        elif name in T.INTEGERS:
            out.append(draw.integers(0, min(7, T.integer_range(name)[1]), dims,
                                     endpoint=True).astype(T.DTYPES[name]))
        else:
            size = draw.integers(1, 4, dims, endpoint=True)
            out.append((size * draw.choice([-1, 1], dims)).astype(np.float32).astype(
                T.DTYPES[name]))
    return out


def save(path, prefix, arrays_, kinds):
    stored = {}
    for k, (a, (name, _)) in enumerate(zip(arrays_, kinds)):
        if name in T.INTEGERS and T.bits(name) < 8:
            a = a.astype(np.int8 if name[0] == 's' else np.uint8)
        elif a.dtype.isbuiltin != 1:
            a = T.raw(a)
        stored[f'{prefix}{k}'] = a
    np.savez(path, dtypes=np.array([name for name, _ in kinds]), **stored)
