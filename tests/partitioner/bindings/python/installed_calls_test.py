#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of installed targets keep under jax.jit what XLA does not ask a partitioner about: layouts,
aliases, side effects and API versions. Exit status 77 without JAX or a C++ compiler."""
import ctypes
import os
import re
import sys
import tempfile
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name)
FORMS = kernels.library(FOLDER.name, 'form_kernels.cc')

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402
from shardcall import _core  # noqa: E402
from shardcall.jax import served_calls  # noqa: E402

MESH = jax.make_mesh((4, 2), ('a', 'b'), axis_types=(AxisType.Auto,) * 2)
SPECS = P(), P('a'), P('b'), P(None, 'b'), P('a', 'b'), P(('a', 'b'))
NUMBER = sj.target('number', FORMS.number, rule='... i j -> ... i j', need_replication=['i', 'j'],
                   input_layouts=[(0, 2, 1)], output_layouts=(0, 2, 1))
ADD = sj.target('add_in_place', FORMS.add_in_place, rule='i j, j -> i j',
                input_output_aliases={0: 0})
OBSERVE = sj.target('observe', FORMS.observe, rule='... d ->')
PASS = sj.target('pass_on', FORMS.pass_on, rule='... -> ...', has_side_effect=True)

KEPT = []  # tables of plugins


def whole(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


def placed(x, spec):
    return jax.device_put(x, NamedSharding(MESH, spec))


def plugin(takes_partitioners):
    """The table of functions of a plugin that has at most those for partitioners, which are ours:
    (size, extensions, ..), as a PJRT_Api begins."""
    get, new = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    given = _core.framework_api()
    name = re.search('"(.*)"', repr(given))
    ours = ctypes.cast(get(given, name and name.group(1).encode()),
                       ctypes.POINTER(ctypes.c_void_p * 5)).contents
    table = (ctypes.c_void_p * 512)(*ours)
    table[0] = ctypes.sizeof(table)
    if not takes_partitioners:
        table[1] = None
    KEPT.append(table)
    return new(ctypes.addressof(table), None, None)


class InstalledCallsTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(jax.config.update, 'jax_use_shardy_partitioner',
                        jax.config.jax_use_shardy_partitioner)
        self.addCleanup(sj.uninstall)

    def partitioners(self):
        """Under each of XLA's."""
        for shardy in (True, False):
            jax.config.update('jax_use_shardy_partitioner', shardy)
            jax.clear_caches()
            with self.subTest(shardy=shardy):
                yield

    def expect(self, function, x, wanted):
        jax.clear_caches()
        for spec in SPECS:
            made = jax.jit(function)(placed(x, spec))
            np.testing.assert_array_equal(made, wanted, err_msg=str(spec))

    def test_layouts_and_aliases_are_those_of_the_call(self):
        cube, x, w = whole(8, 4, 6), whole(8, 16), np.arange(16, dtype=np.float32)
        numbered = cube + np.arange(24, dtype=np.float32).reshape(6, 4).T
        for _ in self.partitioners():
            for installed in (False, True, False):
                if installed:
                    sj.install('number', 'add_in_place')
                self.expect(lambda x: NUMBER(x * 1), cube, numbered)
                self.expect(lambda x: ADD(x * 1, w), x, x + w)
                sj.uninstall()

    def test_they_are_sharded_by_the_rule(self):
        sj.install('number', 'add_in_place')
        for _ in self.partitioners():
            step = jax.jit(lambda x, y, w: (NUMBER(x), ADD(y, w)))
            made = step.lower(placed(whole(8, 4, 6), P('a')), placed(whole(8, 16), P('a', 'b')),
                              placed(whole(16), P('b'))).compile()
            self.assertIsNone(re.search('all-gather|all-reduce|all-to-all|permute',
                                        made.as_text()))
            self.assertEqual([s.spec for s in made.output_shardings][1], P('a', 'b'))

    def test_calls_without_results_run_on_each_shard(self):
        x = whole(8, 16) + 4
        sj.install('observe')
        for _ in self.partitioners():
            for spec in SPECS:
                FORMS.observed(), FORMS.observations()
                made = jax.jit(lambda x: (OBSERVE(x * 2), x + 1)[1])(placed(x, spec))
                np.testing.assert_array_equal(made, x + 1)
                jax.effects_barrier()
                shards = np.prod([MESH.shape[a] for a in jax.tree.leaves(tuple(spec))] or [1])
                self.assertEqual(FORMS.observations(), 8, spec)
                self.assertEqual(FORMS.observed(), 2 * x.sum() * 8 / shards, spec)

    def test_calls_with_a_side_effect_whose_results_are_not_used_run(self):
        x = whole(8, 16) + 4
        sj.install('pass_on')
        for _ in self.partitioners():
            FORMS.observed(), FORMS.observations()
            made = jax.jit(lambda x: (PASS(x * 2), x + 1)[1])(placed(x, P('a', 'b')))
            np.testing.assert_array_equal(made, x + 1)
            jax.effects_barrier()
            self.assertEqual((FORMS.observations(), FORMS.observed()), (8, 2 * x.sum()))

    def test_an_untyped_call_keeps_its_version(self):
        jax.ffi.register_ffi_target('subtract', jax.ffi.pycapsule(LIBRARY.subtract),
                                    platform='cpu', api_version=0)
        sj.install('subtract', rules={'subtract': ', ->'})
        call = jax.ffi.ffi_call('subtract', jax.ShapeDtypeStruct((), np.float32),
                                custom_call_api_version=2)
        x = placed(whole(8), P('a'))
        for _ in self.partitioners():
            self.assertEqual(jax.jit(lambda x: call(x[1], x[0]))(x), 1)

    def test_within_a_shard_map_the_call_is_of_the_shard(self):
        x = whole(8, 4, 6)
        wanted = x + np.arange(24, dtype=np.float32).reshape(6, 4).T
        sj.install('number')
        for axes in ({'a', 'b'}, {'a'}):
            step = jax.jit(jax.shard_map(NUMBER, mesh=MESH, in_specs=P('a'), out_specs=P('a'),
                                         axis_names=axes))
            for spec in (P('a'), P(('a', 'b'))):
                np.testing.assert_array_equal(step(placed(x, spec)), wanted)

    def test_what_was_lowered_has_the_targets_own_name(self):
        x, w = whole(8, 16), np.arange(16, dtype=np.float32)
        lowered = jax.jit(lambda x: ADD(x * 1, w)).lower(placed(x, P('a', 'b')))
        sj.install('add_in_place')  # after it was lowered
        before = lowered.as_text()
        made = lowered.compile()
        self.assertNotIn('all-gather', made.as_text())
        np.testing.assert_array_equal(made(placed(x, P('a', 'b'))), x + w)
        self.assertEqual(lowered.as_text(), before)
        self.assertIn('@add_in_place(', before)
        np.testing.assert_array_equal(shardcall.partition(lowered).run([x])[0], x + w)

    def test_xla_forgets_the_rule_when_it_is_uninstalled(self):
        x, w = whole(8, 16), np.arange(16, dtype=np.float32)
        gathers = []
        for installed in (False, True, False):
            if installed:
                sj.install('add_in_place')
            jax.clear_caches()
            made = jax.jit(lambda x: ADD(x * 1, w)).lower(placed(x, P('a', 'b'))).compile()
            gathers.append('all-gather' in made.as_text())
            sj.uninstall()
        self.assertEqual(gathers, [True, False, True])

    def test_the_xla_of_a_plugin_gets_the_rule_of_the_form(self):
        x = placed(whole(8, 16), P('a', 'b'))
        module = jax.jit(lambda x: ADD(x * 1, x[0])).lower(x).compiler_ir('stablehlo')
        with_partitioners, without = plugin(True), plugin(False)
        self.assertIs(served_calls.named(module, True, with_partitioners), module)
        sj.install('add_in_place')
        text = str(served_calls.named(module, True, with_partitioners))
        name = re.search(r'@"?(add_in_place@rule\.[0-9a-f]+)', text).group(1)
        self.assertIn('#sdy.op_sharding_rule<([i, j], [j])->([i, j])', text)
        self.assertIn(name, _core.partitioned_targets())
        self.assertNotIn('add_in_place', _core.partitioned_targets())
        self.assertNotIn('sdy.sharding_rule',
                         str(served_calls.named(module, False, with_partitioners)))
        # It would not know the name.
        self.assertNotIn('@rule', str(served_calls.named(module, True, without)))

    def test_on_one_device_nothing_changes(self):
        sj.install('number', 'observe')
        x = whole(8, 4, 6)
        FORMS.observations()
        made = jax.jit(lambda x: (OBSERVE(x), NUMBER(x))[1])(x)
        jax.effects_barrier()
        np.testing.assert_array_equal(made, x + np.arange(24, dtype=np.float32).reshape(6, 4).T)
        self.assertEqual(FORMS.observations(), 1)


if __name__ == '__main__':
    unittest.main()
