#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MPI ranks and threads of one process write byte-identical outputs, whole npz files.

  SHARDCALL_COMMAND=build/bin/shardcall mpi_same_bytes.py --mpiexec=mpirun [NAME_PART...]

A handful of programs, and those of tests/data/targets; all mlp_*, llama_*tiny* and shard_map_* files with inputs
where SHARDCALL_CORPUS is set. Exit status 77: no MPI.
"""

import argparse
import glob
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import command  # noqa: E402

HANDFUL = ('mlp_unreduced_m4.sdy', 'mlp_uneven_b10_d4m2.sdy', 'mlp_permuted_d8.gspmd',
           'shard_map_collectives_d4m2.sdy', 'shard_map_nested_d4m2.gspmd',
           'llama_scan4_train_tiny_calls_d4m2.sdy')
ALL = re.compile(r'(mlp_|shard_map_|llama_.*tiny)')
# As root in a container, more ranks than cores.
ENVIRONMENT = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
               'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_mpi_yield_when_idle': '1'}


def examine(path, mpiexec, directory):
    """What is wrong with one file; ''."""
    devices = re.search(r'num_partitions=(\d+)', command.header(path)).group(1)
    given = command.numerics(path, 'inputs')
    inputs = '--inputs=' + given if given else '--random-inputs=3'
    contents = {}
    for backend, prefix in (('inprocess', ()), ('mpi', (mpiexec, '-np', devices))):
        out = os.path.join(directory, backend + '.npz')
        result = command.run(['run', path, '--backend=' + backend, inputs, '--outputs=' + out],
                             prefix=prefix, env=ENVIRONMENT, timeout=90)
        if result.code != 0:
            return f'{backend}: {result.fault or result.code}: {result.err[-500:]}'
        with open(out, 'rb') as f:
            contents[backend] = f.read()
        os.remove(out)
    return '' if contents['inprocess'] == contents['mpi'] else 'the outputs differ'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--mpiexec', default='')
    parser.add_argument('names', nargs='*')
    args = parser.parse_args()
    if not args.mpiexec:
        print('SKIPPED: this build has no MPI')
        return command.SKIPPED
    whole = bool(os.environ.get('SHARDCALL_CORPUS'))
    files = [f for f in command.hlo_files() if command.numerics(f, 'inputs')
             and (ALL.match(os.path.basename(f)) if whole
                  else os.path.basename(f).startswith(HANDFUL))
             and (not args.names or any(part in f for part in args.names))]
    files += [f for f in sorted(glob.glob(os.path.join(command.DATA, 'targets', '*.hlo')))
              if not args.names or any(part in f for part in args.names)]
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for path in files:
            wrong = examine(path, args.mpiexec, directory)
            if wrong:
                print(f'{os.path.basename(path)}: {wrong}')
                failures += 1
    print(f'{len(files)} files on MPI ranks and in one process, {failures} failures')
    return 1 if failures or not files else 0


if __name__ == '__main__':
    sys.exit(main())
