#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the JAX of this Python dumps today is read, partitioned and run as tests/STATUS.md says.

  SHARDCALL_CORPUS=DIR SHARDCALL_COMMAND=build/bin/shardcall newest_corpus.py STATUS.md

Dumps small programs of each kind by make_corpus.py, whose folders it needs (exit status 77: they
or numpy are not there), and does with them what make_status.py --check does."""

import glob
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'support'))
import command  # noqa: E402
try:
    import live_corpus
    import make_status
    import xla_bytes
except ImportError as error:
    print(f'SKIPPED: {error}')
    sys.exit(command.SKIPPED)

PROGRAMS = ['mlp_train_d4m2', 'mlp_uneven_b3_d4m2', 'mlp_unreduced_m4', 'mlp_permuted_d8',
            'moe_sort_tiny_e4m2', 'embed_order_d4m2', 'embed_indexed_d4m2', 'linalg_lu_d8',
            'conv_kinds_h4w2', 'fft_custom_partitioning_d8', 'random_draws_threefry2x32_d4m2',
            'shard_map_collectives_d4m2', 'shard_map_nested_d4m2', 'shard_map_grad_d4m2',
            'custom_call_api_v4_attributes', 'custom_call_api_callbacks',
            'custom_call_api_pallas_triton_cuda_manual']


def main():
    if live_corpus.corpus() is None:
        print('SKIPPED: SHARDCALL_CORPUS names no corpus with hlo_programs beside it')
        return command.SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([sys.executable, os.path.join(HERE, 'make_corpus.py'), folder,
                               '--only', f'^({"|".join(PROGRAMS)})[.]'],
                              stdout=subprocess.PIPE, text=True, check=False)
        print(made.stdout)
        rows = make_status.examine_all(sorted(glob.glob(os.path.join(folder, '*.hlo'))))
    with open(sys.argv[1], encoding='utf-8') as f:
        worse = make_status.check(rows, make_status.read_table(sys.argv[1]),
                                  xla_bytes.read_table(f.read()))
    worse += [f'{name}: was not made' for name in PROGRAMS
              if not any(make_status.program_of(row) == name for row in rows)]
    print('\n'.join(worse))
    print(f'{len(rows)} files, {len(worse)} worse than {os.path.basename(sys.argv[1])} says')
    return 1 if worse or made.returncode else 0


if __name__ == '__main__':
    sys.exit(main())
