# SPDX-License-Identifier: Apache-2.0
"""Checks the dependency direction of the rooms on every #include, that the folders of a room do
not include each other in a circle, that no source file outgrows 600 lines, no line of the product
100 columns, and no folder of it 40 files, that internals are in the inner namespace or one in it,
and that no switch over opcodes has a default.

    python3 check_includes.py ROOT
"""
import pathlib
import re
import sys

# Room -> rooms that it may include. The closure is spelled out, so that a
# reader sees at a glance who may know whom.
IR = {"sharding", "partitioner/ir"}
CUSTOM_CALL = IR | {"partitioner/custom_call"}
IMPORT = CUSTOM_CALL | {"partitioner/import"}
RULES = IMPORT | {"partitioner/rules"}
DERIVED = RULES | {"partitioner/derived"}
PROPAGATION = RULES | {"partitioner/propagation"}
SPMD = PROPAGATION | {"partitioner/spmd"}
RUNTIME = IR | {"collectives", "kernels", "partitioner/runtime"}
PASS = IR | {"partitioner/pass"}
PAGE = SPMD | PASS | {"partitioner/page"}
EXACTNESS = RUNTIME | {"partitioner/exactness"}
API = DERIVED | PAGE | EXACTNESS | {"partitioner/api"}
CHECK = API | {"partitioner/check"}
BINDINGS = CHECK | {"partitioner/bindings"}
ALLOWED = {
    "sharding": {"sharding"},
    "collectives": {"sharding", "collectives"},
    "kernels": {"sharding", "kernels"},
    "partitioner/ir": IR,
    "partitioner/custom_call": CUSTOM_CALL,
    "partitioner/import": IMPORT,
    "partitioner/rules": RULES,
    "partitioner/derived": DERIVED,
    "partitioner/propagation": PROPAGATION,
    "partitioner/spmd": SPMD,
    "partitioner/pass": PASS,
    "partitioner/page": PAGE,
    "partitioner/runtime": RUNTIME,
    "partitioner/exactness": EXACTNESS,
    "partitioner/api": API,
    "partitioner/check": CHECK,
    "partitioner/bindings": BINDINGS,
    "partitioner/tools": BINDINGS | {"partitioner/tools"},
}
# Headers of vocabulary that a room may include of one that it does not know otherwise.
VOCABULARY = {("kernels", "collectives/communicator.h"),
              ("partitioner/custom_call", "kernels/ffi/attributes.h"),
              ("partitioner/custom_call", "kernels/ffi/config_attributes.h"),
              ("partitioner/custom_call", "kernels/ffi/config_numbers.h")}
MAX_LINES = 600
MAX_COLUMNS = 100  # tables (.inc) have texts that are longer
MAX_FILES = 40
PREFIX = "shardcall/"  # of every include of ours, as users write it
# A header is for users (SHARDCALL_PUBLIC) or internal; forward declarations stand where their
# type does.
UNNAMED = re.compile(r"^namespace shardcall \{\n(?!inline namespace internal|class \w+;|struct \w+;)",
                     re.M)
# The lines that open and close namespaces, as clang-format writes them.
NAMESPACE = re.compile(r"^(\}  // )?(?:inline )?namespace ?([\w: ]*?)(?: SHARDCALL_PUBLIC)?(?: \{)?$",
                       re.M)
