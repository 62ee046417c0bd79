#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shardcall.jax on JAX's own CPU client, eight devices. Exit status 77 without JAX."""
import copy
import functools
import glob
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import jax.export
    from jax.experimental import custom_partitioning, io_callback
    from jax.experimental.layout import Format, Layout
    from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
    import shardcall
    import shardcall.jax as sj
    from shardcall.jax import compat, compiling, conversion
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

MESH = jax.make_mesh((4, 2), ('data', 'model'), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = jax.make_mesh((4, 2), ('data', 'model'), axis_types=(AxisType.Explicit,) * 2)


def sharded(*spec):
    return NamedSharding(MESH, P(*spec))


def whole_numbers(*dims):
    return (np.arange(np.prod(dims), dtype=np.float32) % 7 - 3).reshape(dims)


def relu(x):
    return jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


class JaxTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.x = jax.device_put(whole_numbers(8, 16), sharded('data', 'model'))
        self.w = jax.device_put(whole_numbers(16, 12), sharded('model', None))

    def reports(self):
        return len(glob.glob(os.path.join(self.folder.name, '*.json')))

    def ours(self, function, **options):
        return sj.jit(function, report=self.folder.name, strict=True, **options)

    def test_a_function_gives_what_jax_gives_and_is_partitioned_once(self):
        def f(x, w):
            return jnp.sin(x @ w).sum(0), x @ w

        step = self.ours(f)
        for _ in range(3):
            sums, products = step(self.x, self.w)
        self.assertEqual(self.reports(), 1)
        theirs = jax.jit(f)(self.x, self.w)
        np.testing.assert_allclose(sums, theirs[0], rtol=1e-6)
        np.testing.assert_array_equal(products, theirs[1])
        self.assertEqual(self.reports(), 1)  # jax.jit is not ours

    def test_a_report_that_cannot_be_written_is_a_warning_and_the_program_runs(self):
        blocked = os.path.join(self.folder.name, 'file')
        with open(blocked, 'w', encoding='utf-8'):
            pass
        step = sj.jit(lambda x: x + 1, report=blocked, strict=True)
        again = sj.jit(lambda x: x + 2, report=blocked, strict=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            np.testing.assert_array_equal(step(self.x), np.asarray(self.x) + 1)
            np.testing.assert_array_equal(again(self.x), np.asarray(self.x) + 2)
        told = [str(w.message) for w in told if 'W209' in str(w.message)]
        self.assertEqual(1, len(told), told)
        self.assertRegex(told[0], r'^W209 no report of jit__lambda\w* is written: ".*/file/.*Fix: ')

    def test_shards_are_of_the_size_that_their_sharding_says(self):
        out = self.ours(lambda x, w: (x + 1, x @ w),
                        out_shardings=(sharded('data'), sharded(None, 'model')))(self.x, self.w)
        for array, shape in zip(out, ((2, 16), (8, 6))):
            for shard in array.addressable_shards:
                self.assertEqual(shard.data.shape, shape)
                np.testing.assert_array_equal(shard.data, np.asarray(array)[shard.index])

    def test_open_results_get_the_sharding_that_was_chosen(self):
        out = self.ours(lambda x: x * 2)(self.x)
        self.assertEqual(out.sharding, sharded('data', 'model'))
        self.assertEqual(out.addressable_shards[0].data.shape, (2, 8))

    def test_a_custom_call_is_sharded_by_its_rule(self):
        y = self.ours(relu)(self.x)
        np.testing.assert_array_equal(y, np.maximum(np.asarray(self.x), 0))
        self.assertEqual(sj.explain(sj.jit(relu), self.x).count(), 0)

    def test_rules_are_given_by_name(self):
        def mine(x):
            return jax.ffi.ffi_call('mine', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        x = jax.device_put(whole_numbers(8, 16), sharded('data'))
        with self.assertRaises(shardcall.Error) as raised:
            sj.explain(mine, x)
        self.assertEqual(raised.exception.code, 'E101')
        self.assertEqual(sj.explain(mine, x, rules={'mine': 'a b -> a b'}).count(), 0)
        gathered = sj.explain(mine, x, allow_replicate='all')
        self.assertEqual(gathered.count('all-gather'), 1)
        with self.assertRaises(shardcall.Error) as raised:
            sj.jit(mine, rules={'mine': 'a ( -> a'})
        self.assertEqual(raised.exception.code, 'E110')

    def test_a_contract_is_held_against_the_program(self):
        f = sj.jit(lambda x, w: x @ w)
        sj.expect(f, self.x, self.w, contract='all-gather=0')
        with self.assertRaises(shardcall.Error) as raised:
            sj.expect(f, self.x, self.w, contract='all-reduce=0')
        self.assertEqual(raised.exception.code, 'E221')

    def test_explain_takes_shapes(self):
        x = jax.ShapeDtypeStruct((8, 16), np.float32, sharding=sharded('data', 'model'))
        self.assertEqual(sj.explain(lambda x: x.sum(), x).count('all-reduce'), 1)
        with self.assertRaises(shardcall.Error) as raised:
            sj.explain(lambda x: x + 1, np.ones(3))
        self.assertEqual(raised.exception.code, 'E051')

    def test_donated_arrays_are_given_up(self):
        step = self.ours(lambda s, x: (s + x, x.sum()), donate_argnums=0)
        state = jax.device_put(whole_numbers(8, 16), sharded('data', 'model'))
        before = np.asarray(state)
        pointers = {s.data.unsafe_buffer_pointer() for s in state.addressable_shards}
        out, _ = step(state, self.x)
        self.assertTrue(state.is_deleted())
        self.assertEqual({s.data.unsafe_buffer_pointer() for s in out.addressable_shards}, pointers)
        np.testing.assert_array_equal(out, before + np.asarray(self.x))

    def test_ahead_of_time(self):
        lowered = self.ours(lambda x, w: x @ w).lower(self.x, self.w)
        self.assertEqual(self.reports(), 0)
        compiled = lowered.compile()
        self.assertEqual(self.reports(), 1)
        np.testing.assert_array_equal(compiled(self.x, self.w),
                                      np.asarray(self.x) @ np.asarray(self.w))
        traced = self.ours(lambda x, w: x @ w).trace(self.x, self.w)
        traced.lower().compile()
        self.assertEqual(self.reports(), 2)

    def test_gradients_inside_and_in_a_partitioner(self):
        def loss(w, x):
            return (jnp.tanh(x @ w) ** 2).sum()

        expected = jax.jit(jax.grad(loss))(self.w, self.x)
        # What is left of 1 - tanh^2 at 1 is rounding.
        close = functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)
        close(self.ours(jax.grad(loss))(self.w, self.x), expected)
        with sj.partitioner(report=self.folder.name):
            again = jax.grad(jax.jit(loss))(self.w, self.x)
        close(again, expected)
        self.assertGreater(self.reports(), 1)

    def test_explicit_meshes_shard_map_and_scan(self):
        with jax.set_mesh(EXPLICIT):
            x = jax.device_put(whole_numbers(8, 16), P('data', 'model'))

            @self.ours
            def f(x):
                summed = jax.shard_map(lambda b: jax.lax.psum(b, 'model'),
                                       in_specs=P('data', 'model'), out_specs=P('data'))(x)
                carry, _ = jax.lax.scan(lambda c, _: (c + summed, ()), summed, length=3)
                return carry

            np.testing.assert_array_equal(
                f(x), 4 * (np.asarray(x)[:, :8] + np.asarray(x)[:, 8:]))
            self.assertEqual(self.reports(), 1)

    def test_an_order_of_started_collectives_is_kept(self):
        try:
            from jax.experimental.control_deps import schedule
            from jax._src.lax.parallel import all_gather_start
        except ImportError:
            self.skipTest('this version of JAX has no control dependencies')
        with jax.set_mesh(EXPLICIT):
            x = jax.device_put(whole_numbers(8, 16), P('data', None))
            ws = [jax.device_put(whole_numbers(16, 16), P('model', None)) for _ in range(3)]

            @self.ours
            @functools.partial(jax.shard_map, out_specs=P('data'), check_vma=False)
            def f(x, ws):
                order = []
                ended = jax.lax.all_gather(ws[0], 'model', tiled=True)
                for w in ws[1:]:
                    started = all_gather_start(w, 'model', tiled=True)
                    x, ended = x @ ended, started.done()
                    order += [started.x, x, ended]
                schedule(order)
                return x @ ended

            expected = np.asarray(x)
            for w in ws:
                expected = expected @ np.asarray(w)
            np.testing.assert_array_equal(f(x, ws), expected)
            self.assertEqual(sj.explain(f, x, ws).count('all-gather'), 3)
            # Each product after a start, each end after a product, a start after an end.
            text = shardcall.partition(f.lower(x, ws)).text
            self.assertEqual(text.count('control-predecessors='), 5, text)

    def test_a_program_order_gives_what_its_function_does(self):
        try:
            from jax.experimental.overlap import program_order
            from jax._src.lax.parallel import all_gather_start
        except ImportError:
            self.skipTest('this version of JAX has no program order')

        def f(x, ws, gather):
            ended = gather(ws[0])
            for w in ws[1:]:
                x, ended = x @ ended, gather(w)
            return x @ ended

        ways = {'started': lambda w: all_gather_start(w, 'model', tiled=True).done(),
                'at once': lambda w: jax.lax.all_gather(w, 'model', tiled=True)}
        with jax.set_mesh(EXPLICIT):
            x = jax.device_put(whole_numbers(8, 16), P('data', None))
            ws = [jax.device_put(whole_numbers(16, 16), P('model', None)) for _ in range(3)]
            expected = np.asarray(x)
            for w in ws:
                expected = expected @ np.asarray(w)
            for way, enforce in itertools.product(ways, (False, True)):
                with self.subTest(way, enforce=enforce):
                    ordered = program_order(functools.partial(f, gather=ways[way]), enforce=enforce)
                    g = self.ours(jax.shard_map(ordered, out_specs=P('data'), check_vma=False))
                    np.testing.assert_array_equal(g(x, ws), expected)
                    self.assertEqual(sj.explain(g, x, ws).count('all-gather'), 3)

    def test_results_may_be_left_unreduced(self):
        with jax.set_mesh(EXPLICIT):
            x = jax.device_put(whole_numbers(8, 16), P('data', 'model'))
            w = jax.device_put(whole_numbers(16, 12), P('model', None))
            f = self.ours(functools.partial(
                jnp.matmul, out_sharding=P('data', None, unreduced={'model'})))
            self.assertEqual(sj.explain(f, x, w).count(), 0)
            out = f(x, w)
            self.assertEqual(out.sharding.spec, P('data', None, unreduced={'model'}))
            summed = self.ours(lambda y: jax.reshard(y, P('data', None)))(out)
            np.testing.assert_array_equal(summed, np.asarray(x) @ np.asarray(w))

    def test_custom_partitioning_of_jax_is_asked(self):
        from jax.experimental.custom_partitioning import custom_partitioning

        asked = []

        @custom_partitioning
        def double(x):
            return x * 2

        def partition(mesh, arg_shapes, result_shape):
            asked.append(arg_shapes[0].sharding.spec)
            return (mesh, lambda x: x * 2, result_shape.sharding,
                    tuple(a.sharding for a in arg_shapes))

        double.def_partition(
            infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
            partition=partition, sharding_rule='i j -> i j')
        for shardy in (True, False):
            jax.config.update('jax_use_shardy_partitioner', shardy)
            try:
                del asked[:]
                y = self.ours(lambda x: double(x) + 1)(self.x)
            finally:
                jax.config.update('jax_use_shardy_partitioner', True)
            np.testing.assert_array_equal(y, np.asarray(self.x) * 2 + 1)
            self.assertTrue(asked)

    def test_callbacks_and_keys(self):
        def f(key, x):
            y = jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct((), x.dtype),
                                  x.sum())
            return x + jax.random.normal(key, x.shape), y

        key = jax.random.key(3)
        noisy, total = self.ours(f)(key, self.x)
        expected = jax.jit(f)(key, self.x)
        np.testing.assert_allclose(noisy, expected[0], rtol=1e-6)
        self.assertEqual(total, expected[1])

    def test_a_callback_without_results_runs_on_one_device(self):
        told = []

        def f(x):
            jax.debug.callback(lambda total: told.append(float(total)), x.sum())
            return x * 2

        np.testing.assert_array_equal(self.ours(f)(self.x), np.asarray(self.x) * 2)
        jax.effects_barrier()
        self.assertEqual(told, [float(np.asarray(self.x).sum())])

    def test_an_ordered_callback_runs_on_one_device(self):
        told = []

        def f(x):
            for k in range(3):
                io_callback(lambda total: told.append(float(total.sum())), None, x + k,
                            ordered=True)
            return x * 2

        np.testing.assert_array_equal(self.ours(f)(self.x), np.asarray(self.x) * 2)
        jax.effects_barrier()
        self.assertEqual(told, [float((np.asarray(self.x) + k).sum()) for k in range(3)])

    def test_a_partitioned_callback_runs_on_each_device_with_its_shards(self):
        told = []

        def f(x, y):
            jax.debug.callback(lambda *shards: told.append(tuple(s.tobytes() for s in shards)),
                               x, y, x.sum(), partitioned=True)
            return x * 2

        y = jax.device_put(np.asarray(self.x), NamedSharding(MESH, P('data')))
        self.ours(f)(self.x, y)
        jax.effects_barrier()
        total = np.asarray(self.x).sum().tobytes()
        self.assertCountEqual(told, [
            (np.asarray(a.data).tobytes(), np.asarray(b.data).tobytes(), total)
            for a, b in zip(self.x.addressable_shards, y.addressable_shards)])
        self.assertEqual(sj.explain(self.ours(f), self.x, y).count('all-gather'), 0)

    def test_a_value_s_sharding_can_be_inspected(self):
        told = []

        def f(x):
            jax.debug.inspect_array_sharding(x @ x.T, callback=told.append)
            return x * 2

        self.ours(f)(self.x)
        self.assertEqual([s.spec for s in told], [P('data')])

    def test_memory_kinds(self):
        host = NamedSharding(MESH, P('data', 'model'), memory_kind='pinned_host')
        out = self.ours(lambda x: x * 2, out_shardings=host)(self.x)
        self.assertEqual(out.sharding.memory_kind, 'pinned_host')
        back = self.ours(lambda x: jax.device_put(x, host.with_memory_kind('device')) + 1)(out)
        self.assertEqual(back.sharding.memory_kind, 'device')
        np.testing.assert_array_equal(back, np.asarray(self.x) * 2 + 1)

    def test_layouts(self):
        columns = Format(Layout((1, 0)), sharded('data', 'model'))
        out = self.ours(lambda x: x * 2, out_shardings=columns)(self.x)
        self.assertEqual(out.format.layout.major_to_minor, (1, 0))
        np.testing.assert_array_equal(out, np.asarray(self.x) * 2)
        sums = self.ours(lambda x: x.sum(0), in_shardings=columns)(out)
        np.testing.assert_array_equal(sums, np.asarray(self.x).sum(0) * 2)

    def test_the_persistent_cache_gives_the_same(self):
        from jax.experimental.compilation_cache import compilation_cache
        from jax._src import monitoring
        hits = []
        monitoring.register_event_listener(
            lambda event, **_: hits.append(event) if event.endswith('cache_hits') else None)
        config = {'jax_compilation_cache_dir': self.folder.name,
                  'jax_persistent_cache_min_compile_time_secs': 0,
                  'jax_persistent_cache_min_entry_size_bytes': -1}
        before = {key: getattr(jax.config, key) for key in config}

        def f(x):
            return relu(x), x @ x.T

        try:
            for key, value in config.items():
                jax.config.update(key, value)
            for expected in (0, 1):
                jax.clear_caches()
                compilation_cache.reset_cache()
                positive, product = sj.jit(f, strict=True)(self.x)
                self.assertEqual(len(hits), expected)
                np.testing.assert_array_equal(positive, np.maximum(np.asarray(self.x), 0))
                np.testing.assert_array_equal(product, np.asarray(self.x) @ np.asarray(self.x).T)
                self.assertEqual(positive.addressable_shards[0].data.shape, (2, 8))
        finally:
            for key, value in before.items():
                jax.config.update(key, value)
            compilation_cache.reset_cache()

    def test_a_function_on_one_device_is_left_alone(self):
        self.assertEqual(self.ours(lambda x: x + 1)(3), 4)
        self.assertEqual(self.reports(), 0)

    def test_pmap_within_a_partitioner_gives_what_it_gives(self):
        devices = jax.devices()[:2]
        x = np.arange(2.0, dtype=np.float32)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            with sj.partitioner():
                f = jax.pmap(lambda x: jax.lax.psum(x, 'i'), axis_name='i', devices=devices)
                np.testing.assert_array_equal(f(x), [1, 1])
        told = [w for w in told if issubclass(w.category, shardcall.Warning)]
        self.assertLessEqual(len(told), 1)

    def test_it_is_the_same_kind_of_function_as_jax_s(self):
        def double(x):
            return x * 2

        theirs, ours = jax.jit(double), sj.jit(double)
        self.assertIs(ours.__wrapped__, theirs.__wrapped__)
        self.assertIsInstance(ours.trace(self.x), jax.stages.Traced)
        self.assertIsInstance(ours.lower(self.x), jax.stages.Lowered)
        self.assertIsInstance(ours.trace(self.x).lower(), jax.stages.Lowered)
        self.assertIn('as_text', dir(ours.lower(self.x)))
        np.testing.assert_array_equal(ours.trace(self.x)(self.x), 2 * np.asarray(self.x))
        for copied in (copy.copy(ours), copy.deepcopy({'step': ours})['step']):
            np.testing.assert_array_equal(copied(self.x), 2 * np.asarray(self.x))

    def test_a_method_is_one_of_its_object(self):
        class Model:
            @functools.partial(sj.jit, static_argnums=0)
            def step(self, x):
                """Doubles."""
                return x * 2

            @functools.partial(sj.jit, static_argnums=0, rules={'one': 'a b -> a b'})
            def call(self, x):
                return jax.ffi.ffi_call('one', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        model = Model()
        self.assertEqual(model.step, model.step)
        self.assertIs(model.step.__self__, model)
        self.assertEqual((model.step.__name__, model.step.__doc__), ('step', 'Doubles.'))
        np.testing.assert_array_equal(model.step(self.x), 2 * np.asarray(self.x))
        # Its own rules, with no arguments lost.
        self.assertEqual(sj.explain(model.call, self.x).total_bytes, 0)
        self.assertEqual(sj.explain(functools.partial(model.call, self.x)).total_bytes, 0)
        sj.expect(model.call, self.x, contract='bytes=0')
        for again in (sj.jit(model.call), sj.jit(functools.partial(model.call))):
            self.assertEqual(sj.explain(again, self.x).total_bytes, 0)
        self.assertEqual(sj.jit(model.step).lower(self.x).out_info.shape, self.x.shape)
        traces = []
        outer = sj.jit(lambda f, x: traces.append(f) or f(x), static_argnums=0)
        for _ in range(2):
            np.testing.assert_array_equal(outer(model.step, self.x), 2 * np.asarray(self.x))
        self.assertEqual(len(traces), 1)

    def test_a_function_around_another_is_itself(self):
        double = sj.jit(lambda x: x * 2)

        @functools.wraps(double)
        def summed(x):
            return double(x).sum()

        self.assertEqual(sj.jit(summed).lower(self.x).out_info.shape, ())
        product = sj.jit(lambda x: x @ x.T)
        with self.assertRaises(shardcall.Error) as raised:
            sj.jit(jax.jit(product), max_reshard_bytes=1)(self.x)
        self.assertEqual(raised.exception.code, 'E210')
        for limit in ({'max_reshard_bytes': 1}, {'max_memory': 100}):
            with self.assertRaisesRegex(shardcall.Error, 'E210'):
                sj.explain(sj.jit(jax.jit(product), **limit), self.x)

    def test_what_a_loop_yields_under_a_constraint_is_its_result_s_sharding(self):
        def steps(p, update):
            return jax.lax.fori_loop(0, 2, lambda i, p: jax.lax.with_sharding_constraint(
                p + update, sharded(None, 'data')), p)

        p = jax.device_put(whole_numbers(8, 16), sharded())
        compiled = sj.jit(steps).lower(p, self.x).compile()
        self.assertEqual(compiled(p, self.x).sharding.spec, P(None, 'data'))
        self.assertEqual(jax.jit(steps)(p, self.x).sharding.spec, P(None, 'data'))

    def test_explain_keeps_what_it_is_not_given(self):
        def call(name, x):
            return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        def f(x):
            return call('one', call('two', x))

        ours = sj.jit(f, rules={'one': 'a b -> a b'}, allow_replicate='two')
        sent = sj.explain(ours, self.x).total_bytes
        self.assertGreater(sent, 0)
        self.assertEqual(sj.explain(ours, self.x, max_reshard_bytes=2**30).total_bytes, sent)
        sj.expect(ours, self.x, rules={'one': 'a b -> a b', 'two': 'a b -> a b'},
                  contract='bytes=0')
        with sj.partitioner(rules={'one': 'a b -> a b', 'two': 'a b -> a b'}):
            self.assertEqual(sj.explain(f, self.x).total_bytes, 0)
            self.assertEqual(sj.explain(jax.jit(f), self.x).total_bytes, 0)

    def test_what_is_lowered_is_a_program(self):
        ours = sj.jit(relu, out_shardings=sharded('data', 'model'))
        for lowered in (ours.lower(self.x), ours.trace(self.x).lower()):
            self.assertEqual(sj.explain(lowered).count(), 0)
            self.assertEqual(shardcall.partition(lowered).report.count(), 0)
        lowered.compile()
        self.assertEqual(sj.explain(lowered).count(), 0)
        self.assertEqual(sj.explain(ours.trace(self.x)).count(), 0)
        with self.assertRaises(TypeError):
            sj.explain(ours.lower(self.x), self.x)
        with self.assertRaisesRegex(TypeError, 'expected a function, or what its `trace`'):
            sj.explain(ours.lower(self.x).compile())
        mine = sj.jit(lambda x: jax.ffi.ffi_call('mine', jax.ShapeDtypeStruct(x.shape, x.dtype))(x),
                      rules={'mine': 'a b -> a b'},
                      out_shardings=sharded('data', 'model')).lower(self.x)
        self.assertEqual(shardcall.partition(mine).report.count(), 0)

    def test_stablehlo_is_read_in_every_form(self):
        function = jax.jit(lambda x: x @ x.T, out_shardings=sharded())  # StableHLO has no open ones
        lowered = function.lower(self.x)
        text = lowered.as_text()
        path = pathlib.Path(self.folder.name) / 'program.mlir'
        path.write_text(text)
        exported = jax.export.export(function)(self.x).mlir_module_serialized
        want = shardcall.partition(lowered)
        for program in (text, text.encode(), path, exported):
            made = shardcall.partition(program)
            self.assertEqual((made.num_partitions, made.report.total_bytes),
                             (8, want.report.total_bytes))
        with self.assertRaises(shardcall.Error) as raised:
            shardcall.partition(text.replace('stablehlo', 'stable'))
        self.assertEqual(raised.exception.code, 'E035')

    def test_an_interrupted_callback_interrupts(self):
        @custom_partitioning.custom_partitioning
        def f(x):
            return x + 1

        def interrupted(*args):
            raise KeyboardInterrupt

        f.def_partition(infer_sharding_from_operands=interrupted, partition=interrupted,
                        propagate_user_sharding=None, sharding_rule='a b -> a b')
        with self.assertRaises(KeyboardInterrupt):
            self.ours(lambda x: f(x) * 2)(self.x)
        np.testing.assert_array_equal(jax.jit(lambda x: x - 3)(self.x), np.asarray(self.x) - 3)

    def test_options_are_looked_at(self):
        for options in ({'max_reshard_bytes': -1}, {'max_reshard_bytes': 'x'}, {'max_memory': -1},
                        {'allow_replicate': 3}, {'allow_replicate': (3,)}, {'conflicts': 3}, {'cost': 3}):
            with self.assertRaises((TypeError, ValueError)):
                sj.jit(lambda x: x, **options)

    def test_unknown_keywords_are_refused(self):
        with self.assertRaises(TypeError):
            sj.jit(lambda x: x, ruels={})
        with self.assertRaises(TypeError):
            with sj.partitioner(ruels={}):
                pass

    def test_after_an_error_jax_works_as_before(self):
        def mine(x):
            return jax.ffi.ffi_call('mine', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

        with self.assertRaises(shardcall.Error):
            sj.jit(mine)(self.x)
        np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(self.x), np.asarray(self.x) + 1)

    def test_after_an_interrupted_compile_it_compiles(self):
        for step in ('to_bytecode', 'to_module'):  # before and behind our part
            f = self.ours(lambda x, step=step: x + len(step))
            with unittest.mock.patch.object(conversion, step, side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    f(self.x)
            np.testing.assert_array_equal(jax.jit(lambda x: x - 1)(self.x), np.asarray(self.x) - 1)
            np.testing.assert_array_equal(f(self.x), np.asarray(self.x) + len(step))

    def test_another_kernel_of_a_target_that_xla_has_is_an_error(self):
        relu_on_rows = self.ours(relu)
        relu_on_rows(self.x)
        key = ('cpu', 'custom_relu')
        address = compiling._registered[key]
        self.addCleanup(compiling._registered.__setitem__, key, address)
        compiling._registered[key] = address + 1
        with self.assertRaises(shardcall.Error) as raised:
            self.ours(lambda x: relu(x + 1))(self.x)
        self.assertEqual(raised.exception.code, 'E141')
        relu_on_rows(self.x)  # what was compiled before runs on

    def test_uninstall_leaves_jax_as_it_was(self):
        sj.uninstall()
        before = compat.compile_step()
        f = self.ours(lambda x: x + 1)
        self.assertNotEqual(compat.compile_step(), before)
        f(self.x)
        sj.uninstall()
        self.assertEqual(compat.compile_step(), before)
        np.testing.assert_array_equal(f(self.x), np.asarray(self.x) + 1)  # by XLA's partitioner
        self.assertEqual(self.reports(), 1)
        self.ours(lambda x: x + 2)(self.x)
        self.assertEqual(self.reports(), 2)


if __name__ == '__main__':
    unittest.main()
