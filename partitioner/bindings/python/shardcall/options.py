# SPDX-License-Identifier: Apache-2.0
"""Checks of what functions are given, where Python or the compiled part would say less."""
import math
import operator


def count(name, value):
    """A whole number, 0 or more."""
    try:
        made = operator.index(value)
    except TypeError:
        raise TypeError(f'{name} is a {type(value).__name__}: expected a whole number') from None
    if not 0 <= made < 2**63:
        raise ValueError(f'{name} is {made}: expected 0 or more, below 2**63')
    return made


def seconds(name, value):
    """A length of time above 0."""
    try:
        made = float(value)
    except (TypeError, ValueError):
        raise TypeError(f'{name} is {value!r}: expected seconds') from None
    if not made > 0 or math.isinf(made):
        raise ValueError(f'{name} is {made}: expected seconds above 0')
    return made


def deadlines(value):
    """Of the waits for a device or a kernel, and of the whole run, from one number or None."""
    return (60.0, math.inf) if value is None else (seconds('deadline', value),) * 2


def names(name, value):
    """Names as a tuple; one may be given by itself."""
    try:
        made = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        raise TypeError(f'{name} is {value!r}: expected names of targets') from None
    for each in made:
        if not isinstance(each, str):
            raise TypeError(f'{name} has {each!r}: expected names of targets')
    return made


def text(name, value):
    """Text as it is."""
    if not isinstance(value, str):
        raise TypeError(f'{name} is {value!r}: expected text. An argument of that name of the '
                        'function itself cannot be given by its name here')
    return value
