#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the faults of mpi_fault and checks what every rank reported and what is left.

    run_mpi_faults.py --program=build/bin/mpi_fault [--ranks=2,4] [--faults=Killed,...]
                      [--deadline=1] [--repeat=1] [--jobs=1]

A run passes if every rank but the guilty one logs "pass" (a typed error within
twice the deadline, and the same later), the job ends by itself, no process of it
lives on, and no shared memory of it is left. Prints a table of faults by ranks.
"""
import argparse
import concurrent.futures
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MARK = 'SHARDCALL_FAULT_RUN'
SEGMENTS = '/dev/shm/vader_segment.*'
SILENT_GUILTY = {'Killed', 'KilledBeforeAShortCall', 'Stopped', 'Terminated', 'Leaves', 'ExitsAtOnce',
                 'LauncherKilled', 'StartKilled', 'StartStopped', 'StartLate', 'StartLeaves',
                 'EndStopped'}


def processes(mark):
    """Ids of live processes whose environment has the mark, with their states."""
    found = {}
    for path in glob.glob('/proc/[0-9]*'):
        try:
            with open(path + '/environ', 'rb') as f:
                if f'{MARK}={mark}'.encode() not in f.read():
                    continue
            with open(path + '/stat') as f:
                state = f.read().rsplit(')', 1)[1].split()[0]
            if state not in 'ZX':
                found[int(path[6:])] = state
        except (OSError, IndexError):
            continue
    return found


def wait_until_gone(mark, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not processes(mark):
            return True
        time.sleep(0.05)
    return not processes(mark)


def run(args, fault, ranks):
    """None if all is well, else what is wrong."""
    folder = tempfile.mkdtemp(prefix='shardcall_fault_')
    mark = os.path.basename(folder)
    env = dict(os.environ, **{MARK: mark})
    case = 'Stopped' if fault == 'LauncherKilled' else fault
    command = [args.mpiexec, '-np', str(ranks), args.program, case, str(args.deadline), folder]
    with open(os.path.join(folder, 'output'), 'w') as output:
        job = subprocess.Popen(command, env=env, stdout=output, stderr=subprocess.STDOUT,
                               start_new_session=True)
    wrong = []
    try:
        if fault == 'LauncherKilled':
            # All have met by then, and wait for the one that is stopped.
            end = time.monotonic() + 30
            while time.monotonic() < end and 'T' not in processes(mark).values():
                time.sleep(0.02)
            job.kill()
        # Start-up and the launcher's own clean-up take their time on a busy machine.
        job.wait(timeout=30 + 6 * args.deadline)
    except subprocess.TimeoutExpired:
        wrong.append('the job did not end')
        os.killpg(job.pid, signal.SIGKILL)
    if not wait_until_gone(mark, 5):
        left = processes(mark)
        wrong.append(f'{len(left)} processes live on')
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    for rank in range(ranks):
        if fault == 'LauncherKilled' or (rank == 1 and fault in SILENT_GUILTY):
            continue
        path = os.path.join(folder, f'rank.{rank}')
        if not os.path.exists(path):
            wrong.append(f'rank {rank} reported nothing')
            continue
        with open(path) as f:
            text = f.read()
        if text.splitlines()[-1:] != ['pass']:
            wrong.append(f'rank {rank}: {text}')
        if fault == 'EndStopped' and rank == 0:
            with open(os.path.join(folder, 'output')) as f:
                said = f.read()
            if 'E301' not in said or 'stopped processes: rank 1' not in said or not job.returncode:
                wrong.append(f'the job ends with {job.returncode} and says: {said}')
        if fault == 'Stopped' and rank == 0 and 'is stopped' not in text:
            wrong.append(f'rank {rank} does not say that rank 1 is stopped: {text}')
    if args.verbose or wrong:
        for path in sorted(glob.glob(folder + '/*')):
            with open(path) as f:
                print(f'--- {fault}, {ranks} ranks: {os.path.basename(path)}\n{f.read()}', flush=True)
    shutil.rmtree(folder)
    return '; '.join(wrong) or None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--program', required=True)
    parser.add_argument('--mpiexec', default='mpirun')
    parser.add_argument('--ranks', default='2,4')
    parser.add_argument('--faults', default='', help='all by default')
    parser.add_argument('--deadline', type=float, default=1)
    parser.add_argument('--repeat', type=int, default=1)
    parser.add_argument('--jobs', type=int, default=1, help='runs at a time')
    parser.add_argument('--verbose', action='store_true')
    args = parser.parse_args()
    for name, value in (('OMPI_ALLOW_RUN_AS_ROOT', '1'), ('OMPI_ALLOW_RUN_AS_ROOT_CONFIRM', '1'),
                        ('OMPI_MCA_rmaps_base_oversubscribe', '1'),
                        ('OMPI_MCA_mpi_yield_when_idle', '1')):
        os.environ.setdefault(name, value)
    known = subprocess.run([args.program, '--list'], check=True, capture_output=True, text=True)
    faults = args.faults.split(',') if args.faults else known.stdout.split() + ['LauncherKilled']
    counts = [int(n) for n in args.ranks.split(',')]
    segments = set(glob.glob(SEGMENTS))
    passed, failed = {}, []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {pool.submit(run, args, fault, n): (fault, n)
                for _ in range(args.repeat) for fault in faults for n in counts}
        for done in concurrent.futures.as_completed(runs):
            key = runs[done]
            if done.result() is None:
                passed[key] = passed.get(key, 0) + 1
            else:
                failed.append(f'{key[0]} on {key[1]} ranks: {done.result()}')
    print(f'{"fault":24}' + ''.join(f'{n:>4} ranks' for n in counts))
    for fault in faults:
        print(f'{fault:24}' + ''.join(f'{passed.get((fault, n), 0):>7}/{args.repeat:<2}' for n in counts))
    # Others may run MPI on this machine too: what is theirs comes and goes.
    end = time.monotonic() + 30
    left = set(glob.glob(SEGMENTS)) - segments
    while left := left & set(glob.glob(SEGMENTS)):
        if time.monotonic() > end:
            failed.append(f'shared memory is left: {sorted(left)}')
            break
        time.sleep(0.5)
    for line in failed:
        print(f'FAILED {line}', file=sys.stderr)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
