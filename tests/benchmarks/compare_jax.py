#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of a Llama model under JAX: on XLA:CPU's plugin as it is, and on the
plugin that wraps it; and by our own engine on that plugin. In the same run, in turns.

    compare_jax.py --library=libshardcall_pjrt.so --plugin=xla_cpu_pjrt.so
                   [--handlers=libxla_runs_handlers.so] [--width=128] [--rounds=20]
                   [--engine=bench_pjrt_step]
    compare_jax.py --package=build/lib/python [--handlers=..] [--width=128] [--rounds=20]

The second form compares jax.jit and shardcall.jax.jit on JAX's own CPU client.

Prints, for plain ops and for custom calls, the time of a step, of compiling it anew, and of
calling a program that does next to nothing: first quartiles in milliseconds, and how many
times JAX's. Kernels of custom calls are ours on both sides. The model is that of
SHARDCALL_CORPUS/../hlo_programs; exit status 77 without it, the plugin, jax or optax.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                '../partitioner/bindings/pjrt_wrapper'))
import framework  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))
import live_corpus  # noqa: E402


def first_quartile(times):
    return sorted(times)[len(times) // 4]


class FfiExtension(ctypes.Structure):
    _fields_ = [('size', ctypes.c_size_t), ('type', ctypes.c_int32), ('next', ctypes.c_void_p),
                ('register_type', ctypes.c_void_p), ('add_user_data', ctypes.c_void_p),
                ('register_handler', ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p))]


class Registration(ctypes.Structure):
    _fields_ = [('size', ctypes.c_size_t), ('name', ctypes.c_char_p), ('name_size', ctypes.c_size_t),
                ('handler', ctypes.c_void_p), ('platform', ctypes.c_char_p),
                ('platform_size', ctypes.c_size_t), ('traits', ctypes.c_uint32)]


def kernels(path):
    library = ctypes.CDLL(path)
    library.XlaRunsTarget.restype = ctypes.c_char_p
    library.XlaRunsFunction.restype = ctypes.c_void_p
    return library


def used(library):
    """(name, function) of the targets that the model calls."""
    for k in range(library.XlaRunsCount()):
        name = library.XlaRunsTarget(k)
        if name.startswith((b'rms_norm', b'flash_attention')):
            yield name, library.XlaRunsFunction(k)


def register_with_jax(path):
    import jax
    for name, function in used(kernels(path)):
        jax.ffi.register_ffi_target(name.decode(), jax.ffi.pycapsule(function), platform='cpu')


def register_kernels(plugin, path):
    """Those of `handlers.cc` of tests/differential/xla_runs, by PJRT's FFI extension (type 5):
    JAX has no function for plugins that it does not know."""
    library = kernels(path)
    get = ctypes.CDLL(plugin).GetPjrtApi
    get.restype = ctypes.c_void_p
    at = ctypes.c_void_p.from_address(get() + 8).value  # extension_start
    while FfiExtension.from_address(at).type != 5:
        at = FfiExtension.from_address(at).next
    for name, function in used(library):
        args = Registration(ctypes.sizeof(Registration), name, len(name), function, b'Host', 4, 0)
        error = FfiExtension.from_address(at).register_handler(ctypes.addressof(args))
        assert not error, name


def serve(options):
    """Builds one step, and times what is asked for on standard input."""
    import time
    import jax
    import numpy as np
    sys.path.insert(0, os.path.dirname(options.sources))
    sys.dont_write_bytecode = True
    live_corpus.stand_in_for_removed()
    from hlo_programs import base, llama
    if options.handlers and options.library:
        jax.devices()  # loads the plugin
        register_kernels(options.library, options.handlers)
    elif options.handlers:
        register_with_jax(options.handlers)
    jit = jax.jit
    if options.package:
        sys.path.insert(0, options.package)
        import shardcall.jax
        jit = shardcall.jax.jit
    grid = base.Grid({'data': 4, 'model': 2})
    d = options.width
    config = llama.Config(batch=8, seq=64, d=d, heads=8, kv=4, head=d // 8, ffn=2 * d, vocab=512,
                          layers=4, dtype=jax.numpy.float32)
    fn, args, settings = llama.model(grid, kind=options.kind, train=True, c=config)
    rng = np.random.default_rng(0)

    def value(s):
        if np.issubdtype(s.dtype, np.integer):
            return rng.integers(0, 64, s.shape).astype(s.dtype)
        return rng.normal(0, 0.05, s.shape).astype(s.dtype)

    inputs = llama.tidy(jax.tree.map(value, args))
    params, state, tokens = jax.tree.map(lambda x, s: jax.device_put(x, s.sharding), inputs, args)
    jitted = jit(fn, **settings)
    if options.write:
        with open(options.write, 'w', encoding='utf-8') as f:
            f.write(jitted.lower(params, state, tokens).as_text())
    small = jit(lambda x: x + 1)
    nothing = small(jax.device_put(np.zeros(8, np.float32), grid.sh('data')))

    def step():
        nonlocal params, state
        start = time.perf_counter()
        value, params, state = compiled(params, state, tokens)
        jax.block_until_ready((value, params))
        return time.perf_counter() - start

    def compile_anew():
        lowered = jitted.lower(params, state, tokens)
        start = time.perf_counter()
        result = lowered.compile()
        return time.perf_counter() - start, result

    def dispatch():
        nonlocal nothing
        start = time.perf_counter()
        for _ in range(100):
            nothing = small(nothing)
        seconds = time.perf_counter() - start
        jax.block_until_ready(nothing)
        return seconds / 100

    _, compiled = compile_anew()
    for _ in range(3):
        step()
    print('ready', flush=True)
    for line in sys.stdin:
        what = line.strip()
        if what == 'compile':
            jax.clear_caches()
            seconds = compile_anew()[0]
        else:
            seconds = step() if what == 'step' else dispatch()
        print(json.dumps(seconds), flush=True)


