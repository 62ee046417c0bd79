#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches XLA's FFI headers of the jaxlib wheels on PyPI, one folder a version.

    fetch_ffi_headers.py --out=build/ffi_headers 0.5.3 0.8.2

The headers lie in DIR/0.5.3/xla/ffi/api/c_api.h. Exit status 1 where a version cannot
be had; the tests that need it then say that they are skipped.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))
import fetch_wheel  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', required=True)
    parser.add_argument('versions', nargs='+')
    args = parser.parse_args()
    had = [fetch_wheel.fetch('jaxlib', version, 'jaxlib/include/xla/ffi',
                             os.path.join(args.out, version, 'xla/ffi'))
           for version in args.versions]
    return 0 if all(had) else 1


if __name__ == '__main__':
    sys.exit(main())
