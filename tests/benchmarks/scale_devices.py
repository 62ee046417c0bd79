#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scales the first mesh axis of an HLO program and its global batch together.

    scale_devices.py IN.hlo --axis=64 --batch=256 --factor=128 -o OUT.hlo

The program's work per device stays as it is: every array dimension, slice limit
and slice size that equals BATCH is multiplied by FACTOR, and so are the first
axis of size AXIS in meshes and named shardings, and the tile counts and device
numbers that are multiples of AXIS in `devices=[..]<=[..]`. AXIS and BATCH must
be numbers that the program uses for nothing else.
"""
import argparse
import re
import sys


def scale(text, axis, batch, factor):
    """The text with the axis and the batch `factor` times as large."""
    def numbers(body, wanted):
        return re.sub(r'\d+', lambda m: str(int(m[0]) * factor) if wanted(int(m[0])) else m[0], body)

    def is_batch(n):
        return n == batch

    def has_axis(n):
        return n >= axis and n % axis == 0

    # Arrays, and what slices name: `bf16[256,8192]`, `slice={[0:256]}`.
    text = re.sub(r'\b([a-z]+\d*[a-z0-9]*)\[([\d,]+)\]',
                  lambda m: f'{m[1]}[{numbers(m[2], is_batch)}]', text)
    text = re.sub(r'\b(slice|dynamic_slice_sizes|slice_sizes)=\{[^{}]*\}',
                  lambda m: numbers(m[0], is_batch), text)
    # Tilings: devices=[64,1,8]<=[512], <=[64,8]T(1,0).
    text = re.sub(r'(devices=)\[([\d,]+)\]<=\[([\d,]+)\]',
                  lambda m: f'{m[1]}[{numbers(m[2], has_axis)}]<=[{numbers(m[3], has_axis)}]', text)
    # Meshes: `"data"=64` in quoted attributes, `mesh['data'=64` in named shardings.
    text = re.sub(r"""((?:\\?"|')[\w.]+(?:\\?"|')\s*=\s*)(\d+)(?=[,\]])""",
                  lambda m: m[1] + (str(int(m[2]) * factor) if int(m[2]) == axis else m[2]), text)
    text = re.sub(r'(num_partitions=)(\d+)', lambda m: m[1] + str(int(m[2]) * factor), text, count=1)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('input')
    parser.add_argument('--axis', type=int, required=True, help='size of the first mesh axis')
    parser.add_argument('--batch', type=int, required=True, help='global batch')
    parser.add_argument('--factor', type=int, required=True)
    parser.add_argument('-o', '--output', default='-')
    args = parser.parse_args()
    with open(args.input) as f:
        text = scale(f.read(), args.axis, args.batch, args.factor)
    if args.output == '-':
        sys.stdout.write(text)
    else:
        with open(args.output, 'w') as f:
            f.write(text)


if __name__ == '__main__':
    main()