class Engine:
    """A process that says when it is ready, and then times what it is asked for."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if line.strip() != 'ready':
            raise RuntimeError(f'{command} does not run the model: {self.process.wait()}')

    def time(self, what):
        self.process.stdin.write(what + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def jax_on(library, options, kind, folder, write=''):
    return Engine(
        [sys.executable, os.path.abspath(__file__), '--serve', f'--kind={kind}',
         f'--width={options.width}', f'--handlers={options.handlers}', f'--write={write}',
         f'--sources={options.sources}', f'--library={os.path.abspath(library)}'],
        {**os.environ, **framework.variables(library, options.plugin, folder)})


def jax_itself(package, options, kind):
    """On JAX's own CPU client; with shardcall.jax where `package` is not empty."""
    return Engine(
        [sys.executable, os.path.abspath(__file__), '--serve', f'--kind={kind}',
         f'--width={options.width}', f'--handlers={options.handlers}',
         f'--sources={options.sources}', f'--package={package}'],
        {**os.environ, 'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8', 'JAX_PLATFORMS': 'cpu'})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--package', default='', help='the folder that has the package shardcall')
    parser.add_argument('--engine', default='', help='bench_pjrt_step')
    parser.add_argument('--write', default='', help='where --serve writes its StableHLO')
    parser.add_argument('--library', default='')
    parser.add_argument('--plugin', default=os.environ.get('SHARDCALL_PJRT_CPU_PLUGIN', ''))
    parser.add_argument('--handlers', default='')
    parser.add_argument('--width', type=int, default=128)
    parser.add_argument('--rounds', type=int, default=20)
    parser.add_argument('--compiles', type=int, default=5)
    parser.add_argument('--kinds', default='plain,calls')
    parser.add_argument('--serve', action='store_true')
    parser.add_argument('--kind', default='plain')
    corpus = os.environ.get('SHARDCALL_CORPUS', '')
    parser.add_argument('--sources',
                        default=os.path.join(os.path.dirname(os.path.abspath(corpus)), 'hlo_programs'))
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    if not (options.plugin or options.package) or not os.path.isdir(options.sources):
        print('skipped: no plugin is named, or no sources are at hand')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.kinds.split(','):
            program = os.path.join(folder, f'{kind}.mlir')
            if options.package:
                engines = [jax_itself('', options, kind),
                           jax_itself(os.path.abspath(options.package), options, kind)]
            else:
                engines = [jax_on(options.plugin, options, kind, folder, program),
                           jax_on(options.library, options, kind, folder)]
            if options.engine:
                engines.append(Engine([options.engine, f'--plugin={options.plugin}', program],
                                      {**os.environ, 'NPROC': '16'}))
            for what, rounds in (('step', options.rounds), ('compile', options.compiles),
                                 ('dispatch', options.rounds)):
                asked = engines if what == 'step' else engines[:2]
                times = [[] for _ in asked]
                for k in range(rounds):
                    for side in (range(len(asked)) if k % 2 == 0 else reversed(range(len(asked)))):
                        times[side].append(asked[side].time(what))
                took = [1e3 * first_quartile(t) for t in times]
                print(f'{kind:6} {what:9} JAX {took[0]:10.3f} ms', end='')
                for name, ms in zip(('shardcall', 'engine'), took[1:]):
                    print(f'   {name} {ms:10.3f} ms   {ms / took[0]:.3f}', end='')
                print(flush=True)
            for engine in engines:
                engine.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
