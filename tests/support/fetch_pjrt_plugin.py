#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches one of XLA's backends as a PJRT plugin out of its wheel.

    fetch_pjrt_plugin.py cuda --out=build/pjrt         jax-cuda13-pjrt, 124 MB
    fetch_pjrt_plugin.py newest_cuda --out=build/pjrt  the same of the newest JAX that was tested
    fetch_pjrt_plugin.py cpu --out=build/pjrt_cpu      xla-cpu-pjrt, 63 MB

prints the path of the library. That for GPUs needs none for registrations and for compiling;
beside that for CPUs lies include/pjrt_c_api.h. Exit status 1 where it cannot be had; its
tests then say that they are skipped.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fetch_wheel  # noqa: E402

# By platform: wheel, version, folder in it, library.
PLUGINS = {
    'cuda': ('jax-cuda13-pjrt', '0.10.2', 'jax_plugins/xla_cuda13', 'xla_cuda_plugin.so'),
    'newest_cuda': ('jax-cuda13-pjrt', '0.12.0.1', 'jax_plugins/xla_cuda13', 'xla_cuda_plugin.so'),
    'cpu': ('xla-cpu-pjrt', '0.0.1', 'xla_plugins/xla_cpu_pjrt', 'xla_cpu_pjrt.so'),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('platform', choices=sorted(PLUGINS))
    parser.add_argument('--out', required=True)
    args = parser.parse_args()
    wheel, version, folder, library = PLUGINS[args.platform]
    directory = os.path.join(os.path.abspath(args.out), version)
    if not fetch_wheel.fetch(wheel, version, folder, directory):
        return 1
    print(os.path.join(directory, library))
    return 0


if __name__ == '__main__':
    sys.exit(main())
