# SPDX-License-Identifier: Apache-2.0
"""Holds the table of diagnostics, sharding/codes.inc, against the sources and
against its page, sharding/DIAGNOSTICS.md.

    python3 diagnostics.py ROOT          fails where they do not agree
    python3 diagnostics.py ROOT --write  makes the page from the table

Every code in a string of the product stands in the table, every code of the
table is given by some source, and comments and documents name no other.
"""
import ast
import pathlib
import re
import sys

TABLE = "sharding/codes.inc"
PAGE = "sharding/DIAGNOSTICS.md"
ROOMS = ("sharding", "collectives", "kernels", "partitioner")
CODE = re.compile(r"\b[EW]\d{3}\b")
STRING = r'"(?:[^"\\\n]|\\.)*"'
# What a C++ source is made of, as far as it matters here.
TOKEN = re.compile(r"//[^\n]*|/\*.*?\*/|'(?:[^'\\\n]|\\.)'|" + STRING, re.S)
# A code that is asked for, and not given.
COMPARED = re.compile(r'(?:[=!]=\s*"[EW]\d{3}")|(?:"[EW]\d{3}"\s*[=!]=)')
ROW = re.compile(r"SHARDCALL_DIAGNOSTIC\(\s*([EW]\d{3})\s*((?:,\s*" + STRING
                 + r"(?:\s*" + STRING + r")*\s*)+)\)")

HEAD = """# Diagnostics

Every error and warning has a code, which stays what it is, and says what is wrong, where, what was expected and found, and one fix:
```
E101 <what>[ at <where>][: expected <..>, found <..>][. Fix: <..>]
```
This page has an example of each. `shardcall help E101` prints the row of a code. The fix of a message is often more exact than the one here, since it knows the case.

Made from [codes.inc](codes.inc) by `python3 tests/structure/diagnostics.py . --write`; a test holds both against the sources.
"""


def unquoted(text):
    """A C++ string, perhaps in parts, as what it says."""
    parts = re.findall(STRING, text)
    return "".join(re.sub(r"\\(.)", r"\1", p[1:-1]) for p in parts)


def read_table(root):
    """[(section, [(code, about, example, fix), ..]), ..] and what is wrong."""
    sections, errors = [], []
    text = (root / TABLE).read_text()
    for chunk in re.split(r"(?m)^// Section: ", text)[1:]:
        title, _, body = chunk.partition("\n")
        rows = []
        for m in ROW.finditer(body):
            fields = [unquoted(f) for f in re.findall(r",((?:\s*" + STRING + r")+)", m.group(2))]
            if len(fields) != 3 or not all(fields):
                errors.append(f"{TABLE}: {m.group(1)} needs what it is about, an example and a fix")
                fields = (fields + ["", "", ""])[:3]
            if fields[2].endswith(".") or fields[1].endswith("."):
                errors.append(f"{TABLE}: {m.group(1)}: no period ends an example or a fix")
            rows.append((m.group(1), *fields))
        if body.count("SHARDCALL_DIAGNOSTIC(") != len(rows):
            errors.append(f"{TABLE}: a row of \"{title}\" cannot be read")
        sections.append((title, rows))
    codes = [row[0] for _, rows in sections for row in rows]
    if codes != sorted(set(codes)):
        errors.append(f"{TABLE}: the rows stand by code, each code once")
    return sections, errors


def page_of(sections):
    def cell(text):
        return text.replace("|", "\\|")

    out = [HEAD]
    for title, rows in sections:
        out.append(f"\n## {title}\n\n| Code | About | Example | Fix |\n|---|---|---|---|\n")
        for code, about, example, fix in rows:
            out.append(f"| {code} | {cell(about)} | `{cell(example)}` | {cell(fix)} |\n")
    return "".join(out)


def python_strings(text):
    """The strings of a Python source that may be messages: no docstrings, and no codes alone, which
    are asked for."""
    tree = ast.parse(text)
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return " ".join(node.value for node in ast.walk(tree)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str)
                    and node not in docstrings and not CODE.fullmatch(node.value))


def scan(root):
    """Codes that sources give, and codes that anything mentions: code -> place."""
    given, mentioned = {}, {}
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            name = path.relative_to(root).as_posix()
            if name in (TABLE, PAGE) or path.suffix not in (".h", ".cc", ".cu", ".c", ".inc", ".py"):
                continue
            text = path.read_text(errors="replace")
            if path.suffix == ".py":
                strings = python_strings(text)
            else:
                strings = " ".join(t for t in TOKEN.findall(COMPARED.sub(" ", text))
                                   if t.startswith('"'))
            for code in CODE.findall(strings):
                given.setdefault(code, name)
            for code in CODE.findall(text):
                mentioned.setdefault(code, name)
    for top in (*ROOMS, "examples", "tests"):
        for path in sorted((root / top).rglob("*.md")):
            for code in CODE.findall(path.read_text(errors="replace")):
                mentioned.setdefault(code, path.relative_to(root).as_posix())
    for code in CODE.findall((root / "README.md").read_text()):
        mentioned.setdefault(code, "README.md")
    return given, mentioned


def main(root, write):
    sections, errors = read_table(root)
    known = {row[0] for _, rows in sections for row in rows}
    given, mentioned = scan(root)
    for code in sorted(set(given) - known):
        errors.append(f"{given[code]} gives {code}, which has no row in {TABLE}")
    for code in sorted(known - set(given)):
        errors.append(f"{TABLE} has {code}, which no source gives")
    for code in sorted(set(mentioned) - known - set(given)):
        errors.append(f"{mentioned[code]} names {code}, which has no row in {TABLE}")
    page = page_of(sections)
    if write:
        (root / PAGE).write_text(page)
    elif not (root / PAGE).exists() or (root / PAGE).read_text() != page:
        errors.append(f"{PAGE} is not what {TABLE} says; "
                      f"write it: python3 tests/structure/diagnostics.py . --write")
    print("\n".join(errors) if errors else f"{len(known)} codes, table, page and sources agree")
    return 1 if errors or not known else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), "--write" in sys.argv[2:]))
