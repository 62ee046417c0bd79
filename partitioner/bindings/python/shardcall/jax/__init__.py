# SPDX-License-Identifier: Apache-2.0
"""shardcall under jax.jit: one line is changed, and a function's programs are partitioned by
shardcall, with the rules of its custom calls.

    import shardcall.jax as sj

    step = sj.jit(train_step, donate_argnums=0, rules={'my_norm': '... d, d -> ... d'})
    print(sj.explain(step, params, batch))
    sj.expect(step, params, batch, contract='all-gather=0')
"""
from shardcall.jax.compiling import uninstall
from shardcall.jax.functions import explain, expect, jit, partitioner

__all__ = ['explain', 'expect', 'jit', 'partitioner', 'uninstall']
