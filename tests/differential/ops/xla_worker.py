# SPDX-License-Identifier: Apache-2.0
"""Runs HLO text on jaxlib's CPU client. A process of its own, since XLA aborts
on a failed internal check: engines.py sends pickled (text, inputs) and gets
pickled ('ok', outputs) or ('refused', reason)."""

import os
import pickle
import sys

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_ENABLE_X64'] = '1'
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1'


def main():
    channel = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)
    import jax
    import numpy as np
    from jaxlib import _hlo, _jax
    device = jax.devices('cpu')[0]
    client = device.client

    def run(text, inputs):
        module = _hlo.hlo_module_from_text(text)
        mlir = _jax.mlir.xla_computation_to_mlir_module(
            _hlo.XlaComputation(module.as_serialized_hlo_module_proto()))
        options = _jax.CompileOptions()
        options.env_option_overrides = [('xla_allow_excess_precision', False)]
        program = client.compile_and_load(mlir, _jax.DeviceList((device,)), options)
        results = program.execute_sharded([jax.device_put(x, device) for x in inputs])
        return [np.asarray(x[0]) for x in results.disassemble_into_single_device_arrays()]

    while True:
        try:
            text, inputs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = ('ok', run(text, inputs))
        except Exception as e:  # whatever it is, it is the answer
            answer = ('refused', f'{type(e).__name__}: {e}')
        pickle.dump(answer, channel)
        channel.flush()


main()
