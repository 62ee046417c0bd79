# SPDX-License-Identifier: Apache-2.0
"""Checks that no function of the product outgrows 80 lines, from the first of its signature to
its closing brace.

    python3 function_lengths.py ROOT
"""
import pathlib
import re
import sys

ROOMS = ("sharding", "collectives", "kernels", "partitioner")
MAX_LINES = 80
# Functions that are data: one statement whose rows are a table, and no logic.
TABLES = {("partitioner/tools/verbs.cc", "Verbs")}
# What holds braces that are no blocks. A quote after a digit separates digits.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""",
                     re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|extern)\b(?![^{]*\)\s*(const|noexcept|override)*\s*$)")
NAME = re.compile(r"([\w:~]+|operator\W{1,3})\s*\(")


def blank(found):
    """As many lines of nothing."""
    return re.sub(r"[^\n]", " ", found.group())


def functions(text):
    """(line, lines, name) of each function, those inside another one left out."""
    code = NO_CODE.sub(blank, text)
    code = DIRECTIVE.sub(blank, code)
    depth, start, first, head = 0, 0, None, ""
    for k, letter in enumerate(code):
        if first is not None:  # in a function, or in data
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if depth == 0:
                if "(" in head:
                    name = NAME.search(head)
                    yield (code.count("\n", 0, first) + 1, code.count("\n", first, k) + 1,
                           name.group(1).strip() if name else head.strip())
                first, start = None, k + 1
        elif letter == "{":
            head = code[start:k]
            if SCOPE.search(head) or not head.strip():
                start = k + 1
            else:
                first, depth = start + len(head) - len(head.lstrip()), 1
        elif letter in ";}":
            start = k + 1


def main(root):
    files, errors = 0, []
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*")):
        if path.suffix not in (".h", ".cc", ".cu"):
            continue
        files += 1
        place = path.relative_to(root).as_posix()
        errors += [f"{place}:{line}: {name} has {lines} lines, more than {MAX_LINES}"
                   for line, lines, name in functions(path.read_text())
                   if lines > MAX_LINES and (place, name) not in TABLES]
    if files == 0:
        errors.append(f"{root}: no source files found")
    print("\n".join(errors) if errors else f"{files} files, no function over {MAX_LINES} lines")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
