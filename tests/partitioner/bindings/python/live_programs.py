#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's programs live through sj.jit, on JAX's own CPU client; with JAX's numbers, and
partitioned by us.

    live_programs.py [--only=REGEX] [--forms=sdy,gspmd] [--every=N]

The programs are those whose source lies beside the full corpus
(SHARDCALL_CORPUS/../hlo_programs) and that have numbers. Exit status 77 without jax, the
package or the sources.
"""
import functools
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../../support'))
import live_corpus  # noqa: E402


def main():
    options = live_corpus.parser().parse_args()
    if live_corpus.corpus() is None:
        print('skipped: no sources are at hand')
        return 77
    # XLA:CPU stands still by itself where many calls are under way on few threads.
    os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '16'})
    try:
        import shardcall.jax as sj
    except ImportError as error:
        print(f'skipped: {error}')
        return 77
    with tempfile.TemporaryDirectory(prefix='live_programs.') as reports:
        return live_corpus.main(options, reports,
                                functools.partial(sj.jit, report=reports, strict=True))


if __name__ == '__main__':
    sys.exit(main())
