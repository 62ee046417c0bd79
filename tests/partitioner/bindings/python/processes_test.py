#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shardcall.jax over two processes of four devices each. Exit status 77 without JAX."""
import importlib.util
import os
import socket
import subprocess
import sys

PROCESS = '''
import sys
import jax
jax.config.update('jax_cpu_collectives_implementation', 'gloo')
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import shardcall.jax as sj

mesh = jax.make_mesh((4, 2), ('data', 'model'), axis_types=(AxisType.Auto,) * 2)

def placed(x, *spec):
    return jax.make_array_from_callback(x.shape, NamedSharding(mesh, P(*spec)), lambda i: x[i])

x = (np.arange(8 * 16, dtype=np.float32) % 7 - 3).reshape(8, 16)
w = (np.arange(16 * 12, dtype=np.float32) % 5 - 2).reshape(16, 12)

def step(x, w):
    relu = jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))
    product = relu(x) @ w
    return product, product.sum(0)

with sj.partitioner(strict=True):
    product, sums = jax.jit(step, out_shardings=(None, NamedSharding(mesh, P())))(
        placed(x, 'data', 'model'), placed(w, 'model'))
expected = np.maximum(x, 0) @ w
np.testing.assert_array_equal(sums, expected.sum(0))
for shard in product.addressable_shards:
    np.testing.assert_array_equal(shard.data, expected[shard.index])
report = sj.explain(step, placed(x, 'data', 'model'), placed(w, 'model'))
print('collectives', report.count(), 'processes', jax.process_count(), flush=True)
'''


def main():
    for module in ('jax', 'shardcall'):
        if importlib.util.find_spec(module) is None:
            print(f'SKIPPED: no {module}')
            return 77
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        address = f'127.0.0.1:{s.getsockname()[1]}'
    environment = {**os.environ, 'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '4', 'JAX_PLATFORMS': 'cpu'}
    processes = [subprocess.Popen([sys.executable, '-c', PROCESS, address, str(k)],
                                  env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) for k in range(2)]
    failed = 0
    for k, process in enumerate(processes):
        try:
            out, err = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        if process.returncode != 0 or 'processes 2' not in out:
            failed += 1
            print(f'process {k}: status {process.returncode}\n{out}{err[-3000:]}')
    print(f'{len(processes)} processes, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
