#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX, unmodified, on the plugin that wraps XLA:CPU's: what JAX's users do, and what goes
wrong. SHARDCALL_PJRT_LIBRARY names libshardcall_pjrt.so, SHARDCALL_PJRT_CPU_PLUGIN the
plugin of the wheel xla-cpu-pjrt; exit status 77 without it."""
import _ctypes
import glob
import json
import os
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framework  # noqa: E402

F = framework.from_arguments()
STEP = '''
def step(a, b):
    c = a @ b
    return jax.lax.with_sharding_constraint(c, NamedSharding(mesh, P("x", "y"))), c.sum(0)
a = put(np.arange(16 * 32).reshape(16, 32) % 7 - 3, "x", None)
b = put(np.arange(32 * 8).reshape(32, 8) % 5 - 2, "y", None)
'''
CHECK_STEP = '''
c, s = jax.jit(step)(a, b)
want = np.asarray(a) @ np.asarray(b)
assert np.array_equal(c, want) and np.array_equal(s, want.sum(0))
'''


def package():
    """A folder with the package of the wheel, and a stand-in for each plugin's package."""
    folder = F.path('packages')
    if os.path.exists(folder):
        return folder
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../..')
    shutil.copytree(os.path.join(root, 'partitioner/bindings/pjrt_wrapper/wheel/shardcall_pjrt'),
                    os.path.join(folder, 'shardcall_pjrt'))
    os.symlink(os.path.abspath(os.environ['SHARDCALL_PJRT_LIBRARY']),
               os.path.join(folder, 'shardcall_pjrt/libshardcall_pjrt.so'))
    for name in ('xla_plugins/xla_cpu_pjrt', 'jax_plugins/xla_cuda13'):
        os.makedirs(os.path.join(folder, name))
    os.symlink(F.plugin, os.path.join(folder, 'xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so'))
    F.write('packages/xla_plugins/xla_cpu_pjrt/__init__.py', '')
    F.write('packages/jax_plugins/xla_cuda13/__init__.py',
            'def _get_library_path():\n    return "/usr/lib/its_own.so"\n'
            'def initialize():\n    pass\n')
    info = os.path.join(folder, 'shardcall_pjrt-0.1.0.dist-info')
    os.makedirs(info)
    F.write(info + '/METADATA', 'Metadata-Version: 2.1\nName: shardcall-pjrt\nVersion: 0.1.0\n')
    F.write(info + '/entry_points.txt',
            '[jax_plugins]\nshardcall_cpu = shardcall_pjrt.cpu\nshardcall_cuda = shardcall_pjrt.cuda\n')
    return folder


