#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches XLA:GPU's PJRT plugin out of the wheel jax-cuda13-pjrt (124 MB).

    fetch_pjrt_plugin.py --out=build/pjrt

prints the path of xla_cuda_plugin.so. It needs no GPU for registrations and for
compiling. Exit status 1 where it cannot be had; its tests then say that they are skipped.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import fetch_wheel  # noqa: E402

VERSION = '0.10.2'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', required=True)
    args = parser.parse_args()
    directory = os.path.join(os.path.abspath(args.out), VERSION)
    if not fetch_wheel.fetch('jax-cuda13-pjrt', VERSION, 'jax_plugins/xla_cuda13', directory):
        return 1
    print(os.path.join(directory, 'xla_cuda_plugin.so'))
    return 0


if __name__ == '__main__':
    sys.exit(main())
