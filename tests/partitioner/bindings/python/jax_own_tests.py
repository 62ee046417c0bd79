#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's own tests under sj.partitioner(), on eight host devices.

    jax_own_tests.py [--tests=FOLDER] [--all [--record]] [--list]

FOLDER (by default SHARDCALL_CORPUS/../jax_tests) has pass.txt, the tests that pass under JAX
alone, and tests/. Without --all the tests of pjit are left out: they take minutes. What fails
must stand in tests/status/jax_tests.json, and what stands there must fail; --record writes the
counts, and what newly fails, into it. Exit status 77 without the tests, pytest or
the package.
"""
import argparse
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = """import pytest
import shardcall.jax as sj


@pytest.fixture(autouse=True)
def under_shardcall():
    with sj.partitioner(allow_replicate=('all',)):
        yield
"""
# What fails, and why.
RECORD = os.path.join(HERE, '../../../status/jax_tests.json')


def write_record(wanted, passed, known):
    files = {}
    for w in wanted:
        count = files.setdefault(w.split('::')[0], {'of': 0, 'pass': 0})
        count['of'] += 1
        count['pass'] += w in passed
    fails = {name: known.get(name, '') for name in
             ('::'.join(w.split('::')[1:]) for w in wanted if w not in passed)}
    with open(RECORD, 'w', encoding='utf-8') as f:
        json.dump({'jax': importlib.metadata.version('jax'), 'files': files, 'fails': fails}, f,
                  indent=1)
        f.write('\n')


def main():
    parser = argparse.ArgumentParser()
    corpus = os.environ.get('SHARDCALL_CORPUS', '')
    parser.add_argument('--tests', default=os.path.join(os.path.dirname(os.path.abspath(corpus)),
                                                        'jax_tests') if corpus else '')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--list', action='store_true', help='print what fails')
    parser.add_argument('--record', action='store_true')
    options = parser.parse_args()
    with open(RECORD, encoding='utf-8') as f:
        reasons = json.load(f)['fails']
    if not os.path.isfile(os.path.join(options.tests, 'pass.txt')):
        print('SKIPPED: no tests of JAX are at hand')
        return 77
    for module in ('jax', 'pytest', 'absl', 'shardcall'):
        if importlib.util.find_spec(module) is None:
            print(f'SKIPPED: no {module}')
            return 77
    with open(os.path.join(options.tests, 'pass.txt'), encoding='utf-8') as f:
        wanted = [line.strip() for line in f if line.strip()]
    if not options.all:
        wanted = [w for w in wanted if 'pjit_test.py' not in w]
    files = sorted({w.split('::')[0] for w in wanted})
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'shardcall_fixture.py'), 'w', encoding='utf-8') as f:
            f.write(PLUGIN)
        ran = subprocess.run(
            [sys.executable, '-m', 'pytest', '-q', '-rA', '-p', 'shardcall_fixture',
             '-p', 'no:cacheprovider', *files],
            cwd=options.tests, capture_output=True, text=True, timeout=1500, check=False,
            env={**os.environ, 'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8',
                 'PYTHONDONTWRITEBYTECODE': '1',
                 'PYTHONPATH': os.pathsep.join([folder, os.environ.get('PYTHONPATH', '')])})
    passed = set(re.findall(r'^PASSED (\S+)', ran.stdout, re.M))
    failed = [w for w in wanted if w not in passed]
    if options.list:
        print('\n'.join(failed))
    if options.record and options.all and passed:
        write_record(wanted, passed, reasons)
    known = {w for w in failed if '::'.join(w.split('::')[1:]) in reasons}
    wrong = [f'{w} fails' for w in failed if w not in known]
    wrong += [f'{name} passes: it need not stand in jax_tests.json' for name in reasons
              if any(w.endswith(name) and w in passed for w in wanted)]
    if not passed:
        wrong = [f'nothing passed:\n{ran.stdout[-2000:]}{ran.stderr[-2000:]}']
    print('\n'.join([*wrong, f'{len(wanted)} tests that pass under JAX alone: '
                     f'{len(wanted) - len(failed)} pass, {len(known)} are known to fail']))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
