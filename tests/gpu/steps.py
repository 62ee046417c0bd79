# SPDX-License-Identifier: Apache-2.0
"""The steps of run.sh: each is a command with a limit in seconds.

    python3 steps.py [RESULT=gpu.json] [--only=REGEX] [--seconds=470]

A step that fails stops no other. Its outcome is "passed", "failed", "timed out" or "could
not run", where the machine lacks something, with the end of what it printed; the file is
written after each step, so that what was cut off has its results too. Exit status: 0 if all
passed.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TAIL = 12000
BIN, PROGRAMS = HERE / 'bin', HERE / 'examples' / 'programs'
FOUR = ('data_parallel_step', 'tensor_parallel_block', 'ring_attention', 'expert_parallel')
# Several ranks on one GPU test results, not speed: NCCL counts hosts by NCCL_HOSTID, and
# takes sockets between them.
SHARED = {'NCCL_P2P_DISABLE': '1', 'NCCL_SHM_DISABLE': '1', 'NCCL_IB_DISABLE': '1',
          'NCCL_NET': 'Socket', 'NCCL_NET_PLUGIN': 'none', 'NCCL_SOCKET_IFNAME': 'lo',
          'NCCL_SOCKET_FAMILY': 'AF_INET', 'NCCL_MNNVL_ENABLE': '0', 'NCCL_NVLS_ENABLE': '0',
          'NCCL_RAS_ENABLE': '0', 'NCCL_MAX_CTAS': '2', 'CUDA_VISIBLE_DEVICES': '0'}
OURS = {'NCCL_ALGO': 'Ring', 'NCCL_PROTO': 'Simple', 'CUDA_MODULE_LOADING': 'EAGER'}


def package_folder(name):
    """The folder of an installed package, or None; nothing of it is run."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return pathlib.Path(list(spec.submodule_search_locations)[0]) if spec else None


def cuda_plugin():
    for name in ('xla_cuda13', 'xla_cuda12'):
        folder = package_folder(f'jax_plugins.{name}')
        if folder and (folder / 'xla_cuda_plugin.so').exists():
            return folder / 'xla_cuda_plugin.so'
    return None


def environment():
    env = dict(os.environ)
    folders = [HERE / 'lib']
    # Wheels of CUDA 13 share one folder, older ones have one each.
    for package in ('nccl', 'cu13', 'cublas', 'cusparse', 'nvjitlink'):
        folder = package_folder(f'nvidia.{package}')
        if folder:
            folders.append(folder / 'lib')
    for old in env.get('LD_LIBRARY_PATH', '').split(':') + ['/usr/local/cuda/lib64',
                                                          '/usr/local/cuda/lib']:
        if old:
            folders.append(old)
    env['LD_LIBRARY_PATH'] = ':'.join(map(str, folders))
    env['PATH'] = f'{BIN}:' + env.get('PATH', '/usr/bin:/bin')
    mpi = str(HERE / 'openmpi')
    env.update(OPAL_PREFIX=str(HERE), OPAL_BINDIR=str(BIN), OPAL_LIBDIR=str(HERE / 'lib'),
               OPAL_PKGLIBDIR=mpi, OPAL_PKGDATADIR=mpi + '/share', OPAL_SYSCONFDIR=mpi + '/share',
               PMIX_INSTALL_PREFIX=str(HERE), PMIX_PKGLIBDIR=str(HERE / 'pmix'),
               PMIX_MCA_mca_base_component_path=str(HERE / 'pmix'),
               OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1',
               OMPI_MCA_rmaps_base_oversubscribe='1', OMPI_MCA_mpi_yield_when_idle='1',
               OMPI_MCA_plm='isolated', HWLOC_PLUGINS_PATH=str(HERE / 'none'),
               OPENBLAS_NUM_THREADS='1')
    return env


def on_one_gpu(ranks, command):
    if ranks == 1:
        return f'{BIN}/mpirun -np 1 {command}'
    settings = ' '.join(f'{name}={value}' for name, value in {**SHARED, **OURS}.items())
    return (f"{BIN}/mpirun -np {ranks} bash -c 'NCCL_HOSTID=vhost$OMPI_COMM_WORLD_RANK "
            f"{settings} exec {command}'")


def missing(name):
    return '' if (HERE / name).exists() else f'the bundle has no {name}'


