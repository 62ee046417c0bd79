# SPDX-License-Identifier: Apache-2.0
"""shardcall under jax.jit: one line is changed, and a function's programs are partitioned by
shardcall, with the rules of its custom calls.

    import shardcall.jax as sj

    step = sj.jit(train_step, donate_argnums=0, rules={'my_norm': '... d, d -> ... d'})
    print(sj.explain(step, params, batch))
    sj.expect(step, params, batch, contract='all-gather=0')
"""
from shardcall.jax import compat as _compat  # first
from shardcall.jax import compiling as _compiling
from shardcall.jax import installing as _installing
from shardcall.jax.checking import check
from shardcall.jax.functions import explain, expect, jit, partitioner
from shardcall.jax.installing import install
from shardcall.jax.targets import Target, target

__all__ = ['Target', 'check', 'explain', 'expect', 'install', 'jit', 'partitioner', 'target',
           'uninstall']


def uninstall() -> None:
    """Leaves JAX as it was: functions wrapped by `jit` are compiled by XLA's partitioner from
    then on, until `jit` or `partitioner` is called again, and targets of `install` are gathered."""
    _compiling.uninstall()
    _installing.uninstall()