class UnderJax(unittest.TestCase):
    def ok(self, code, head=True, **variables):
        status, out, err = F.python(code, head, **variables)
        self.assertEqual(status, 0, err[-3000:])
        return out, err

    def fails(self, code, *said, **variables):
        status, out, err = F.python(code, **variables)
        self.assertNotEqual(status, 0, out)
        for text in said:
            self.assertIn(text, err)

    def reports(self, name):
        found = []
        for path in sorted(glob.glob(F.path(name) + '/*.json')):
            with open(path, encoding='utf-8') as f:
                found.append(json.load(f))
        return found

    def test_a_program_is_partitioned_here_and_reported(self):
        self.ok(STEP + CHECK_STEP, SHARDCALL_REPORT=F.path('step'))
        report, = self.reports('step')
        self.assertEqual(report['num_partitions'], 8)
        # Of the 32 rows of b each device has 16: a's are cut to match, and the sums reduced.
        self.assertNotIn('all-gather', {c['opcode'] for c in report['collectives']})
        self.assertTrue(glob.glob(F.path('step') + '/*.html'))

    def test_gradients_donation_loops_branches_and_random_numbers(self):
        self.ok('''
w = put(np.eye(8), "x", "y")
@jax.jit
def loss(w, x):
    def body(carry, row):
        return carry @ w, jnp.where(row.sum() > 0, row, -row)
    y, rows = jax.lax.scan(body, x, x)
    y = jax.lax.cond(y.sum() > 0, lambda v: v, lambda v: -v, y)
    return (y * y).sum() + rows.sum()
x = put(np.arange(64).reshape(8, 8) % 5 - 2, "x", None)
g = jax.grad(loss)(w, x)
with jax.default_device(jax.devices()[0]):
    one = jax.grad(loss)(jnp.asarray(np.asarray(w)), jnp.asarray(np.asarray(x)))
np.testing.assert_allclose(np.asarray(g), np.asarray(one), rtol=1e-5)
update = jax.jit(lambda w, g: w - 0.5 * g, donate_argnums=0)
before = np.asarray(w)
new = update(w, g)
assert w.is_deleted() and np.allclose(new, before - 0.5 * np.asarray(g))
key = jax.random.key(3)
draw = jax.jit(lambda k: jax.random.uniform(k, (16, 8)),
               out_shardings=NamedSharding(mesh, P("x", "y")))(key)
with jax.default_device(jax.devices()[0]):
    assert np.array_equal(draw, jax.random.uniform(key, (16, 8)))
''')

    def test_programs_compiled_ahead_of_time_and_by_several_threads(self):
        self.ok(STEP + '''
from concurrent.futures import ThreadPoolExecutor
compiled = jax.jit(step).lower(a, b).compile()
assert np.array_equal(compiled(a, b)[0], np.asarray(a) @ np.asarray(b))
def one(k):
    f = jax.jit(lambda a, b: ((a * k) @ b, (a + k).sum(0)))
    return np.array_equal(f(a, b)[0], (np.asarray(a) * k) @ np.asarray(b))
with ThreadPoolExecutor(4) as pool:
    assert all(pool.map(one, range(1, 9)))
''')

    def test_shard_map_keeps_its_collectives(self):
        self.ok('''
from jax import shard_map
f = jax.jit(shard_map(lambda v: jax.lax.psum(v, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
x = put(np.arange(16), "x")
assert np.array_equal(f(x), np.arange(16).reshape(4, 4).sum(0))
''', SHARDCALL_REPORT=F.path('shard_map'))
        opcodes = [c['opcode'] for r in self.reports('shard_map') for c in r['collectives']]
        self.assertEqual(opcodes, ['all-reduce'])

    def test_a_library_that_registers_itself_has_its_kernels_here(self):
        library = os.environ.get('SHARDCALL_SELF_REGISTERING', '')
        if not library:
            self.skipTest('no headers of XLA\'s FFI to compile the library with')
        manifest = F.write('self.json', json.dumps(
            {'library': library, 'targets': [{'name': 'xla_axpy', 'rule': 'i j, i j -> i j'},
                                             {'name': 'xla_add_offset', 'rule': 'i j -> i j'}]}))
        self.ok('''
result = jax.ShapeDtypeStruct((16, 8), np.float32)
axpy, add = jax.ffi.ffi_call("xla_axpy", result), jax.ffi.ffi_call("xla_add_offset", result)
x = put(np.arange(128).reshape(16, 8), "x", "y")
y = jax.jit(lambda x: add(axpy(x, x, a=np.float32(2)), offset=np.float32(7)))(x)
assert np.array_equal(y, 3 * np.asarray(x) + 7), y
''', SHARDCALL_PLUGINS=manifest, SHARDCALL_REPORT=F.path('self'))
        report, = self.reports('self')
        self.assertEqual(report['collectives'], [])

    def test_custom_partitioning_of_jax_is_asked(self):
        for shardy in ('False', 'True'):
            self.ok(f'''
jax.config.update("jax_use_shardy_partitioner", {shardy})
''' + '''
from jax.experimental.custom_partitioning import custom_partitioning
asked = []
@custom_partitioning
def rows(x):
    return jnp.cumsum(x, axis=1)
def partition(mesh, args, result):
    asked.append("partition")
    s = NamedSharding(mesh, P(args[0].sharding.spec[0] if len(args[0].sharding.spec) else None, None))
    return mesh, lambda x: jnp.cumsum(x, axis=1), s, (s,)
rows.def_partition(partition, infer_sharding_from_operands=lambda mesh, args, result:
                   NamedSharding(mesh, P(args[0].sharding.spec[0], None)),
                   sharding_rule="i j -> i j")
x = put(np.arange(64).reshape(8, 8), "x", None)
y = jax.jit(rows)(x)
assert np.array_equal(y, np.cumsum(np.arange(64).reshape(8, 8), 1)) and asked, asked
assert y.sharding.spec[0] == "x", y.sharding
''')

    def test_uneven_results_that_nobody_placed_stay_whole(self):
        self.ok('''
x = put(np.arange(16), "x")
y = jax.jit(lambda x: jnp.concatenate([x, x[:2] + 1]))(x)
assert y.shape == (18,) and np.array_equal(y, np.r_[np.arange(16), [1, 2]])
''')

    def test_a_target_without_a_rule_is_an_error_with_its_fix_and_jax_goes_on(self):
        call = '''
f = jax.jit(lambda x: jax.ffi.ffi_call("my_target", jax.ShapeDtypeStruct((16, 8), np.float32))(x))
x = put(np.ones((16, 8)), "x", None)
'''
        self.ok(call + STEP + '''
try:
    f(x)
    raise SystemExit("it compiled")
except jax.errors.JaxRuntimeError as e:
    assert "E101" in str(e) and "my_target" in str(e) and "Fix:" in str(e), e
''' + CHECK_STEP)

    def test_a_manifest_gives_a_target_its_rule_and_ours_have_kernels(self):
        manifest = F.write('rules.json', json.dumps({'targets': [
            {'name': 'my_target', 'rule': 'r c -> r c', 'need_replication': ['c']}]}))
        self.fails('''
f = jax.jit(lambda x: jax.ffi.ffi_call("my_target", jax.ShapeDtypeStruct((16, 8), np.float32))(x))
f(put(np.ones((16, 8)), "x", None))
''', 'my_target', 'NOT_FOUND', SHARDCALL_PLUGINS=manifest)
        self.ok('''
f = jax.jit(lambda x, w: jax.ffi.ffi_call("rms_norm", (
    jax.ShapeDtypeStruct((16, 8), np.float32), jax.ShapeDtypeStruct((16,), np.float32)))(x, w, eps=np.float32(1e-6))[0])
x, w = put(np.arange(128).reshape(16, 8) + 1, "x", None), put(np.ones(8))
want = np.asarray(x) / np.sqrt((np.asarray(x) ** 2).mean(1, keepdims=True) + 1e-6)
np.testing.assert_allclose(f(x, w), want, rtol=1e-5)
''', SHARDCALL_REPORT=F.path('rms'))
        self.assertEqual([len(r['collectives']) for r in self.reports('rms')], [0])

    def test_the_cache_of_programs_tells_rules_apart(self):
        cache = F.path('cache')
        code = STEP + CHECK_STEP
        settings = {'JAX_COMPILATION_CACHE_DIR': cache, 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
                    'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '0'}
        self.ok(code, SHARDCALL_REPORT=F.path('cache1'), **settings)
        first = set(os.listdir(cache))
        self.ok(code, SHARDCALL_REPORT=F.path('cache2'), **settings)
        self.assertTrue(self.reports('cache1'))
        self.assertFalse(self.reports('cache2'), 'compiled again')
        self.ok(code, SHARDCALL_REPORT=F.path('cache3'), SHARDCALL_ALLOW_REPLICATE='all', **settings)
        self.assertTrue(self.reports('cache3'), 'taken from the cache of other rules')
        self.assertGreater(len(os.listdir(cache)), len(first))

    @unittest.skipUnless(os.environ.get('SHARDCALL_PJRT_PLUGIN') and shutil.which('ptxas'),
                         'no plugin of XLA:GPU, or no ptxas')
    def test_programs_are_compiled_ahead_of_time_for_gpus_that_are_not_there(self):
        config = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../pjrt/h100.txtpb')
        status, _, err = F.python(f'''
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
topology = topologies.get_topology_desc(platform="shardcall", topology_name="x", topology="1x1x8",
                                        target_config=open({config!r}).read())
mesh = Mesh(np.array(topology.devices).reshape(4, 2), ("x", "y"))
def shape(dims, *spec):
    return jax.ShapeDtypeStruct(dims, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
compiled = jax.jit(lambda a, b: a @ b, out_shardings=NamedSharding(mesh, P("x", "y"))).lower(
    shape((16, 32), "x", None), shape((32, 8), None, "y")).compile()
assert compiled.output_shardings.spec == P("x", "y"), compiled.output_shardings
print("compiled")
''', head=False, SHARDCALL_WRAPPED_PLUGIN=os.environ['SHARDCALL_PJRT_PLUGIN'],
                             SHARDCALL_REPORT=F.path('gpus'))
        self.assertEqual(status, 0, err[-2000:])
        report, = self.reports('gpus')
        self.assertEqual((report['num_partitions'], report['collectives']), (8, []))

    PACKAGE = {'SHARDCALL_WRAPPED_PLUGIN': None, 'PJRT_NAMES_AND_LIBRARY_PATHS': None}

    def test_the_installed_package_is_a_platform_of_jax(self):
        self.ok(STEP + CHECK_STEP, PYTHONPATH=package(), JAX_PLATFORMS='shardcall_cpu',
                SHARDCALL_REPORT=F.path('package'), **self.PACKAGE)
        self.assertEqual([r['num_partitions'] for r in self.reports('package')], [8])
        status, out, _ = F.python('import jax; print(jax.devices()[0].platform)', head=False,
                                  PYTHONPATH=package(), JAX_PLATFORMS='cpu', **self.PACKAGE)
        self.assertEqual((status, out.strip()), (0, 'cpu'))

    def test_its_launcher_runs_a_program_as_it_stands(self):
        program = F.write('program.py', 'import sys, jax\nprint(len(jax.devices()), sys.argv[1:], '
                                        '__name__, jax.devices()[0].client.platform_version.split()[-4])\n')
        out, _ = self.ok(f'''
import sys
from shardcall_pjrt import __main__ as launcher
sys.argv = ["shardcall_pjrt", "--devices=3", {program!r}, "--rate", "2"]
launcher.main()
''', head=False, PYTHONPATH=package(), **self.PACKAGE)
        self.assertEqual(out.strip(), "3 ['--rate', '2'] __main__ shardcall")

    def test_for_cuda_jax_loads_our_library_and_we_wrap_its_own(self):
        self.ok('''
import os, jax_plugins.xla_cuda13 as real, shardcall_pjrt
from shardcall_pjrt import cuda
cuda.take_over()
assert real._get_library_path() == shardcall_pjrt.library_path()
assert os.environ["SHARDCALL_WRAPPED_PLUGIN"] == "/usr/lib/its_own.so"
try:
    shardcall_pjrt.wrap("/usr/lib/another.so")
    raise SystemExit("two plugins are wrapped")
except RuntimeError as e:
    assert "its_own.so" in str(e) and "another.so" in str(e)
''', head=False, PYTHONPATH=package(), **self.PACKAGE)

    def test_without_a_plugin_to_wrap_jax_says_so(self):
        self.fails('', 'E341', 'SHARDCALL_WRAPPED_PLUGIN', SHARDCALL_WRAPPED_PLUGIN=None)

    def test_what_is_no_plugin_is_told(self):
        self.fails('', 'E333', SHARDCALL_WRAPPED_PLUGIN=_ctypes.__file__)
        self.fails('', 'E143', SHARDCALL_WRAPPED_PLUGIN='/no/such/file.so')
        self.fails('', 'E333', SHARDCALL_WRAPPED_PLUGIN=os.environ['SHARDCALL_PJRT_LIBRARY'])

    def test_rules_that_cannot_be_read_are_told(self):
        self.fails('', 'E143', 'missing.json', SHARDCALL_PLUGINS=F.path('missing.json'))

    def test_reports_that_cannot_be_written_are_told_once_and_programs_run(self):
        blocked = F.write('file', '')
        _, told = self.ok(STEP + CHECK_STEP + """
jax.jit(lambda x: x + 1)(a)
""", SHARDCALL_REPORT=blocked)
        self.assertEqual(1, told.count('W209 no report is written: "' + blocked + '/'), told)
        self.assertEqual(1, told.count('W209'), told)

    def test_nothing_is_left_in_temporary_folders(self):
        # As a process that was killed in the middle of a conversion an hour ago leaves it.
        abandoned = tempfile.gettempdir() + '/shardcall.hlo.abc123'
        os.mkdir(abandoned, mode=0o700)
        os.utime(abandoned, (time.time() - 3600,) * 2)
        self.ok(STEP + CHECK_STEP)
        self.assertFalse(glob.glob('/dev/shm/shardcall.*') + glob.glob('/tmp/shardcall.*'))


if __name__ == '__main__':
    unittest.main()
