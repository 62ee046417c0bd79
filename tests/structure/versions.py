# SPDX-License-Identifier: Apache-2.0
"""Checks that the version is the same wherever it is written by hand: what is not made from
partitioner/api/version.h has that version, or its first two numbers.

    python3 versions.py ROOT
"""
import pathlib
import re
import sys

SOURCE = ("partitioner/api/version.h", r'kVersion\[\] = "(\d+\.\d+\.\d+)"')
# File, pattern, and how many of the version's numbers it has.
COPIES = [
    ("partitioner/bindings/pjrt_wrapper/wheel/shardcall_pjrt/__init__.py",
     r"__version__ = '(.*)'", 3),
    ("README.md", r"find_package\(shardcall ([\d.]+)", 2),
    ("partitioner/api/README.md", r"find_package\(shardcall ([\d.]+)", 2),
    ("partitioner/bindings/pjrt_wrapper/README.md", r"shardcall (\d[\d.]*) rules", 3),
    # The newest release.
    ("CHANGELOG.md", r"(?s)\A.*?\n## \[(\d[\d.]*)\] - \d{4}-\d\d-\d\d\n", 3),
    ("examples/CMakeLists.txt", r"find_package\(shardcall ([\d.]+)", 2),
    ("tests/package/CMakeLists.txt", r"find_package\(shardcall ([\d.]+)", 2),
    ("tests/package/c/CMakeLists.txt", r"find_package\(shardcall ([\d.]+)", 2),
    ("tests/package/collide/CMakeLists.txt", r"find_package\(shardcall ([\d.]+)", 2),
]


def main(root):
    errors = []

    def found(file, pattern):
        versions = re.findall(pattern, (root / file).read_text())
        if not versions:
            errors.append(f"{file}: nothing matches {pattern}")
        return versions

    for version in found(*SOURCE):
        for file, pattern, numbers in COPIES:
            wanted = ".".join(version.split(".")[:numbers])
            errors += [f"{file}: version {other}, and {wanted} in {SOURCE[0]}"
                       for other in found(file, pattern) if other != wanted]
    print("\n".join(errors) if errors else f"{len(COPIES)} copies of the version are right")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
