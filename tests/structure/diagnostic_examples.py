# SPDX-License-Identifier: Apache-2.0
"""Holds the examples of sharding/DIAGNOSTICS.md against what the command says.

    python3 diagnostic_examples.py ROOT SHARDCALL [PLUGINS] [--code=E101] [--show]

diagnostic_examples.txt has a section for each code: the arguments of the command behind
"$ ", and the files that it reads behind lines "--- NAME". The code and its example must
stand in what the command prints. {plugins} is the folder of the tests' plugins. A code
whose example no command line brings about stands in the last section, with the reason.
--show prints what is said in place of comparing; --write puts it into sharding/codes.inc,
of which `diagnostics.py . --write` makes the page.
"""
import concurrent.futures
import math
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zipfile

import diagnostics

CASES = "tests/structure/diagnostic_examples.txt"


def read_cases(text):
    """({code: (arguments, {file: text})}, {code: reason}, what is wrong)."""
    cases, others, errors = {}, {}, []
    for section in re.split(r"(?m)^### ", text)[1:]:
        title, _, body = section.partition("\n")
        if title == "no command line":
            for line in body.splitlines():
                codes, _, reason = line.partition(": ")
                for code in codes.split():
                    others[code] = reason
            continue
        parts = re.split(r"(?m)^--- (.*)\n", body)
        command = parts[0].strip()
        if not command.startswith("$ ") or title in cases:
            errors.append(f"{CASES}: {title} needs one command, once")
        files = {name: content for name, content in zip(parts[1::2], parts[2::2])}
        cases[title] = (command[2:], files)
    return cases, others, errors


def write_npz(path, lines):
    """An array a line: name, dtype, shape, and the value of each element."""
    with zipfile.ZipFile(path, "w") as archive:
        for line in lines.splitlines():
            name, dtype, shape, value = re.match(r"(\S+) (\S+) (\(.*\)) (\S+)", line).groups()
            head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
            head += " " * (-(len(head) + 11) % 64) + "\n"
            number = struct.pack("<f", float(value)) if dtype == "<f4" else struct.pack(
                "<q", int(value))
            count = math.prod(int(n) for n in re.findall(r"\d+", shape))
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head))
                             + head.encode() + number * count)


def said(shardcall, plugins, case):
    arguments, files = case
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if name.endswith(".npz") and content.startswith("arg"):
                write_npz(os.path.join(folder, name), content)
            else:
                pathlib.Path(folder, name).write_text(content.replace("{plugins}", plugins))
        words = shlex.split(arguments.replace("{plugins}", plugins))
        run = subprocess.run([shardcall] + words, cwd=folder, capture_output=True, text=True,
                             timeout=60, check=False,
                             env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
        return run.stdout + run.stderr


def message_of(code, text):
    """What stands behind the code in its line, without the fix."""
    found = re.search(r"(?m)(?:^|[ :])" + code + r" (.*?)(?:\. Fix: .*)?$", text)
    return found.group(1) if found else None


def write(root, code, message):
    path = root / diagnostics.TABLE
    text = path.read_text()
    row = re.search(r"SHARDCALL_DIAGNOSTIC\(" + code + r",\s*" + diagnostics.STRING
                    + r",\s*((?:" + diagnostics.STRING + r"\s*)+),", text)
    quoted = '"' + message.replace("\\", "\\\\").replace('"', '\\"') + '"'
    path.write_text(text[:row.start(1)] + quoted + text[row.end(1):])


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    only = [a.split("=", 1)[1] for a in sys.argv[1:] if a.startswith("--code=")]
    show = "--show" in sys.argv
    texts = {}
    root, shardcall = pathlib.Path(args[0]), os.path.abspath(args[1])
    plugins = os.path.abspath(args[2]) if len(args) > 2 else ""
    sections, errors = diagnostics.read_table(root)
    cases, others, more = read_cases((root / CASES).read_text())
    errors += more
    examples = {code: example for _, rows in sections for code, _, example, _ in rows}
    for code in sorted(set(cases) | set(others)):
        if code not in examples or (code in cases and code in others):
            errors.append(f"{CASES}: {code} is no code of the table, or stands twice")
    for code in examples:
        if code not in cases and code not in others:
            errors.append(f"{CASES}: {code} has no section, and no reason for that")

    def check(code):
        if "{plugins}" in str(cases[code]) and not plugins:
            return None
        text = said(shardcall, plugins, cases[code]).replace(plugins + "/", "") if plugins else \
            said(shardcall, plugins, cases[code])
        texts[code] = message_of(code, text)
        if show:
            return f"{code}\n  {examples[code]}\n{text}"
        if f"{code} {examples[code]}" in text:
            return None
        return f"{code}: the example is not what is said\n  example: {examples[code]}\n{text}"

    chosen = [code for code in cases if code in examples and (not only or code in only)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        errors += [e for e in pool.map(check, chosen) if e is not None]
    if "--write" in sys.argv:
        for code, message in texts.items():
            if message is not None and not examples[code] == message:
                write(root, code, message)
        return 0
    print("\n".join(errors))
    if not errors:
        print(f"{len(chosen)} examples are what is said; {len(others)} codes have no command line")
    return 1 if errors and not show else 0


if __name__ == "__main__":
    sys.exit(main())
