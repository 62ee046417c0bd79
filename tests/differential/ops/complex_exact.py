# SPDX-License-Identifier: Apache-2.0
"""Complex functions by arithmetic of 400 bits (mpmath): the correctly rounded value
of each part. C99's results, as numpy's long double functions have them, at poles and
where an input is infinite or NaN or (of powers) has a part that is a signed zero;
without mpmath everywhere."""

import numpy as np

try:
    import mpmath
except ImportError:
    mpmath = None

CL = np.clongdouble
L = np.longdouble
BITS = 400


def _long(x):
    """An mpf as long double: exact to 106 bits, which are rounded to 64."""
    high = float(x)
    if not np.isfinite(high) or high == 0:
        return L(high)
    return L(high) + L(float(x - mpmath.mpf(high)))


def _log1p(z):
    return mpmath.log(1 + z)


def _power(z, w):
    if w == 0:
        return mpmath.mpc(1)
    if z == 0:
        raise ZeroDivisionError
    return mpmath.exp(w * mpmath.log(z))


def _atan2(y, x):
    return -1j * mpmath.log((x + 1j * y) / mpmath.sqrt(x * x + y * y))


def _function(op):
    if op in ('log-plus-one', 'power', 'atan2'):
        return {'log-plus-one': _log1p, 'power': _power, 'atan2': _atan2}[op]
    return {'sign': lambda z: z / abs(z), 'exponential': mpmath.exp,
            'exponential-minus-one': lambda z: mpmath.exp(z) - 1,
            'log': mpmath.log, 'logistic': lambda z: 1 / (1 + mpmath.exp(-z)),
            'sqrt': mpmath.sqrt, 'rsqrt': lambda z: 1 / mpmath.sqrt(z),
            'sine': mpmath.sin, 'cosine': mpmath.cos, 'tan': mpmath.tan, 'tanh': mpmath.tanh,
            'sinh': mpmath.sinh, 'cosh': mpmath.cosh, 'asin': mpmath.asin, 'acos': mpmath.acos,
            'asinh': mpmath.asinh, 'acosh': mpmath.acosh, 'atanh': mpmath.atanh,
            'multiply': lambda z, w: z * w, 'divide': lambda z, w: z / w}[op]


def refined(op, by_limits):
    """`by_limits` (numpy, on arrays of complex long double) with the parts of finite
    results made exact. The signs at zeros (branch cuts, -0) stay those of by_limits."""
    if mpmath is None:
        return by_limits
    f = _function(op)

    def compute(*inputs):
        out = np.asarray(by_limits(*inputs)).astype(CL)
        with mpmath.workprec(BITS):
            for at in np.ndindex(out.shape):
                given = [z[at] for z in inputs]
                zeros = any(z.real == 0 or z.imag == 0 for z in given)
                if not all(np.isfinite(z) for z in given) or (zeros and op == 'power'):
                    continue
                try:
                    exact = mpmath.mpc(f(*(mpmath.mpc(float(z.real), float(z.imag))
                                           for z in given)))
                except ZeroDivisionError:
                    continue  # a pole
                if not (mpmath.isfinite(exact.real) and mpmath.isfinite(exact.imag)):
                    continue
                old = out[at]
                parts = []
                for mine, theirs in ((_long(exact.real), old.real), (_long(exact.imag), old.imag)):
                    if (zeros or mine == 0) and not np.isnan(theirs):
                        mine = np.copysign(mine, theirs)
                    parts.append(mine)
                out.real[at], out.imag[at] = parts
        return out
    return compute
