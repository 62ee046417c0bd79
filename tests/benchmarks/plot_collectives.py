#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the bus bandwidth that bench_collectives measured, one panel an op.

    plot_collectives.py bench.json... -o bandwidth.svg
"""
import argparse
import json
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 210, 60, 40, 70
COLORS = ['#1b6ca8', '#d1495b', '#66a182', '#8d6a9f', '#edae49', '#444444']


def size_text(count):
    for unit, name in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if count >= unit:
            return f'{count / unit:g} {name}'
    return f'{count} B'


def panel(x, y, title, lines, sides):
    """`lines`: side -> [(bytes, GB/s)], on logarithmic axes."""
    points = [p for line in lines.values() for p in line]
    low = math.floor(math.log10(max(1e-3, min(p[1] for p in points))))
    high = math.ceil(math.log10(max(p[1] for p in points)))
    high = max(high, low + 1)
    first, last = (math.log2(f(p[0] for p in points)) for f in (min, max))
    last = max(last, first + 1)

    def at(count, speed):
        speed = max(speed, 10 ** low)
        return (x + (math.log2(count) - first) / (last - first) * WIDTH,
                y + (high - math.log10(speed)) / (high - low) * HEIGHT)

    out = [f'<text x="{x}" y="{y - 10}" font-weight="bold">{escape(title)}</text>',
           f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>']
    for power in range(low, high + 1):
        _, level = at(2 ** first, 10 ** power)
        out.append(f'<line x1="{x}" x2="{x + WIDTH}" y1="{level:.1f}" y2="{level:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x - 6}" y="{level + 4:.1f}" text-anchor="end">{10 ** power:g}</text>')
    for count in sorted({p[0] for p in points})[::2]:
        column, _ = at(count, 10 ** low)
        out.append(f'<text x="{column:.1f}" y="{y + HEIGHT + 15}" text-anchor="middle">{size_text(count)}</text>')
    for side, line in lines.items():
        path = ' '.join('{:.1f},{:.1f}'.format(*at(*p)) for p in sorted(line))
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLORS[sides.index(side) % len(COLORS)]}"'
                   f' stroke-width="{2.5 if side == "shardcall" else 1.3}"/>')
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+')
    parser.add_argument('-o', '--out', required=True)
    args = parser.parse_args()
    panels, sides = [], []
    for name in args.files:
        with open(name) as f:
            run = json.load(f)
        for op in dict.fromkeys(p['op'] for p in run['points']):
            lines = {}
            for p in run['points']:
                if p['op'] == op:
                    lines.setdefault(p['side'], []).append((p['bytes'], p['busbw']))
                    if p['side'] not in sides:
                        sides.append(p['side'])
            panels.append((f'{op}, {run["backend"]}, {run["devices"]} devices', lines))
    columns = 3
    rows = (len(panels) + columns - 1) // columns
    width = columns * (WIDTH + GAP) + LEFT
    height = rows * (HEIGHT + GAP) + TOP + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
           ' font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, (title, lines) in enumerate(panels):
        out += panel(LEFT + i % columns * (WIDTH + GAP), TOP + i // columns * (HEIGHT + GAP), title,
                     lines, sides)
    for i, side in enumerate(sides):
        x = LEFT + i * 150
        out.append(f'<line x1="{x}" x2="{x + 24}" y1="{height - 16}" y2="{height - 16}"'
                   f' stroke="{COLORS[i % len(COLORS)]}" stroke-width="2.5"/>')
        out.append(f'<text x="{x + 30}" y="{height - 12}">{escape(side)}</text>')
    out.append(f'<text x="{width - 20}" y="{height - 12}" text-anchor="end">bus bandwidth, GB/s</text></svg>')
    with open(args.out, 'w') as f:
        f.write('\n'.join(out) + '\n')


if __name__ == '__main__':
    main()
