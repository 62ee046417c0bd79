#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches XLA:CPU as a PJRT plugin out of the wheel xla-cpu-pjrt (63 MB).

    fetch_cpu_plugin.py --out=build/pjrt_cpu

prints the path of xla_cpu_pjrt.so; include/pjrt_c_api.h lies beside it. Exit status 1
where it cannot be had; its tests then say that they are skipped.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../support'))
import fetch_wheel  # noqa: E402

VERSION = '0.0.1'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', required=True)
    args = parser.parse_args()
    directory = os.path.join(os.path.abspath(args.out), VERSION)
    if not fetch_wheel.fetch('xla-cpu-pjrt', VERSION, 'xla_plugins/xla_cpu_pjrt', directory):
        return 1
    print(os.path.join(directory, 'xla_cpu_pjrt.so'))
    return 0


if __name__ == '__main__':
    sys.exit(main())
