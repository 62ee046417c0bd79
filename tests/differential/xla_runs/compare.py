# SPDX-License-Identifier: Apache-2.0
"""Results of XLA against other numbers for them."""

import numpy as np

WHOLE = 2.0 ** 22  # whole floats below it leave no room for a rounding
RELATIVE = {2: 1e-2, 1: 0.13}  # by bytes of a narrow float; others 1e-6


def wide(array):
    if array.dtype.kind == 'c':
        return array.astype(np.complex128)
    return array.astype(np.float64)


def is_integer(dtype):
    return dtype.kind in 'iub' or 'int' in dtype.name


def difference(want, got, limit=None):
    """'' if they agree, else how far they are apart. Integers and whole numbers are
    compared as they are, other floats within `limit` of the largest value."""
    if want.shape != got.shape:
        return f'shape {got.shape} in place of {want.shape}'
    if want.size == 0:
        return ''
    if is_integer(want.dtype):
        wrong = int(np.count_nonzero(want != got))
        return f'{wrong} of {want.size} elements differ' if wrong else ''
    with np.errstate(all='ignore'):
        a, b = wide(want), wide(got)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        off = np.where(same, 0.0, np.abs(a - b))
        finite = np.abs(a[np.isfinite(a)])
        whole = a[np.isfinite(a)]
        whole = bool(np.all(whole == np.round(whole)))
    largest = float(finite.max()) if finite.size else 0.0
    if np.isnan(off).any():
        return 'NaN or infinity on one side only, %d of %d' % (np.count_nonzero(np.isnan(off)),
                                                               want.size)
    worst = float(off.max())
    if limit is None:
        limit = RELATIVE.get(want.dtype.itemsize, 1e-6)
        if whole and largest < WHOLE and worst == round(worst):
            limit = 0.0
    if worst <= limit * largest:
        return ''
    if largest == 0:
        return 'off by %.2g where all are 0' % worst
    return 'off by %.2g of the largest value, %g' % (worst / largest, largest)
