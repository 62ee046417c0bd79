# SPDX-License-Identifier: Apache-2.0
"""HLO text by its brackets."""


def split(text):
    """The parts of `text` between commas outside of brackets and strings."""
    parts, depth, begin, quoted = [], 0, 0, False
    for k, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in '([{') - (c in ')]}')
            if c == ',' and depth == 0:
                parts.append(text[begin:k].strip())
                begin = k + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


def closing(text, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for k in range(at, len(text)):
        depth += (text[k] in '([{') - (text[k] in ')]}')
        if depth == 0:
            return k
    raise ValueError(text)
