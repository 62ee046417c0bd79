# SPDX-License-Identifier: Apache-2.0
"""Compiles per-device programs with jaxlib for N host devices, without partitioning
them again, runs them and compares. A process of its own, since XLA aborts on a failed
check. Reads a line of JSON a case (judge.py says what stands in it), answers one."""

import ctypes
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'support'), os.path.join(HERE, '..', 'ops')]
import compare  # noqa: E402
import files  # noqa: E402
import judge  # noqa: E402
import workarounds  # noqa: E402

os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['JAX_ENABLE_X64'] = '1'
os.environ['NPROC'] = '16'  # calls with collectives that are not awaited starve else
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

DISABLED = 'sharding-propagation,shardy-xla,spmd-partitioning'


class Refused(Exception):
    def __init__(self, stage, reason):
        super().__init__(reason)
        self.stage = stage


def capsule(address):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, b'xla._CUSTOM_CALL_TARGET', None)


class Xla:
    def __init__(self, devices, library):
        os.environ['XLA_FLAGS'] = (f'--xla_force_host_platform_device_count={devices} '
                                   '--xla_cpu_multi_thread_eigen=false')
        import jax
        from jaxlib import lapack
        self.jax = jax
        lapack._lapack.initialize()  # its handlers crash else
        self.known = {name for name, *_ in self._lapack_names(lapack)}
        self.devices = jax.devices('cpu')
        self.client = self.devices[0].client
        if library:
            self.register(ctypes.CDLL(library))

    @staticmethod
    def _lapack_names(lapack):
        found = lapack.registrations()
        return [(name,) for name in (found if not isinstance(found, dict) else
                                     [n for group in found.values() for n, *_ in group])]

    def register(self, library):
        library.XlaRunsTarget.restype = ctypes.c_char_p
        library.XlaRunsFunction.restype = ctypes.c_void_p
        for k in range(library.XlaRunsCount()):
            name = library.XlaRunsTarget(k).decode()
            if name not in self.known and not name.startswith('lapack_'):
                self.jax.ffi.register_ffi_target(name, capsule(library.XlaRunsFunction(k)),
                                                 platform='cpu', api_version=1)
        for name in judge.STIRRED:
            for symbol, version in (('XlaRunsStir', 1), ('XlaRunsStirUntyped', 0)):
                address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
                self.jax.ffi.register_ffi_target(name, capsule(address), platform='cpu',
                                                 api_version=version)

    def compile(self, text, n, for_one):
        import numpy as np
        from jax._src.interpreters import mlir
        from jaxlib import _hlo, _jax
        from jaxlib.mlir import ir
        try:
            module = _hlo.hlo_module_from_text(text)
        except Exception as e:
            raise Refused('read', str(e)) from None
        options = _jax.CompileOptions()
        build = options.executable_build_options
        options.num_replicas = build.num_replicas = 1
        options.num_partitions = build.num_partitions = n
        build.use_spmd_partitioning = n > 1
        ids = np.zeros((1, n), np.int32) if for_one else np.arange(n, dtype=np.int32).reshape(1, n)
        options.device_assignment = _jax.DeviceAssignment.create(ids)
        options.env_option_overrides = [('xla_disable_hlo_passes', DISABLED),
                                        ('xla_allow_excess_precision', False)]
        used = self.devices[:1 if for_one else n]
        if len(used) < (1 if for_one else n):
            raise Refused('devices', f'{n} devices wanted, {len(self.devices)} there')
        try:
            code = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
            with mlir.make_ir_context():
                return self.client.compile_and_load(ir.Module.parse(code),
                                                    _jax.DeviceList(tuple(used)), options)
        except Exception as e:
            raise Refused('compile', str(e)) from None

    def run(self, executable, n, parts):
        """parts: [parameter][device]. Returns [result][device]."""
        import numpy as np
        jax = self.jax
        devices = self.devices[:n]
        mesh = jax.sharding.Mesh(np.array(devices), ('d',))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        arguments = []
        for pieces in parts:
            arrays = [jax.device_put(piece, device) for piece, device in zip(pieces, devices)]
            arguments.append(jax._src.array.ArrayImpl(
                jax.core.ShapedArray(pieces[0].shape, pieces[0].dtype), sharding, arrays,
                committed=True, _skip_checks=True))
        try:
            results = executable.execute_sharded(arguments)
            return [[np.asarray(x) for x in result]
                    for result in results.disassemble_into_single_device_arrays()]
        except Exception as e:
            raise Refused('execute', str(e)) from None


def examine(xla, case):
    import shards  # with jaxlib, which reads the environment
    os.environ['XLA_RUNS_ELEMENTS'] = str(case['elements'])
    with open(case['local'], encoding='utf-8', newline='') as f:
        text = judge.for_xla(f.read(), case.get('of_tests', False))
    text, _ = workarounds.applied(text, case.get('around', []))
    report = files.report(case['report'])
    n = report['num_partitions']
    started = time.perf_counter()
    executable = xla.compile(text, n, bool(case['compile_only']))
    compiled = time.perf_counter() - started
    if case['compile_only']:
        return {'compile_s': compiled}
    inputs = files.arrays(case['inputs'], 'arg', files.array_leaves(report['parameters']))
    parts = []
    for (_, dims), leaf, array in zip(files.array_leaves(report['parameters']),
                                      files.arrays_of(report['parameters']), inputs):
        parts.append(shards.Placement(leaf['sharding'], len(dims), n).cut(array.reshape(dims)))
    outputs = xla.run(executable, n, parts)
    leaves = files.arrays_of(report['results'])
    kinds = files.array_leaves(report['results'])
    outputs = outputs if len(outputs) == len(leaves) else [
        o for o, leaf in zip(outputs, report['results']) if files.is_array(leaf)]
    if len(outputs) != len(leaves):
        raise Refused('results', f'{len(outputs)} results in place of {len(leaves)}')
    wrong = []
    joined = []
    for k, (leaf, (_, dims), pieces) in enumerate(zip(leaves, kinds, outputs)):
        def agree(a, b, k=k):
            apart = compare.difference(a, b, case.get('limit'))
            if apart:
                wrong.append(f'copies of result {k} differ: {apart}')
        if leaf['sharding'] is None:
            raise Refused('results', f'how result {k} is held cannot be said')
        joined.append(shards.Placement(leaf['sharding'], len(dims), n).join(pieces, dims, agree))
    answer = {'compile_s': compiled}
    for whose, path in case['expected']:
        expected = files.arrays(path, 'out', kinds)
        for k, (want, got) in enumerate(zip(expected, joined)):
            apart = compare.difference(want, got, case.get('limit'))
            if apart:
                wrong.append(f'result {k} against {whose}: {apart}')
    if wrong:
        raise Refused('numbers', '; '.join(wrong[:12]))
    return answer


def main():
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)  # what XLA prints is no answer
    xla = Xla(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else '')
    for line in sys.stdin:
        case = json.loads(line)
        try:
            answer = dict(examine(xla, case), status='ok')
        except Refused as e:
            answer = {'status': 'failed', 'stage': e.stage, 'reason': str(e)[:2000]}
        except Exception as e:  # whatever it is, it is the answer
            answer = {'status': 'failed', 'stage': 'judge', 'reason': f'{type(e).__name__}: {e}'}
        answers.write(json.dumps(answer) + '\n')
        answers.flush()


main()