# The namespaces of shardcall that are not in `internal`: XLA's structs, which users' handlers name.
BESIDE = {"abi"}
SWITCH = re.compile(r"\bswitch\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def room_of(path):
    """The room that a path relative to the root lies in, or None."""
    best = None
    for room in ALLOWED:
        if path.startswith(room + "/") and (best is None or len(room) > len(best)):
            best = room
    return best


def circles(edges):
    """An error for each set of folders that include each other in a circle, with one include for
    each step. `edges`: (folder, included folder) -> (file, included file), of one room each."""
    after = {}
    for folder, other in edges:
        after.setdefault(folder, set()).add(other)
    reached = {}
    for folder in after:
        todo, reached[folder] = [folder], set()
        while todo:
            new = after.get(todo.pop(), set()) - reached[folder]
            reached[folder] |= new
            todo += new
    found = {frozenset(other for other in reached[folder] if folder in reached.get(other, ()))
             for folder in after if folder in reached[folder]}
    for circle in sorted(found, key=sorted):
        steps = [f"{name} includes {included}" for (a, b), (name, included) in sorted(edges.items())
                 if a in circle and b in circle]
        yield f"{', '.join(sorted(circle))}: they include each other: " + "; ".join(steps)


def closing_brace(text, start):
    """The index of the brace that closes the first one at or after `start`."""
    depth = 0
    for k in range(text.index("{", start), len(text)):
        depth += {"{": 1, "}": -1}.get(text[k], 0)
        if depth == 0:
            return k
    return len(text)


def switches_with_default(text):
    """The lines of switches over opcodes or kinds of attributes that have a default."""
    for found in SWITCH.finditer(text):
        body = text[found.end():closing_brace(text, found.end())]
        for inner in SWITCH.finditer(body):  # has a check of its own
            end = closing_brace(body, inner.end())
            body = body[:inner.start()] + " " * (end - inner.start()) + body[end:]
        if re.search(r"case (Opcode|AttrKind)::", body) and re.search(r"\bdefault\s*:", body):
            yield text.count("\n", 0, found.start()) + 1


def outside_internal(text):
    """The names of the namespaces of shardcall that lie neither in `internal` nor in BESIDE."""
    stack = []
    for found in NAMESPACE.finditer(text):
        closes, name = found.groups()
        name = name.replace("inline ", "")
        if not closes:
            stack.append(name)
            inner = "::".join(stack).split("::")[:2]
            if inner[0] == "shardcall" and inner[1:] and inner[1] not in BESIDE | {"internal", ""}:
                yield inner[1]
        elif name in stack:  # else it is on one line, and was not seen to open
            del stack[len(stack) - 1 - stack[::-1].index(name):]


def main(root):
    errors, files, per_folder, edges = [], 0, {}, {}
    for top in ("sharding", "collectives", "kernels", "partitioner", "tests", "examples"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".h", ".cc", ".cu", ".inc", ".c"):
                continue
            files += 1
            name = path.relative_to(root).as_posix()
            text = path.read_text(errors="replace")
            lines = text.count("\n")
            if lines > MAX_LINES:
                errors.append(f"{name}: {lines} lines, more than {MAX_LINES}; split it")
            if not text.startswith("// SPDX-License-Identifier: Apache-2.0"):
                errors.append(f"{name}: the first line is not the SPDX licence line")
            room = room_of(name)
            if room is None:
                continue
            if path.suffix != ".inc":
                errors += [f"{name}:{k}: {len(line)} columns, more than {MAX_COLUMNS}"
                           for k, line in enumerate(text.splitlines(), 1)
                           if len(line) > MAX_COLUMNS]
            if path.suffix == ".h" and UNNAMED.search(text):
                errors.append(f"{name}: write namespace shardcall SHARDCALL_PUBLIC in what is "
                              "installed, namespace shardcall { inline namespace internal { in what is not")
            errors += [f"{name}: namespace shardcall::{inner} lies outside shardcall::internal; write "
                       f"namespace shardcall {{ inline namespace internal {{ namespace {inner} {{"
                       for inner in sorted(set(outside_internal(text)))]
            errors += [f"{name}:{line}: a switch over opcodes with a default, which hides an op that "
                       "was forgotten; use a column of opcodes.inc, or rows (ir/row_by_opcode.h)"
                       for line in switches_with_default(text)]
            per_folder[path.parent] = per_folder.get(path.parent, 0) + 1
            for included in INCLUDE.findall(text):
                if room_of(included) and not included.endswith(".pb.h"):
                    errors.append(f'{name}: includes "{included}", which is "{PREFIX}{included}"')
                included = included.removeprefix(PREFIX)
                other = room_of(included)
                folder, its_folder = (str(pathlib.PurePosixPath(f).parent) for f in (name, included))
                if other == room and folder != its_folder:
                    edges.setdefault((folder, its_folder), (name, included))
                if other is None or other in ALLOWED[room]:
                    continue
                if (room, included) in VOCABULARY:
                    continue
                errors.append(f"{name}: includes {included}; {room} may know only "
                              + ", ".join(sorted(ALLOWED[room])))
    errors += [f"{folder.relative_to(root).as_posix()}: {count} files, more than {MAX_FILES}"
               for folder, count in per_folder.items() if count > MAX_FILES]
    errors += circles(edges)
    if files == 0:
        errors.append(f"{root}: no source files found")
    print("\n".join(errors) if errors else f"{files} files, no include against the direction")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
