#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches XLA's FFI headers of the jaxlib wheels on PyPI, one folder a version.

    fetch_ffi_headers.py --out=build/ffi_headers 0.5.3 0.8.2

The wheels are thrown away, their headers are kept: DIR/0.5.3/xla/ffi/api/c_api.h.
What is there already is not fetched again. Exit status 1 where a version cannot
be had; the tests that need it then say that they are skipped.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

INSIDE = 'jaxlib/include/'


def fetch(version, out):
    """Whether the headers of one version lie in `out` now."""
    target = os.path.join(out, version)
    if os.path.exists(os.path.join(target, 'xla/ffi/api/c_api.h')):
        return True
    with tempfile.TemporaryDirectory(dir=out) as directory:
        # Any interpreter's wheel has the headers.
        command = [sys.executable, '-m', 'pip', 'download', '--quiet', '--no-deps', '--retries=1',
                   '--only-binary=:all:', '--python-version=3.12', f'--dest={directory}',
                   f'jaxlib=={version}']
        try:
            subprocess.run(command, check=True, timeout=180)
        except (OSError, subprocess.SubprocessError) as error:
            print(f'jaxlib {version} cannot be fetched: {error}', file=sys.stderr)
            return False
        unpacked = os.path.join(directory, 'unpacked')
        with zipfile.ZipFile(glob.glob(os.path.join(directory, '*.whl'))[0]) as wheel:
            for name in wheel.namelist():
                if name.startswith(INSIDE + 'xla/ffi/'):
                    path = os.path.join(unpacked, name[len(INSIDE):])
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(path, 'wb') as f:
                        f.write(wheel.read(name))
        os.rename(unpacked, target)  # whole or not at all
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', required=True)
    parser.add_argument('versions', nargs='+')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    return 0 if all([fetch(version, args.out) for version in args.versions]) else 1


if __name__ == '__main__':
    sys.exit(main())
