#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's own tests under sj.partitioner(), on eight host devices.

    jax_own_tests.py [--tests=FOLDER] [--all [--record]] [--list]
    jax_own_tests.py --tests=FOLDER --alone

FOLDER has tests/, files of JAX's tests at the tag of the version that is installed, and pass.txt,
the tests of them that pass under JAX alone, which --alone writes. By default it is
SHARDCALL_CORPUS/../jax_tests, which is of JAX 0.10.2, or for any other version
SHARDCALL_CORPUS/../jax_tests_VERSION. Without --all the tests of pjit and shard_map are left out:
they take minutes. What fails must stand in tests/status/jax_tests.json, and what stands there must
fail; --record writes the counts of the version, and what newly fails, into it. Exit status 77
without the tests, pytest or the package.
"""
import argparse
import glob
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
LONG = ('tests/pjit_test.py', 'tests/shard_map_test.py')
# What fails, and why.
RECORD = os.path.join(HERE, '../../../status/jax_tests.json')


def version():
    return importlib.metadata.version('jax')


def recorded():
    """{version of JAX: {'files': counts, 'fails': {name: why}}}"""
    with open(RECORD, encoding='utf-8') as f:
        return json.load(f)


def without_file(name):
    return '::'.join(name.split('::')[1:])


def write_record(wanted, passed, known):
    files = {}
    for w in wanted:
        count = files.setdefault(w.split('::')[0], {'of': 0, 'pass': 0})
        count['of'] += 1
        count['pass'] += w in passed
    fails = {name: known.get(name, '') for name in
             (without_file(w) for w in wanted if w not in passed)}
    with open(RECORD, encoding='utf-8') as f:
        made = json.load(f)
    made[version()] = {'files': files, 'fails': fails}
    with open(RECORD, 'w', encoding='utf-8') as f:
        json.dump(made, f, indent=1)
        f.write('\n')


def default_folder():
    corpus = os.environ.get('SHARDCALL_CORPUS', '')
    if not corpus:
        return ''
    name = 'jax_tests' if version() == '0.10.2' else f'jax_tests_{version()}'
    return os.path.join(os.path.dirname(os.path.abspath(corpus)), name)


def run(folder, files, *options, path=''):
    """(the tests that pass, all that pytest printed)."""
    ran = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-rA', '-p', 'no:cacheprovider', *options, *files],
        cwd=folder, capture_output=True, text=True, timeout=3000, check=False,
        env={**os.environ, 'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8',
             'PYTHONDONTWRITEBYTECODE': '1',
             'PYTHONPATH': os.pathsep.join([path, os.environ.get('PYTHONPATH', '')])})
    return set(re.findall(r'^PASSED (\S+)', ran.stdout, re.M)), ran.stdout + ran.stderr


def write_list(folder):
    """pass.txt, by JAX alone."""
    files = sorted(glob.glob('tests/*_test.py', root_dir=folder))
    passed, said = run(folder, files)
    if not passed:
        print(said[-2000:])
        return 1
    with open(os.path.join(folder, 'pass.txt'), 'w', encoding='utf-8') as f:
        f.writelines(f'{name}\n' for name in sorted(passed))
    print(f'{len(passed)} tests of {len(files)} files pass under JAX {version()} alone')
    return 0


def main():
    for module in ('jax', 'pytest', 'absl', 'shardcall'):
        if importlib.util.find_spec(module) is None:
            print(f'SKIPPED: no {module}')
            return 77
    parser = argparse.ArgumentParser()
    parser.add_argument('--tests', default=default_folder())
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--alone', action='store_true', help='write pass.txt')
    parser.add_argument('--list', action='store_true', help='print what fails')
    parser.add_argument('--record', action='store_true')
    options = parser.parse_args()
    if options.alone:
        return write_list(options.tests)
    if not os.path.isfile(os.path.join(options.tests, 'pass.txt')):
        print(f'SKIPPED: no tests of JAX {version()} are at hand')
        return 77
    with open(os.path.join(options.tests, 'pass.txt'), encoding='utf-8') as f:
        wanted = [line.strip() for line in f if line.strip()]
    if not options.all:
        wanted = [w for w in wanted if w.split('::')[0] not in LONG]
    reasons = recorded().get(version(), {'fails': {}})['fails']
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'shardcall_fixture.py'), 'w', encoding='utf-8') as f:
            f.write(PLUGIN)
        passed, said = run(options.tests, sorted({w.split('::')[0] for w in wanted}),
                           '-p', 'shardcall_fixture', path=folder)
    failed = [w for w in wanted if w not in passed]
    if options.list:
        print('\n'.join(failed))
    if options.record and options.all and passed:
        write_record(wanted, passed, reasons)
    known = {w for w in failed if without_file(w) in reasons}
    wrong = [f'{w} fails' for w in failed if w not in known]
    wrong += [f'{name} passes: it need not stand in jax_tests.json' for name in reasons
              if any(w.endswith(name) and w in passed for w in wanted)]
    if not passed:
        wrong = [f'nothing passed:\n{said[-4000:]}']
    print('\n'.join([*wrong, f'{len(wanted)} tests that pass under JAX {version()} alone: '
                     f'{len(wanted) - len(failed)} pass, {len(known)} are known to fail']))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
