# SPDX-License-Identifier: Apache-2.0
"""Cases over which XLA ends its process on a failed internal check, and why. A case that
ends it and is not here fails the run; so does one that is here as ALWAYS and does not."""

import re

import jaxlib_parser

ALWAYS, SOMETIMES = True, False

KNOWN = [
    (r'^concatenate u2 0$', ALWAYS, "XLA:CPU's concatenate checks that elements have whole bytes"),
    (r'^reduce-window u16 maximum ', SOMETIMES, "a failed check in XLA:CPU's code for windows"),
    (r'^ragged-all-to-all s32', ALWAYS, 'XLA:CPU has none'),
    (r'^sort [su]2 ', SOMETIMES, 'XLA:CPU sorts 2-bit integers by what stands beside them'),
]

# jaxlib 0.12 and later.
KNOWN_OF_NEWER = [
    (r'^a?(sin|cos)h? c(64|128) |^atanh c(64|128) ', ALWAYS,
     'XLA:CPU has no code for these functions of complex numbers'),
]


def why(case):
    """(reason, whether it always ends the process) of "op types label"; ('', False)."""
    newer = jaxlib_parser.writes_elements_without_names()
    return next(((reason, always) for pattern, always, reason in
                 KNOWN + (KNOWN_OF_NEWER if newer else []) if re.search(pattern, case)),
                ('', False))
