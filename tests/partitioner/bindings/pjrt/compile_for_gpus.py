#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`shardcall compile` with XLA:GPU's plugin, for eight GPUs that are not there.

    compile_for_gpus.py [--plugin=VARIABLE]

Exit status 77 where the variable, SHARDCALL_PJRT_PLUGIN if none is named, does not name
xla_cuda_plugin.so, or CUDA's ptxas is missing.
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, '../../../support'))
import command  # noqa: E402

MLP = os.path.join(command.DATA, 'hlo', 'mlp_train_d4m2.sdy.hlo')
LLAMA = os.path.join(command.DATA, 'hlo', 'llama_4layer_train_tiny_calls_d4m2.sdy.hlo')
CONFIG = os.path.join(FOLDER, 'h100.txtpb')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--plugin', default='SHARDCALL_PJRT_PLUGIN')
    variable = parser.parse_args().plugin
    plugin = os.environ.get(variable, '')
    ptxas = shutil.which('ptxas') or shutil.which('ptxas', path='/usr/local/cuda/bin')
    if not os.path.exists(plugin) or ptxas is None:
        print(f'SKIPPED: no XLA:GPU plugin in {variable}, or no ptxas')
        return command.SKIPPED
    env = {'PATH': os.path.dirname(ptxas) + ':' + os.environ['PATH']}

    def compile_(path, topology, *more):
        return command.run(['compile', path, f'--pjrt-plugin={plugin}', f'--topology={topology}',
                            f'--target-config={CONFIG}', *more], timeout=120, env=env)

    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, 'mlp.bin')
        result = compile_(MLP, '1x1x8', '-o', out)
        assert result.code == 0, result.err
        found = json.loads(result.out)
        assert found['num_partitions'] == 8 and found['platform'] == 'cuda', found
        assert found['serialized_bytes'] == os.path.getsize(out) > 1000, found
        # Arguments are what they are; XLA gives a tuple of results its pointers, too.
        assert found['memory']['arguments'] == found['unfused']['arguments'] == 2688, found
        assert found['memory']['outputs'] >= found['unfused']['outputs'] == 2180, found
        # The parameters of the model are donated, and so are their gradients' results.
        assert found['memory']['aliased'] == 2176, found

        result = compile_(MLP, '1x1x4')
        assert result.code == 1 and 'E335' in result.err and 'found 4' in result.err, result.err
        # Calls whose kernels nobody has for CUDA are told by XLA.
        result = compile_(LLAMA, '1x1x8', '-o', os.path.join(scratch, 'none'))
        if result.code != 0:
            assert result.code == 1 and 'E334' in result.err, result.err
            assert 'No FFI handler registered for' in result.err, result.err
            assert not os.path.exists(os.path.join(scratch, 'none'))
    print('compiled for 8 GPUs:', json.dumps(found))
    return 0


if __name__ == '__main__':
    sys.exit(main())
