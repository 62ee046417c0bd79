#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A live XLA partitions calls of targets that are registered here.

  live_xla.py LIBSHARDCALL HANDLERS                  XLA:CPU, by a trampoline: runs
  live_xla.py LIBSHARDCALL HANDLERS --gpu            XLA:GPU, by its C interface: compiles

XLA:GPU is the plugin that SHARDCALL_PJRT_PLUGIN names (xla_cuda_plugin.so of the wheel
jax-cuda13-pjrt); without that the second form is skipped (77).

Eight devices, even and uneven sizes, both of XLA's partitioners; results are compared
with one device. XLA:GPU compiles for eight GPUs with none there; without `ptxas` in the
path it stops at the last step, after partitioning.
"""
import ctypes
import os
import sys

os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") +
                           " --xla_force_host_platform_device_count=8"
                           " --xla_cpu_multi_thread_eigen=false")
try:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    from jaxlib import xla_client
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

MANIFEST = """{"targets": [
  {"name": "normalize", "rule": "i j -> i j", "need_replication": ["j"]},
  {"name": "weigh", "rule": "i k, k -> i", "reduction": {"k": "add"}, "pad": {"k": 0}}]}"""


class Str(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    @classmethod
    def of(cls, data, keep):
        buffer = ctypes.create_string_buffer(data, len(data))
        keep.append(buffer)
        return cls(ctypes.cast(buffer, ctypes.c_void_p), len(data))

    def bytes(self):
        return ctypes.string_at(self.data, self.size)


class Aval(ctypes.Structure):
    _fields_ = [("shape", Str), ("has_sharding", ctypes.c_bool), ("sharding", Str)]


class Header(ctypes.Structure):
    _fields_ = [("api_version", ctypes.c_int64), ("data", ctypes.c_void_p),
                ("cleanup", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
                ("has_error", ctypes.c_bool), ("code", ctypes.c_int32), ("error", Str)]


class PartitionArgs(ctypes.Structure):
    _fields_ = [("header", Header), ("num_args", ctypes.c_size_t),
                ("op_args", ctypes.POINTER(Aval)), ("op_result", Aval), ("config", Str),
                ("module", Str), ("args_sharding", ctypes.POINTER(Str)), ("result_sharding", Str)]


class InferArgs(ctypes.Structure):
    _fields_ = [("header", Header), ("num_args", ctypes.c_size_t),
                ("op_args", ctypes.POINTER(Aval)), ("result_shape", Str), ("config", Str),
                ("has_result", ctypes.c_bool), ("result_sharding", Str)]


class PropagateArgs(ctypes.Structure):
    _fields_ = [("header", Header), ("config", Str), ("result_shape", Str),
                ("result_sharding", Str)]


class Callbacks(ctypes.Structure):
    pass


Function = ctypes.CFUNCTYPE(None, ctypes.POINTER(Callbacks), ctypes.c_void_p)
Callbacks._fields_ = [("version", ctypes.c_int64), ("private_data", ctypes.c_void_p),
                      ("dtor", ctypes.CFUNCTYPE(None, ctypes.POINTER(Callbacks))),
                      ("partition", Function), ("infer", Function), ("propagate", Function),
                      ("side_effects", ctypes.c_bool)]

HloSharding = xla_client.HloSharding
OpSharding = xla_client.OpSharding


def sharding_bytes(sharding):
    return sharding.to_proto().SerializeToString()


def sharding_of(data):
    proto = OpSharding()
    proto.ParseFromString(data)
    return HloSharding.from_proto(proto)


def avals(shapes, shardings, keep):
    out = (Aval * len(shapes))()
    for k, (shape, sharding) in enumerate(zip(shapes, shardings)):
        out[k].shape = Str.of(shape.to_serialized_proto(), keep)
        out[k].has_sharding = sharding is not None
        if sharding is not None:
            out[k].sharding = Str.of(sharding_bytes(sharding), keep)
    return out


class Library:
    def __init__(self, path, manifest):
        self.c = ctypes.CDLL(path)
        for name in ("Shardcall_Error_Text", "Shardcall_Registry_Create", "Shardcall_LoadPlugin",
                     "Shardcall_PjrtCallbacksOf", "Shardcall_PassToPjrt",
                     "Shardcall_RegisterCustomCallTarget", "Shardcall_PassHandlerToPjrt"):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.registry = ctypes.c_void_p()
        self.ok(self.c.Shardcall_Registry_Create(ctypes.byref(self.registry)))
        self.ok(self.c.Shardcall_LoadPlugin(self.registry, manifest.encode()))

    def ok(self, error):
        if error:
            text = self.c.Shardcall_Error_Text(ctypes.c_void_p(error))
            sys.exit(ctypes.string_at(text).decode())

    def pass_to(self, name, api):
        self.ok(self.c.Shardcall_PassToPjrt(self.registry, name.encode(), ctypes.c_void_p(api)))

    def pass_handler(self, name, handler, api):
        """Registers a typed handler for CUDA here, and gives it to the plugin."""
        class Target(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                        ("platform", ctypes.c_char_p), ("function", ctypes.c_void_p),
                        ("api_version", ctypes.c_int32), ("traits", ctypes.c_uint32),
                        ("stages", ctypes.c_void_p * 3)]
        target = Target(ctypes.sizeof(Target), name.encode(), b"cuda", handler, 1, 0)
        self.ok(self.c.Shardcall_RegisterCustomCallTarget(self.registry, ctypes.byref(target)))
        self.ok(self.c.Shardcall_PassHandlerToPjrt(self.registry, name.encode(), None,
                                                   ctypes.c_void_p(api)))

    def trampoline(self, name):
        """Registers the target with XLA:CPU, which takes Python functions alone."""
        pointer = ctypes.POINTER(Callbacks)()
        self.ok(self.c.Shardcall_PjrtCallbacksOf(self.registry, name.encode(),
                                                 ctypes.byref(pointer)))
        c = pointer.contents
        asked = {"partition": 0, "infer": 0, "propagate": 0}

        def call(what, args):
            asked[what] += 1
            getattr(c, what)(pointer, ctypes.byref(args))
            if args.header.has_error:
                raise RuntimeError(args.header.error.bytes().decode())

        def partition(shapes, shardings, result_shape, result_sharding, config):
            keep, args = [], PartitionArgs()
            args.num_args = len(shapes)
            args.op_args = avals(shapes, shardings, keep)
            args.op_result = avals([result_shape], [result_sharding], keep)[0]
            args.config = Str.of(config, keep)
            call("partition", args)
            operands = [sharding_of(args.args_sharding[k].bytes()) for k in range(len(shapes))]
            answer = (args.module.bytes(), operands, sharding_of(args.result_sharding.bytes()))
            args.header.cleanup(args.header.data)
            return answer

        def infer(shapes, shardings, result_shape, config):
            keep, args = [], InferArgs()
            args.num_args = len(shapes)
            args.op_args = avals(shapes, shardings, keep)
            args.result_shape = Str.of(result_shape.to_serialized_proto(), keep)
            args.config = Str.of(config, keep)
            call("infer", args)
            answer = sharding_of(args.result_sharding.bytes()) if args.has_result else None
            args.header.cleanup(args.header.data)
            return answer

        def propagate(sharding, shape, config):
            keep, args = [], PropagateArgs()
            args.config = Str.of(config, keep)
            args.result_shape = Str.of(shape.to_serialized_proto(), keep)
            args.result_sharding = Str.of(sharding_bytes(sharding), keep)
            call("propagate", args)
            answer = sharding_of(args.result_sharding.bytes())
            args.header.cleanup(args.header.data)
            return answer

        xla_client.register_custom_call_partitioner(name, propagate, partition, infer)
        self.kept = getattr(self, "kept", []) + [partition, infer, propagate, pointer]
        return asked


def normalize(x):
    return jax.ffi.ffi_call("normalize", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def weigh(x, w):
    result = jax.ShapeDtypeStruct(x.shape[:1], x.dtype)
    return jax.ffi.ffi_call("weigh", result)(x, w, scale=np.float32(2))


def cases():
    for rows, columns in ((8, 8), (7, 5)):
        x = np.arange(1, rows * columns + 1, dtype=np.float32).reshape(rows, columns) % 9 + 1
        w = np.arange(columns, dtype=np.float32) - 2
        yield "normalize", normalize, (x,), (P("a", "b"),), x / x.sum(1, keepdims=True)
        yield "weigh", weigh, (x, w), (P("a", "b"), P("b")), 2 * (x @ w)


def place(x, spec, mesh):
    """Uneven sizes cannot be given to a program; a constraint within may ask for them."""
    divides = all(axis is None or x.shape[d] % mesh.shape[axis] == 0
                  for d, axis in enumerate(spec))
    return NamedSharding(mesh, spec if divides else P())


def compiled(function, arguments, specs, mesh, concrete):
    constrain = [NamedSharding(mesh, s) for s in specs]

    def program(*operands):
        return function(*[jax.lax.with_sharding_constraint(x, s)
                          for x, s in zip(operands, constrain)])

    shardings = [place(x, s, mesh) for x, s in zip(arguments, specs)]
    abstract = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s)
                for x, s in zip(arguments, shardings)]
    out = jax.jit(program, out_shardings=NamedSharding(mesh, P())).lower(*abstract).compile()
    placed = [jax.device_put(x, s) for x, s in zip(arguments, shardings)] if concrete else None
    return out, placed


SYMBOLS = {"normalize": "NormalizeHandler", "weigh": "WeighHandler"}


def on_cpu(library, handlers):
    for name, symbol in SYMBOLS.items():
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(handlers, symbol)),
                                    platform="cpu")
    asked = {name: library.trampoline(name) for name in SYMBOLS}
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for name, function, arguments, specs, expected in cases():
            before = asked[name]["partition"]
            program, placed = compiled(function, arguments, specs, mesh, concrete=True)
            found = np.asarray(program(*placed))
            np.testing.assert_allclose(found, expected, rtol=1e-6)
            if asked[name]["partition"] == before:
                sys.exit(f"{name}: XLA did not ask")
            print(name, arguments[0].shape, "shardy" if shardy else "gspmd", "ok")
    if not asked["normalize"]["infer"]:
        sys.exit("XLA never asked what follows from the operands")


TARGET = """gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32
 shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048
 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
 clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
 registers_per_core_limit: 65536 registers_per_block_limit: 65536
 cuda_compute_capability { major: 9 } }
