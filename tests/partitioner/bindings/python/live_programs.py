#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's programs live through sj.jit, on JAX's own CPU client; with JAX's numbers, and
partitioned by us.

    live_programs.py [--only=REGEX] [--forms=sdy,gspmd] [--every=N]

The programs are those whose source lies beside the full corpus
(SHARDCALL_CORPUS/../hlo_programs) and that have numbers. Exit status 77 without jax, the
package or the sources.
"""
import argparse
import functools
import importlib.util
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '../pjrt_wrapper'), os.path.join(HERE, '../../../support')]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--only', default='')
    parser.add_argument('--forms', default='sdy,gspmd')
    parser.add_argument('--every', type=int, default=1, help='every N-th program')
    options = parser.parse_args()
    corpus = os.environ.get('SHARDCALL_CORPUS', '')
    sources = os.path.join(os.path.dirname(os.path.abspath(corpus)), 'hlo_programs')
    if not corpus or not os.path.isdir(sources):
        print('skipped: no sources are at hand')
        return 77
    # XLA:CPU stands still by itself where many calls are under way on few threads.
    os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '16'})
    sys.path.insert(0, os.path.dirname(sources))
    sys.dont_write_bytecode = True
    try:
        import jax
        import shardcall.jax as sj
        from hlo_programs import base  # the package registers all programs
    except ImportError as error:
        print(f'skipped: {error}')
        return 77
    spec = importlib.util.spec_from_file_location(
        'live_under_wrapper', os.path.join(HERE, '../pjrt_wrapper/live_programs.py'))
    live = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(live)
    reports = tempfile.mkdtemp(prefix='live_programs.')
    jit = functools.partial(sj.jit, report=reports, strict=True)
    ran, failed = live.run_all(jax, base, options, corpus, reports, jit)
    shutil.rmtree(reports, ignore_errors=True)
    print(f'{ran} programs, {failed} differ or fail')
    return 1 if failed or not ran else 0


if __name__ == '__main__':
    sys.exit(main())
