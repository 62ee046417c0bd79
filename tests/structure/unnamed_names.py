#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names that two files of a folder give to things of their own, in unnamed namespaces. They would
collide where such files are compiled as one (-DSHARDCALL_UNITY=ON, as the test command does).

    unnamed_names.py ROOT

Files and folders under ALONE in a CMakeLists.txt are compiled alone, and may have any names.
Functions may share a name if their parameters have other types. What this overlooks, the compiler
finds.
"""
import collections
import pathlib
import re
import sys

ROOMS = ["sharding", "collectives", "kernels", "partitioner"]
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
TYPE = re.compile(r"^(?:struct|class|enum class|enum|union)\s+(\w+)")
# A method outside of its class, whose name is that of the class.
METHOD = re.compile(r"^[^(]*\w::~?\w+\(")
# At the start of a line: what it defines is the word before "(", "=", "{" or "[".
VALUE = re.compile(r"^(?!namespace|using|template|return|typedef)[\w:].*?[\s&*>]~?(\w+)\s*([(={\[])")


def parameter_types(text, start):
    """The types in the parentheses that open at `start`, without the names of the parameters."""
    depth, at, parts, part = 0, start, [], ""
    while at < len(text):
        c = text[at]
        depth += c in "(<[{"
        depth -= c in ")>]}" and text[at - 1] != "-"
        if depth == 0:
            break
        if depth == 1 and c == ",":
            parts.append(part)
            part = ""
        elif at > start:
            part += c
        at += 1
    parts.append(part)
    types = []
    for p in parts:
        p = re.sub(r"\s+", " ", p.split("=")[0]).strip()
        types.append(re.sub(r"(?<=[\s&*>])\w+$", "", p).strip() if " " in p else p)
    return ", ".join(types)


def names(path):
    """What the file's unnamed namespaces define, as pairs of name and definition: the types of a
    function's parameters, the line of an alias, "" for all others."""
    text = path.read_text()
    found, inside, at = set(), False, 0
    for line in text.splitlines(keepends=True):
        begin, at = at, at + len(line)
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace\n"):
            inside = False
        elif not inside:
            continue
        elif METHOD.match(line):
            continue
        elif alias := ALIAS.match(line):
            found.add((alias[1], line))
        elif (kind := TYPE.match(line)) is not None:
            if not line.endswith(";\n"):  # no declaration
                found.add((kind[1], ""))
        elif (value := VALUE.match(line)) is not None:
            is_function = value[2] == "("
            found.add((value[1], f"({parameter_types(text, begin + value.start(2))})"
                       if is_function else ""))
    return found


def collide(one, other):
    """Whether two definitions of a name cannot stand in one file."""
    function = [d.startswith("(") for d in (one, other)]
    alias = [d.startswith("using") for d in (one, other)]
    return one == other if all(function) else not (all(alias) and one == other)


def alone(root):
    """Paths under ALONE, by the CMakeLists.txt of their room."""
    paths = set()
    for room in ROOMS:
        for lists in (root / room).rglob("CMakeLists.txt"):
            for block in re.findall(r"^\s+ALONE\s+(.*?)(?=^\s+[A-Z_]{4,}\b|\))", lists.read_text(),
                                    re.M | re.S):
                paths |= {lists.parent / p for p in re.sub(r"#.*", "", block).split()}
    return paths


def main():
    root = pathlib.Path(sys.argv[1])
    excluded = alone(root)
    errors = [f"{p.relative_to(root)} stands under ALONE and is not there"
              for p in sorted(excluded) if not p.exists()]
    folders = collections.defaultdict(list)
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.cc")):
            if path not in excluded and path.parent not in excluded:
                folders[path.parent].append(path)
    for folder, paths in sorted(folders.items()):
        seen = {}  # name -> definitions and their files
        for path in paths:
            for name, definition in sorted(names(path)):
                others = [p for d, p in seen.get(name, []) if collide(d, definition)]
                if others:
                    errors.append(f"{path.relative_to(root)} and {others[0].name} have each a {name} "
                                  "of their own: share it, rename it, or list a file under ALONE")
                seen.setdefault(name, []).append((definition, path))
    print(*errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
