# SPDX-License-Identifier: Apache-2.0
"""Programs live under JAX on a GPU, over several processes that share it; held against JAX's
results for one device.

    under_jax.py HOW [--processes=4] [--platform=cuda] [--only=REGEX] [--seconds=90]

HOW: `jit`: by sj.jit; `install`: by XLA's own partitioner with the rules of sj.install;
`wrapper`: by jax.jit, with the plugin that wraps JAX's; `jax`: by JAX alone; `time`: steps of
larger programs by sj.jit and by JAX alone, in turn. Each program ends
in a line with its name and "ok", or what is wrong. Exit status 1 if one is wrong. Inputs are
small integers where a program has exact results; those are compared bitwise.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

import steps

MEMORY = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false', 'XLA_PYTHON_CLIENT_MEM_FRACTION': '.15'}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument('how', choices=('jit', 'install', 'wrapper', 'jax', 'time'))
    parser.add_argument('--processes', type=int, default=4)
    parser.add_argument('--platform', choices=('cuda', 'cpu'), default='cuda')
    parser.add_argument('--only', default='')
    parser.add_argument('--seconds', type=float, default=90)
    parser.add_argument('--address', help='of a process: where they meet')
    parser.add_argument('--rank', type=int)
    return parser.parse_args()


def start(given, reports):
    """Runs the processes, and prints what the first says and what is wrong in the others."""
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{s.getsockname()[1]}'
    command = [sys.executable]
    if given.how == 'wrapper':
        command += ['-m', 'shardcall_pjrt', f'--platform={given.platform}', '--devices=1']
    command += [os.path.abspath(__file__), *sys.argv[1:], f'--address={address}']
    processes = []
    for rank in range(given.processes):
        env = {**os.environ, **steps.SHARED, **MEMORY, 'NCCL_HOSTID': f'vhost{rank}', 'JAX_NUM_CPU_DEVICES': '1',
               'PYTHONUNBUFFERED': '1', 'JAX_PLATFORMS': given.platform,
               'SHARDCALL_REPORT': os.path.join(reports, str(rank))}
        os.mkdir(env['SHARDCALL_REPORT'])
        processes.append(subprocess.Popen([*command, f'--rank={rank}'], env=env, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          start_new_session=True))
    end, wrong = time.monotonic() + given.seconds, 0
    for rank, process in enumerate(processes):
        try:
            out, err = process.communicate(timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += '\ntimed out'
        lines = out.splitlines()
        bad = [line for line in lines if not line.endswith(' ok')]
        print('\n'.join(lines if rank == 0 else [f'rank {rank}: {line}' for line in bad]))
        if process.returncode != 0 or not lines:
            wrong += 1
            print(f'rank {rank}: status {process.returncode}\n{err[-3000:]}')
    return 1 if wrong else 0


def run(given):
    """One process; an exit status."""
    import jax
    if given.platform == 'cpu':
        jax.config.update('jax_cpu_collectives_implementation', 'gloo')
    if given.processes > 1:
        jax.distributed.initialize(given.address, given.processes, given.rank,
                                   local_device_ids=[0])
    import jax_programs
    wrong = 0
    for program in jax_programs.programs(given.platform, given.how):
        if not re.search(given.only, program.name):
            continue
        begun = time.monotonic()
        try:
            told = jax_programs.outcome(program, given.how)
        except Exception as error:  # what JAX and XLA raise is the finding
            told = f'{type(error).__name__}: {str(error)[:600]}'
        wrong += not told.endswith('ok')
        print(f'{program.name}: {time.monotonic() - begun:.1f} s {told}', flush=True)
    if given.processes > 1:
        jax.distributed.shutdown()  # the first process serves the others
    return 1 if wrong else 0


def main():
    given = options()
    if given.rank is None:
        with tempfile.TemporaryDirectory() as reports:
            return start(given, reports)
    status = run(given)
    sys.stdout.flush()
    os._exit(status)  # what a failed program left waiting would keep the process


if __name__ == '__main__':
    sys.exit(main())
