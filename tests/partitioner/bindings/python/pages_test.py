#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The README and the pages for Python users: their code runs, and prints what stands there.

    pages_test.py [--update] [PAGE ...]

Of a notebook the code cells are run in their order, and their text is held against the stored
outputs; of a Markdown page the ```python blocks, and the block without a language that follows
one directly. --update writes what was printed. Each page runs in a process of its own, in the
project's folder. Exit status 77 without JAX or a C++ compiler.
"""
import argparse
import ast
import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../..'))
PAGES = ('README.md', 'examples/jax/sharded_kernel.ipynb',
         'partitioner/bindings/python/MOVING.md')


class Markdown:
    BLOCK = re.compile(r'^```python\n(.*?)^```\n(?:```\n(.*?)^```\n)?', re.M | re.S)

    def __init__(self, path):
        with open(path, encoding='utf-8') as f:
            self.text = f.read()

    def cells(self):
        return [(m.group(1), m.group(2) or '') for m in self.BLOCK.finditer(self.text)]

    def update(self, path, outputs):
        made = iter(outputs)

        def block(m):
            output = next(made)
            return f'```python\n{m.group(1)}```\n' + (f'```\n{output}```\n' if output else '')

        with open(path, 'w', encoding='utf-8') as f:
            f.write(self.BLOCK.sub(block, self.text))


class Notebook:
    def __init__(self, path):
        with open(path, encoding='utf-8') as f:
            self.book = json.load(f)

    def _code(self):
        return [c for c in self.book['cells'] if c['cell_type'] == 'code']

    def cells(self):
        return [(''.join(c['source']),
                 ''.join(''.join(o['text']) for o in c['outputs'])) for c in self._code()]

    def update(self, path, outputs):
        for k, (cell, output) in enumerate(zip(self._code(), outputs)):
            cell['execution_count'] = k + 1
            cell['outputs'] = [{'name': 'stdout', 'output_type': 'stream',
                                'text': output.splitlines(True)}] if output else []
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(self.book, f, indent=1, ensure_ascii=False)
            f.write('\n')


def run(code, names, number):
    """What a cell prints, and its last expression, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, f'cell {number}', 'exec'), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f'cell {number}', 'eval'), names)
            if value is not None:
                print(repr(value))
    return out.getvalue()


def one(path, update):
    page = (Notebook if path.endswith('.ipynb') else Markdown)(path)
    names, outputs, wrong = {'__name__': '__main__'}, [], 0
    for number, (code, expected) in enumerate(page.cells(), 1):
        found = run(code, names, number)
        outputs.append(found)
        if found != expected and not update:
            wrong += 1
            print(f'{path}, cell {number}: expected\n{expected}found\n{found}')
    if update:
        page.update(path, outputs)
    print(f'{path}: {len(outputs)} cells, {wrong} print something else')
    return 1 if wrong or not outputs else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--update', action='store_true')
    parser.add_argument('--here', action='store_true', help='run the page in this process')
    parser.add_argument('pages', nargs='*')
    options = parser.parse_args()
    if options.here:
        return one(options.pages[0], options.update)
    try:
        import jax  # noqa: F401
        import shardcall  # noqa: F401
    except ImportError as e:
        print(f'SKIPPED: {e}')
        return 77
    if shutil.which('g++') is None:
        print('SKIPPED: no C++ compiler')
        return 77
    failed = 0
    for page in options.pages or PAGES:
        command = [sys.executable, os.path.abspath(__file__), '--here', page]
        done = subprocess.run(command + ['--update'] * options.update, cwd=ROOT, check=False)
        failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
