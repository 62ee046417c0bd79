# SPDX-License-Identifier: Apache-2.0
"""shardcall: a sharding-aware partitioner for HLO programs with custom calls.

    import shardcall
    program = shardcall.partition(pathlib.Path('step.hlo'), num_partitions=8,
                                  rules={'my_norm': '... d, d -> ... d'})
    print(program.report)

For functions under JAX see shardcall.jax.
"""
from shardcall._core import version as __version__
from shardcall.errors import Error, Warning
from shardcall.programs import (Program, RuleCheck, Verification, check_rule, explain, partition,
                                propagate, run, verify)
from shardcall.report import Report
from shardcall.registry import Target, targets

__all__ = ['Error', 'Program', 'Report', 'RuleCheck', 'Target', 'Verification', 'Warning',
           'check_rule', 'explain', 'partition', 'propagate', 'run', 'targets', 'verify']
