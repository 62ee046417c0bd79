#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's programs live through sj.jit, on JAX's own CPU client; with JAX's numbers, and
partitioned by us. Their StableHLO is read by us, too, but for what is known to be left to XLA.

    live_programs.py [--only=REGEX] [--forms=sdy,gspmd] [--first=K]

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


# What XLA alone converts to HLO.
LEFT_TO_XLA = ['an op chlo.sinh', 'an op chlo.erf_inv',
               'a manual_computation without operands or results']


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
        failed = live_corpus.main(options, reports,
                                  functools.partial(sj.jit, report=reports, strict=True))
    from shardcall.jax import compiling
    others = [why for why in compiling.left_to_xla() if not any(known in why for known in LEFT_TO_XLA)]
    for why in others:
        print(f'converted by XLA: {why}')
    return 1 if failed or others else 0


if __name__ == '__main__':
    sys.exit(main())