platform_name: "CUDA" dnn_version_info { major: 9 } device_description_str: "sm_90"
"""


def on_gpu(library, handlers, plugin):
    from jax._src import xla_bridge
    api = xla_bridge.register_plugin("cuda", priority=500, library_path=plugin, options={})
    get = ctypes.CDLL(plugin).GetPjrtApi
    get.restype = ctypes.c_void_p
    for target, symbol in SYMBOLS.items():
        library.pass_to(target, get())
        # XLA looks for the handler, and does not call it here.
        library.pass_handler(target, ctypes.cast(getattr(handlers, symbol), ctypes.c_void_p), get())
    topology = xla_client.make_c_api_device_topology(api, "eight", target_config=TARGET,
                                                     topology="1x1x8")
    mesh = Mesh(np.array(topology._make_compile_only_devices()).reshape(4, 2), ("a", "b"))
    for shardy in (True, False):
        jax.config.update("jax_use_shardy_partitioner", shardy)
        for target, function, arguments, specs, _ in cases():
            rows = -(-arguments[0].shape[0] // 4)
            columns = arguments[0].shape[1] if target == "normalize" else -(-arguments[0].shape[1] // 2)
            try:
                text = compiled(function, arguments, specs, mesh, concrete=False)[0].as_text()
            except Exception as e:
                if not any(part in str(e) for part in ("ptxas", "libdevice")):
                    raise
                print(target, "CUDA's compiler is missing:", str(e).splitlines()[0][:160])
                continue
            calls = [line for line in text.splitlines() if f'target="{target}"' in line]
            if len(calls) != 1 or f"f32[{rows},{columns}]" not in calls[0]:
                sys.exit(f"{target}: not partitioned\n{text}")
            print(target, arguments[0].shape, "shardy" if shardy else "gspmd", "ok")


def main():
    library_path, handlers = sys.argv[1], ctypes.CDLL(sys.argv[2])
    manifest = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"live_xla_{os.getpid()}.json")
    with open(manifest, "w") as f:
        f.write(MANIFEST)
    try:
        library = Library(library_path, manifest)
    finally:
        os.remove(manifest)
    if len(sys.argv) > 3:
        plugin = os.environ.get("SHARDCALL_PJRT_PLUGIN")
        if not plugin:
            print("skipped: SHARDCALL_PJRT_PLUGIN does not name a plugin")
            sys.exit(77)
        on_gpu(library, handlers, plugin)
    else:
        on_cpu(library, handlers)


main()
