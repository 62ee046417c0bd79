# SPDX-License-Identifier: Apache-2.0
"""Cases over which XLA ends its process on a failed internal check, and why. A case that
ends it and is not here fails the run; so does one that is here as ALWAYS and does not."""

import re

ALWAYS, SOMETIMES = True, False

KNOWN = [
    (r'^concatenate u2 0$', ALWAYS, "XLA:CPU's concatenate checks that elements have whole bytes"),
    (r'^reduce-window u16 maximum ', SOMETIMES, "a failed check in XLA:CPU's code for windows"),
    (r'^ragged-all-to-all s32', ALWAYS, 'XLA:CPU has none'),
    (r'^sort [su]2 ', SOMETIMES, 'XLA:CPU sorts 2-bit integers by what stands beside them'),
]


def why(case):
    """(reason, whether it always ends the process) of "op types label"; ('', False)."""
    return next(((reason, always) for pattern, always, reason in KNOWN
                 if re.search(pattern, case)), ('', False))
