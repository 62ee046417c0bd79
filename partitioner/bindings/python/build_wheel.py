#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the package shardcall that can be taken to another machine:

    python3 build_wheel.py [--python=python3.12] --out=dist

`pip install .` builds one for this machine, which uses its libraries. This one has those
that not every Linux has inside (Abseil, protobuf, OpenBLAS), under names of their own, and is
for the named Python and for systems whose C library is this one's, or newer. Prints the
wheel's path. Needs nm, pip and the network.
"""
import argparse
import os
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..')
sys.path.insert(0, os.path.join(ROOT, 'cmake'))
from self_contained_wheel import build, tools


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--python', default=sys.executable, help='the Python that it is for')
    parser.add_argument('--out', default='dist')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='shardcall_wheel.') as scratch:
        print(build(tools(scratch, python=options.python), ROOT, scratch, options.out))
    return 0


if __name__ == '__main__':
    sys.exit(main())
