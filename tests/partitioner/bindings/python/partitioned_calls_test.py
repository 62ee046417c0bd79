#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Custom calls that Python functions have partitioned, under sj.jit and jax.jit: XLA runs what they
said, and they are not asked again. Exit status 77 without JAX or a C++ compiler."""
import os
import sys
import tempfile
import unittest

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernels  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
LIBRARY = kernels.library(FOLDER.name, 'partitioned_kernels.cc')

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402
import shardcall  # noqa: E402
import shardcall.jax as sj  # noqa: E402
from shardcall import xla_client  # noqa: E402

MESH = jax.make_mesh((8,), ('a',), axis_types=(AxisType.Auto,))
X = (np.arange(32, dtype=np.float32) % 11 - 3)
for name in ('divide', 'window', 'increment'):
    xla_client.register_custom_call_target(
        name, jax.ffi.pycapsule(getattr(LIBRARY, name)), 'cpu', api_version=1)


class Callbacks:
    """Keeps the sharding of the operand, and counts how often it is asked for a program."""

    def __init__(self, target, local):
        self.asked = 0
        self.local = local
        xla_client.register_custom_call_partitioner(
            target, lambda sharding, shape, config: sharding, self.partition,
            lambda shapes, shardings, result, config: shardings[0])

    def partition(self, shapes, shardings, result_shape, result_sharding, config):
        self.asked += 1
        whole, = shapes[0].dimensions()
        sharding = shardings[0]
        size, = (sharding.tile(shapes[0]) if sharding.is_tiled() else shapes[0]).dimensions()
        return self.local(whole, size).encode(), [sharding], sharding


def divided(whole, size):
    """Its attribute is the size of the whole array."""
    return f"""HloModule local
ENTRY e {{
  x = f32[{size}] parameter(0)
  ROOT y = f32[{size}] custom-call(x), custom_call_target="divide", api_version=API_VERSION_TYPED_FFI, backend_config={{n = {whole} : i64}}
}}"""


def windowed(whole, size):
    """Each device needs an element of both of its neighbours."""
    n = whole // size
    right = ','.join(f'{{{k},{k + 1}}}' for k in range(n - 1))
    left = ','.join(f'{{{k + 1},{k}}}' for k in range(n - 1))
    return f"""HloModule local
ENTRY e {{
  x = f32[{size}] parameter(0)
  first = f32[1] slice(x), slice={{[0:1]}}
  last = f32[1] slice(x), slice={{[{size - 1}:{size}]}}
  before = f32[1] collective-permute(last), source_target_pairs={{{right}}}, channel_id=1
  after = f32[1] collective-permute(first), source_target_pairs={{{left}}}, channel_id=2
  more = f32[{size + 2}] concatenate(before, x, after), dimensions={{0}}
  ROOT y = f32[{size}] custom-call(more), custom_call_target="window", api_version=API_VERSION_TYPED_FFI, backend_config={{}}
}}"""


def incremented(whole, size):
    return f"""HloModule local
ENTRY e {{
  x = f32[{size}] parameter(0)
  ROOT y = f32[{size}] custom-call(x), custom_call_target="increment", api_version=API_VERSION_TYPED_FFI, output_to_operand_aliasing={{{{}}: (0, {{}})}}, backend_config={{}}
}}"""


def call(target, **attributes):
    return lambda x: jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(
        x, **attributes)


def under(way, function):
    if way == 'sj.jit':
        return sj.jit(function, strict=True)
    if way == 'jax.jit':
        return jax.jit(function)

    def within(x):
        with sj.partitioner(strict=True):
            return jax.jit(function)(x)

    return within


class PartitionedCallsTest(unittest.TestCase):
    def setUp(self):
        self.x = jax.device_put(X, NamedSharding(MESH, P('a')))

    def check(self, target, local, wanted, ways=('sj.jit', 'sj.partitioner', 'jax.jit')):
        for way in ways:
            with self.subTest(way):
                asked = Callbacks(target, local)
                jax.clear_caches()
                made = under(way, call(target))(self.x)
                np.testing.assert_array_equal(made, wanted)
                if way != 'jax.jit':  # XLA's choice
                    self.assertEqual(made.sharding.spec, P('a'))
                self.assertEqual(asked.asked, 1)

    def test_an_attribute_of_the_whole_size_stays(self):
        self.check('divide', divided, X / 32)

    def test_a_halo_exchange_is_made_once(self):
        near = np.concatenate([[0], X, [0]]).astype(np.float32)
        self.check('window', windowed, near[:-2] + X + near[2:])

    def test_what_is_computed_in_place_stays_so(self):
        self.check('increment', incremented, X + 1)

    def test_what_has_batch_dims_for_xla_stays_in_place(self):
        xla_client.register_custom_call_target(
            'in_place', jax.ffi.pycapsule(LIBRARY.increment), 'cpu', api_version=1)
        xla_client.register_custom_call_as_batch_partitionable('in_place')
        made = sj.jit(lambda x: jax.ffi.ffi_call(
            'in_place', jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0})(x),
            rules={'in_place': {'batch_dims': 1}}, strict=True)(self.x)
        np.testing.assert_array_equal(made, X + 1)

    def test_the_kernels_of_two_targets_are_told_apart(self):
        Callbacks('divide', divided)
        Callbacks('increment', incremented)
        made = sj.jit(lambda x: call('increment')(call('divide')(x)), strict=True)(self.x)
        np.testing.assert_array_equal(made, X / 32 + 1)

    def test_in_a_shard_map_they_are_asked_for_the_shard(self):
        for jit in (sj.jit, jax.jit):
            Callbacks('divide', divided)
            jax.clear_caches()
            f = jax.shard_map(call('divide'), mesh=MESH, in_specs=P('a'), out_specs=P('a'))
            np.testing.assert_array_equal(jit(f)(self.x), X / 4)


if __name__ == '__main__':
    unittest.main()
