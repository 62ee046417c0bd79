#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes step.{sdy,gspmd}.mlir and step.sdy.mlirbc: one program as JAX lowers it to
StableHLO, by both of its partitioners, as text and as bytecode. Made with jax 0.10.2."""
import os

os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
jax.config.update('jax_hlo_source_file_canonicalization_regex', '^.*/')
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ('x', 'y'))


def placed(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


def step(a, b):
    c = a @ b
    c = jax.lax.with_sharding_constraint(c, NamedSharding(mesh, P('x', 'y')))
    return c.sum(0), c, a + 1


for form in ('sdy', 'gspmd'):
    jax.config.update('jax_use_shardy_partitioner', form == 'sdy')
    results = tuple(NamedSharding(mesh, s) for s in (P('y'), P('x', 'y'), P('x')))
    jitted = jax.jit(step, donate_argnums=0, out_shardings=results)
    lowered = jitted.lower(placed((16, 32), 'x'), placed((32, 8), 'y'))
    with open(f'{HERE}/step.{form}.mlir', 'w', encoding='utf-8') as f:
        f.write(lowered.as_text())
    if form == 'sdy':
        with open(f'{HERE}/step.sdy.mlirbc', 'wb') as f:
            f.write(mlir.module_to_bytecode(lowered.compiler_ir('stablehlo')))
