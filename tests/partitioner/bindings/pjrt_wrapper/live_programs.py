#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's programs live, unmodified, under the plugin that wraps XLA:CPU's; with JAX's
numbers, and partitioned by us.

    live_programs.py --library=libshardcall_pjrt.so --plugin=xla_cpu_pjrt.so [--only=REGEX]
                     [--forms=sdy,gspmd] [--first=K]

Runs the programs whose source lies beside the full corpus (SHARDCALL_CORPUS/../hlo_programs)
and that have numbers. Exit status 77 without jax, the plugin or the sources.
"""
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../../support'))
import framework  # noqa: E402
import live_corpus  # noqa: E402


def main():
    parser = live_corpus.parser()
    parser.add_argument('--library', default=os.environ.get('SHARDCALL_PJRT_LIBRARY', ''))
    parser.add_argument('--plugin', default=os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', ''))
    options = parser.parse_args()
    if not options.plugin or live_corpus.corpus() is None:
        print('skipped: SHARDCALL_PJRT_CPU_PLUGIN names no plugin, or no sources are at hand')
        return 77
    with tempfile.TemporaryDirectory(prefix='live_programs.') as scratch:
        reports = os.path.join(scratch, 'reports')
        os.environ.update({**framework.variables(options.library, options.plugin, scratch),
                           'SHARDCALL_REPORT': reports})
        return live_corpus.main(options, reports)


if __name__ == '__main__':
    sys.exit(main())
