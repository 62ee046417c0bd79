# SPDX-License-Identifier: Apache-2.0
"""jit, partitioner, explain, expect."""
import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Optional

import jax
from jax._src import core

from shardcall import _core
from shardcall.jax import compiling
from shardcall.jax import settings as _settings
from shardcall.report import Report
from shardcall.types import Path, Paths, Rules, Targets


@contextlib.contextmanager
def partitioner(*, rules: Optional[Rules] = None, plugins: Paths = (),
                allow_replicate: Targets = (), max_reshard_bytes: int = 0, strict: bool = False,
                report: Path = '') -> Iterator[None]:
    """Within it, what jax.jit compiles for several devices is partitioned by shardcall.

        with sj.partitioner(rules={'my_norm': '... d, d -> ... d'}):
          loss, grads = jax.jit(jax.value_and_grad(loss_fn))(params, batch)

    Args:
      rules: how custom calls shard, as {target: rule}; a rule is a string, or a dict with the keys
        that a target of a manifest has.
      plugins: paths of manifests and of libraries with rules and kernels.
      allow_replicate: targets without a rule that may be gathered, or ('all',).
      max_reshard_bytes: a limit of what one reshard may send per device (E210); 0: none.
      strict: what cannot be taken over is an error, not a warning.
      report: a folder: each program that is compiled writes a page and JSON there.

    Raises:
      shardcall.Error: a rule that does not parse (E110), a file that cannot be read (E143).
        Compiling raises what `shardcall.partition` does.
    """
    compiling.install()
    made = _settings.make(rules=rules, plugins=plugins, allow_replicate=allow_replicate,
                          max_reshard_bytes=max_reshard_bytes, strict=strict, report=report)
    with _settings.context(made):
        yield


class Lowered:
    """jax.stages.Lowered, whose `compile` partitions by shardcall."""

    def __init__(self, lowered, settings):
        self._lowered, self._settings = lowered, settings

    def compile(self, *args, **kwargs):
        with _settings.context(self._settings):
            return self._lowered.compile(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._lowered, name)


class Traced:
    """jax.stages.Traced, whose `lower` gives a Lowered of ours."""

    def __init__(self, traced, settings):
        self._traced, self._settings = traced, settings

    def lower(self, *args, **kwargs):
        with _settings.context(self._settings):
            return Lowered(self._traced.lower(*args, **kwargs), self._settings)

    def __getattr__(self, name):
        return getattr(self._traced, name)


def _traced(settings, outer):
    """A function is called where JAX traces."""
    if not isinstance(outer, _settings.Settings):
        compiling.check_outermost(settings)


_core.set_dispatch(_settings.swap, _settings.restore, core.trace_ctx, core.eval_trace, _traced)


class Jitted(_core.Dispatch):
    """What jax.jit gives, compiled with shardcall's partitioner. Its call is that of _core.Dispatch,
    which sets the settings around JAX's."""

    def __init__(self, jitted, settings):
        super().__init__(jitted, settings)
        self._jitted, self._settings = jitted, settings
        functools.update_wrapper(self, jitted)

    def lower(self, *args, **kwargs):
        with _settings.context(self._settings):
            return Lowered(self._jitted.lower(*args, **kwargs), self._settings)

    def trace(self, *args, **kwargs):
        with _settings.context(self._settings):
            return Traced(self._jitted.trace(*args, **kwargs), self._settings)

    def eval_shape(self, *args, **kwargs):
        return self._jitted.eval_shape(*args, **kwargs)

    def clear_cache(self):
        self._jitted.clear_cache()

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name):
        return getattr(self.__dict__['_jitted'], name)

    def __repr__(self):
        return f'<shardcall.jax.jit of {self._jitted!r}>'


def jit(fun: Optional[Callable] = None, *, rules: Optional[Rules] = None, plugins: Paths = (),
        allow_replicate: Targets = (), max_reshard_bytes: int = 0, strict: bool = False,
        report: Path = '', **options: Any) -> Any:
    """jax.jit with shardcall's partitioner.

        step = sj.jit(train_step, donate_argnums=0, rules={'my_norm': '... d, d -> ... d'})

    Args:
      fun: the function; None: a decorator is returned.
      rules, plugins, allow_replicate, max_reshard_bytes, strict, report: as of `partitioner`.
      **options: those of jax.jit.

    Returns:
      The function, with `lower`, `trace` and the rest of what jax.jit gives.

    The outermost jit decides: one that is called within a jax.jit is compiled with that. What
    jax.grad makes of it outside is compiled by XLA's: differentiate inside, or use `partitioner`.
    """
    ours = dict(rules=rules, plugins=plugins, allow_replicate=allow_replicate,
                max_reshard_bytes=max_reshard_bytes, strict=strict, report=report)
    if fun is None:
        return functools.partial(jit, **ours, **options)
    compiling.install()
    if isinstance(fun, Jitted):
        fun = fun._jitted
    made = _settings.make(**ours)
    # A function that is jitted already keeps its own options.
    jitted = fun if hasattr(fun, 'lower') and not options else jax.jit(fun, **options)
    return Jitted(jitted, made)


def _program(function, args, kwargs, ours):
    """What is partitioned of a call of the function, which is compiled and does not run."""
    if isinstance(function, Jitted) and not ours:
        settings = function._settings
    else:
        settings = _settings.make(**ours)
    jitted = function._jitted if isinstance(function, Jitted) else function
    if not hasattr(jitted, 'lower'):
        jitted = jax.jit(jitted)
    return compiling.partitioned(jitted, args, kwargs, settings)


def explain(function: Callable, *args: Any, rules: Optional[Rules] = None,
            plugins: Optional[Paths] = None, allow_replicate: Optional[Targets] = None,
            max_reshard_bytes: Optional[int] = None, **kwargs: Any) -> Report:
    """What the devices send when the function is called so, and why.

        print(sj.explain(step, params, batch))

    Args:
      function: of `jit`, of jax.jit, or a plain one.
      *args, **kwargs: as it is called; arrays or jax.ShapeDtypeStruct with shardings.
      rules, plugins, allow_replicate, max_reshard_bytes: as of `partitioner`; None: those of the
        function.

    Returns:
      A shardcall.Report. Nothing runs and XLA compiles nothing.
    """
    given = dict(rules=rules, plugins=plugins, allow_replicate=allow_replicate,
                 max_reshard_bytes=max_reshard_bytes)
    ours = {k: v for k, v in given.items() if v is not None}
    return Report(_program(function, args, kwargs, ours))


def expect(function: Callable, *args: Any, contract: str, **kwargs: Any) -> None:
    """Raises shardcall.Error (E221) where the function's program breaks the contract, such as
    'all-gather=0, bytes<=1GiB'. The other arguments are those of `explain`."""
    explain(function, *args, **kwargs).expect(contract)