def steps(plugin):
    """(name, seconds, command, why it cannot run)."""
    yield 'devices', 20, 'nvidia-smi -L && nvidia-smi', ''
    yield ('launcher', 30, f'{BIN}/mpirun -np 4 {BIN}/run_program {PROGRAMS}/ring_attention '
                           '--backend=mpi', '')
    yield 'handlers_cuda', 60, f'{BIN}/kernels_cuda_handlers_test', ''
    # The shipped targets by cuBLASLt, cuSPARSE and NCCL, held against the host's handlers.
    yield 'targets_cuda', 60, f'{BIN}/kernels_cuda_targets_test', ''
    yield 'nccl_alone', 60, f'{BIN}/nccl_conformance', ''
    for ranks in (2, 4):
        yield (f'nccl_conformance_{ranks}', 90, on_one_gpu(ranks, f'{BIN}/nccl_conformance'), '')
    for name in FOUR:
        yield (f'example_{name}', 40,
               on_one_gpu(4, f'{BIN}/run_program {PROGRAMS}/{name} --backend=nccl'), '')
    yield 'example_own_collective', 40, on_one_gpu(4, f'{BIN}/own_collective --backend=nccl'), ''
    for name in FOUR:
        yield (f'verify_nccl_{name}', 40,
               on_one_gpu(4, f'{BIN}/shardcall verify {PROGRAMS}/{name}.hlo '
                             f'--inputs={PROGRAMS}/{name}.inputs.npz --backend=nccl'), '')
    yield ('verify_nccl_library_targets', 60,
           on_one_gpu(4, f'{BIN}/shardcall verify {HERE}/library_targets.hlo --backend=nccl'), '')
    yield ('bandwidth_beside_nccl', 90,
           f'{BIN}/mpirun -np $(nvidia-smi -L | wc -l) {BIN}/bench_collectives --backend=nccl '
           f'--max=67108864', '')
    # A kernel of a library of its own, told of by a manifest.
    yield ('verify_nccl_plugin', 40,
           on_one_gpu(4, f'{BIN}/shardcall verify {HERE}/row_softmax.hlo --backend=nccl '
                         f'--plugin={HERE}/row_softmax.json'), missing('row_softmax.json'))
    sanitizer = '' if shutil.which('compute-sanitizer') else 'there is no compute-sanitizer'
    for name in ('handlers', 'targets'):
        yield (f'sanitized_{name}', 90, f'compute-sanitizer --report-api-errors=no '
                                        '--error-exitcode=9 '
                                        f'{BIN}/kernels_cuda_{name}_test', sanitizer)
    without = '' if plugin else "jax's CUDA plugin is not installed"
    for verb in ('run', 'verify'):
        # One device, which a machine with one GPU has.
        yield (f'pjrt_{verb}', 60,
               f'{BIN}/shardcall {verb} {HERE}/one_device.hlo --backend=pjrt '
               f'--pjrt-plugin={plugin}', without)
    yield ('pjrt_wrapper_under_jax', 90,
           f'SHARDCALL_WRAPPED_PLUGIN={plugin} JAX_PLATFORMS=shardcall '
           f'PJRT_NAMES_AND_LIBRARY_PATHS=shardcall:{HERE}/lib/libshardcall_pjrt.so '
           'python3 -c "import jax, jax.numpy as n; x = n.arange(6.0).reshape(2, 3); '
           'y = jax.jit(lambda a: a @ a.T)(x); print(jax.devices(), y); '
           'assert y.tolist() == [[5, 14], [14, 50]]"', without)
    # Whole programs under JAX, by each of our ways in, on one device and on four processes.
    for how, processes in (('jit', 1), ('jit', 4), ('wrapper', 4), ('install', 4), ('time', 4)):
        yield (f'jax_{how}_{processes}', 150,
               f'PYTHONPATH={HERE}/python:$PYTHONPATH '
               f'LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:$LD_LIBRARY_PATH '
               f'python3 {HERE}/under_jax.py {how} --processes={processes} --seconds=140',
               without or missing('python'))


def judge(status, printed):
    # A suite whose tests were all left out has passed nothing.
    if status == 0:
        return 'could not run' if '[  PASSED  ] 0 tests' in printed else 'passed'
    lacks = 'E303 ' in printed or 'nvidia-smi: command not found' in printed
    return 'could not run' if lacks else 'failed'


def reason(step):
    """The line of what was printed that says most."""
    lines = [line for line in step['tail'].splitlines() if line.strip(' -')]
    for marks in (('E3',), ('FAILED', 'SKIPPED', 'not found', 'rror')):
        for line in lines:
            if any(mark in line for mark in marks):
                return line.strip()[:160]
    return lines[-1][:160] if lines else ''


def run(command, seconds, env):
    start = time.monotonic()
    job = subprocess.Popen(['bash', '-c', command], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=env, cwd=HERE, start_new_session=True)
    try:
        printed, _ = job.communicate(timeout=seconds)
        outcome = judge(job.returncode, printed.decode(errors='replace'))
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        printed, _ = job.communicate()
        outcome = 'timed out'
    return {'outcome': outcome, 'status': job.returncode,
            'seconds': round(time.monotonic() - start, 2),
            'tail': printed.decode(errors='replace')[-TAIL:]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('result', nargs='?', type=pathlib.Path, default='gpu.json')
    parser.add_argument('--only', default='', help='a regular expression of the names')
    parser.add_argument('--seconds', type=float, default=470, help='for all together')
    given = parser.parse_args()
    result = given.result
    env, end, done = environment(), time.monotonic() + given.seconds, []
    for name, seconds, command, without in steps(cuda_plugin()):
        if not re.search(given.only, name):
            continue
        left = min(seconds, end - time.monotonic())
        if without or left < 1:
            step = {'outcome': 'could not run', 'seconds': 0,
                    'tail': without or 'no time was left'}
        else:
            step = run(command, left, env)
        done.append({'name': name, **step, 'command': command})
        print(f"{step['outcome']:13} {step['seconds']:7.2f} s  {name}"
              + ('' if step['outcome'] == 'passed' else f'  {reason(step)}'), flush=True)
        draft = result.with_suffix('.draft')
        draft.write_text(json.dumps({'steps': done}, indent=1))
        draft.replace(result)
    return 0 if all(step['outcome'] == 'passed' for step in done) else 1


if __name__ == '__main__':
    sys.exit(main())
