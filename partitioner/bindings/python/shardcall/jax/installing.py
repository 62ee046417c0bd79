# SPDX-License-Identifier: Apache-2.0
"""install: a target's rule for XLA's own partitioner."""
from typing import Optional

from shardcall import options
from shardcall import registry
from shardcall.jax import compiling
from shardcall.jax import served_calls
from shardcall.types import Paths, Rules


def install(*names: str, rules: Optional[Rules] = None, plugins: Paths = ()) -> None:
    """The rules of targets for XLA's own partitioner: under jax.jit, without sj.jit, calls of
    them are then sharded by their rules, on JAX's CPU client and on every PJRT plugin that is or
    will be loaded, under GSPMD and Shardy. Kernels are to be registered, as for any call.

        sj.target('my_norm', library.MyNorm, rule='... d, d -> ... d')
        sj.install('my_norm')

    Args:
      *names: the targets: of sj.target, of `rules` or `plugins`, or shipped ones.
      rules, plugins: as of sj.partitioner.

    A call keeps its layouts, aliases and side effects; one without results, and one that has a
    side effect, runs on every shard. The rules are used for what jax.jit compiles for several
    devices from then on; what was compiled before stays as it is. XLA knows the calls by names of
    their own, TARGET@rule and a digest, which a profile may show. After sj.uninstall() XLA gathers
    the calls' operands, as it does without.

    Raises:
      shardcall.Error: a target without a rule (E101), rules and files as of sj.partitioner (E110,
        E141, E143).
      TypeError: a name that is no str.
    """
    names = options.names('names', names)
    targets = registry.targets_of(rules, plugins)
    for name in names:
        served_calls.check(targets, name)
    served_calls.installed.update(dict.fromkeys(names, targets))
    compiling.install()


def uninstall() -> None:
    """Leaves XLA without the rules."""
    served_calls.installed.clear()
