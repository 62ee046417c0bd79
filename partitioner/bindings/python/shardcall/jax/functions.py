# SPDX-License-Identifier: Apache-2.0
"""jit, partitioner, explain, expect."""
import contextlib
import copy
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, Optional

import jax

from shardcall import _core
from shardcall import registry
from shardcall.jax import compat
from shardcall.jax import compiling
from shardcall.jax import settings as _settings
from shardcall.report import Report
from shardcall.types import Path, Paths, Rules, Targets

# So that JAX takes the caller's source line as that of a call.
compat.register_exclusion(__file__)


@contextlib.contextmanager
def partitioner(*, rules: Optional[Rules] = None, plugins: Paths = (),
                allow_replicate: Targets = (), max_reshard_bytes: int = 0,
                conflicts: str = 'cheapest', cost: str = '', max_memory: int = 0,
                search: str = '', strict_partial: bool = False, strict: bool = False,
                report: Path = '') -> Iterator[None]:
    """Within it, what jax.jit compiles for several devices is partitioned by shardcall.

        with sj.partitioner(rules={'my_norm': '... d, d -> ... d'}):
          loss, grads = jax.jit(jax.value_and_grad(loss_fn))(params, batch)

    Args:
      rules: how custom calls shard, as {target: rule}; a rule is a string, or a dict with the keys
        that a target of a manifest has, or a list of these, one for each signature of the target.
      plugins: paths of manifests and of libraries with rules and kernels.
      allow_replicate: targets without a rule that may be gathered, or ('all',).
      max_reshard_bytes: a limit of what one reshard may send per device (E210); 0: none.
      conflicts: as of `shardcall.partition` (E212).
      cost: the machine, as of `shardcall.partition` (E211).
      max_memory: the bytes that a device may need at its peak (E210); 0: no limit.
      search: for which programs shardings are chosen together by cost, as of
        `shardcall.partition` (E213); '': 'all', but 'none' on host devices without `cost`.
      strict_partial: as of `shardcall.partition`.
      strict: what cannot be taken over is an error, not a warning.
      report: a folder: each program that is compiled writes a page and JSON there. A
        folder that cannot be written is a warning (W209).

    Raises:
      shardcall.Error: a rule that does not parse (E110), a file that cannot be read (E143).
        Compiling raises what `shardcall.partition` does.
    """
    compiling.install()
    made = _settings.make(rules=rules, plugins=plugins, allow_replicate=allow_replicate,
                          max_reshard_bytes=max_reshard_bytes, conflicts=conflicts, cost=cost,
                          max_memory=max_memory, search=search, strict_partial=strict_partial,
                          strict=strict, report=report)
    outermost = contextlib.nullcontext()
    if _settings.current() is None:
        outermost = compiling.check_outermost(made, 'shardcall.jax.partitioner')
    with outermost, _settings.Scope(made) as scope:
        yield
    registry.tell_unused(sorted(scope.unused or ()), 'any program within shardcall.jax.partitioner')


# JAX makes the stages of a program itself, so that ours begin as copies of them.
def _staged(kind, stage, settings):
    made = copy.copy(stage)
    made.__class__ = kind
    made._wrapped, made._settings = stage, settings
    return made


class Lowered(jax.stages.Lowered):
    """jax.stages.Lowered, whose `compile` partitions by shardcall."""

    def compile(self, *args, **kwargs):
        with _settings.context(self._settings):
            return self._wrapped.compile(*args, **kwargs)


def staged(lowered, settings):
    """What jax.jit lowers, as a Lowered of ours with these settings."""
    return _staged(Lowered, lowered, settings)


class Traced(jax.stages.Traced):
    """jax.stages.Traced, whose `lower` gives a Lowered of ours."""

    def lower(self, *args, **kwargs):
        with _settings.context(self._settings):
            return _staged(Lowered, self._wrapped.lower(*args, **kwargs), self._settings)

    def __call__(self, *args, **kwargs):
        with _settings.context(self._settings):
            return self._wrapped(*args, **kwargs)


def _traced(settings, outer, function):
    """What is called for a function where JAX traces."""
    if isinstance(outer, _settings.Settings):
        return function
    outermost = compiling.check_outermost(settings, 'a function of shardcall.jax.jit')

    def within(*args, **kwargs):
        with outermost:
            return function(*args, **kwargs)

    return within


_core.set_dispatch(_settings.swap, _settings.restore, compat.trace_ctx, compat.eval_trace, _traced)


class Jitted(_core.Dispatch):
    """What jax.jit gives, compiled with shardcall's partitioner. Its call is that of
    _core.Dispatch, which sets the settings around JAX's."""

    def __init__(self, jitted, settings):
        super().__init__(jitted, settings)
        # Before the rest: the attributes of a function that calls another of `jit` come with it.
        functools.update_wrapper(self, jitted)
        self._wrapped, self._settings = jitted, settings
        self.__wrapped__ = getattr(jitted, '__wrapped__', jitted)  # the function without a jit

    def lower(self, *args, **kwargs):
        with _settings.context(self._settings):
            return _staged(Lowered, self._wrapped.lower(*args, **kwargs), self._settings)

    def trace(self, *args, **kwargs):
        with _settings.context(self._settings):
            return _staged(Traced, self._wrapped.trace(*args, **kwargs), self._settings)

    def eval_shape(self, *args, **kwargs):
        with _settings.context(self._settings):
            return self._wrapped.eval_shape(*args, **kwargs)

    def clear_cache(self):
        self._wrapped.clear_cache()

    def __get__(self, instance, owner=None):
        return self if instance is None else types.MethodType(self, instance)

    # As of any function, a copy is the function itself.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __getattr__(self, name):
        return getattr(self.__dict__['_wrapped'], name)

    def __repr__(self):
        return f'<shardcall.jax.jit of {self._wrapped!r}>'


def jit(fun: Optional[Callable] = None, *, rules: Optional[Rules] = None, plugins: Paths = (),
        allow_replicate: Targets = (), max_reshard_bytes: int = 0, conflicts: str = 'cheapest',
        cost: str = '', max_memory: int = 0, search: str = '', strict_partial: bool = False,
        strict: bool = False, report: Path = '', **options: Any) -> Any:
    """jax.jit with shardcall's partitioner.

        step = sj.jit(train_step, donate_argnums=0, rules={'my_norm': '... d, d -> ... d'})

    Args:
      fun: the function; None: a decorator is returned.
      rules, plugins, allow_replicate, max_reshard_bytes, conflicts, cost, max_memory, search,
        strict_partial, strict, report: as of `partitioner`.
      **options: those of jax.jit.

    Returns:
      The function, with `lower`, `trace` and the rest of what jax.jit gives.

    Raises:
      shardcall.Error: as of `partitioner`. A call raises what compiling does, such as a target
        without a rule (E101).

    The outermost jit decides: one that is called within a jax.jit is compiled with that. What
    jax.grad makes of it outside is compiled by XLA's: differentiate inside, or use `partitioner`.
    """
    ours = dict(rules=rules, plugins=plugins, allow_replicate=allow_replicate,
                max_reshard_bytes=max_reshard_bytes, conflicts=conflicts, cost=cost,
                max_memory=max_memory, search=search, strict_partial=strict_partial, strict=strict,
                report=report)
    if fun is None:
        return functools.partial(jit, **ours, **options)
    compiling.install()
    made = _settings.make(**ours)
    inner = _unbound(fun, (), {})[0]
    if isinstance(inner, Jitted):  # what is given here counts, else what it was given
        defaults = jit.__kwdefaults__
        made = _settings.changed(inner._settings, {
            name: value for name, value in ours.items() if value != defaults[name]})
    if isinstance(fun, Jitted):
        fun = fun._wrapped
    # A function that is jitted already keeps its own options.
    jitted = fun if _is_jitted(fun) and not options else jax.jit(fun, **options)
    return Jitted(jitted, made)


def _is_jitted(function):
    # A bound method has the attributes of its function, but these want its object.
    return hasattr(function, 'lower') and not isinstance(function, types.MethodType)


def _unbound(function, args, kwargs):
    """The function of a method or of a functools.partial, with all of its arguments."""
    while True:
        if isinstance(function, types.MethodType):
            function, args = function.__func__, (function.__self__, *args)
        elif isinstance(function, functools.partial):
            args, kwargs = (*function.args, *args), {**function.keywords, **kwargs}
            function = function.func
        else:
            return function, args, kwargs


def settings_of(function, given):
    """Those of a function of `jit`, else of the `partitioner` around, with what is `given`."""
    own = isinstance(function, (Jitted, Traced, Lowered))
    base = function._settings if own else _settings.current() or _settings.make()
    return _settings.changed(base, given)


def _program(function, args, kwargs, given):
    """What is partitioned of a call of the function, which is compiled and does not run."""
    unbound = _unbound(function, args, kwargs)
    if _is_jitted(unbound[0]):  # else JAX takes them as they are
        function, args, kwargs = unbound
    settings = settings_of(function, given)
    own = isinstance(function, (Jitted, Traced, Lowered))
    inner = function._wrapped if own else function
    if isinstance(inner, jax.stages.Compiled):
        raise TypeError('a Compiled has no program to partition any more: expected a function, or '
                        'what its `trace` or `lower` gives')
    if isinstance(inner, (jax.stages.Traced, jax.stages.Lowered)):
        if args or kwargs:
            raise TypeError(f'a {type(inner).__name__} has its arguments: expected no others')
        return compiling.partitioned(inner.lower if isinstance(inner, jax.stages.Traced)
                                     else lambda: inner, settings)
    jitted = inner if _is_jitted(inner) else jax.jit(inner)
    return compiling.partitioned(lambda: jitted.lower(*args, **kwargs), settings)


def explain(function: Callable, *args: Any, rules: Optional[Rules] = None,
            plugins: Optional[Paths] = None, allow_replicate: Optional[Targets] = None,
            max_reshard_bytes: Optional[int] = None, conflicts: Optional[str] = None,
            cost: Optional[str] = None, max_memory: Optional[int] = None,
            search: Optional[str] = None, strict_partial: Optional[bool] = None,
            **kwargs: Any) -> Report:
    """What the devices send when the function is called so, and why.

        print(sj.explain(step, params, batch))

    Args:
      function: of `jit`, of jax.jit, or a plain one; or what its `lower` gives.
      *args, **kwargs: as it is called; arrays or jax.ShapeDtypeStruct with shardings.
      rules, plugins, allow_replicate, max_reshard_bytes, conflicts, cost, max_memory, search,
        strict_partial: as of `partitioner`; None: those of the function of `jit`, else of the `partitioner` around.

    Returns:
      A shardcall.Report. Nothing runs and XLA compiles nothing.

    Raises:
      shardcall.Error: what compiling raises, such as a target without a rule (E101); E051 for a
        function on one device.
    """
    return Report(_program(function, args, kwargs, dict(
        rules=rules, plugins=plugins, allow_replicate=allow_replicate,
        max_reshard_bytes=max_reshard_bytes, conflicts=conflicts, cost=cost,
        max_memory=max_memory, search=search, strict_partial=strict_partial)))


def expect(function: Callable, *args: Any, contract: str, **kwargs: Any) -> None:
    """Raises shardcall.Error (E221) where the function's program breaks the contract, such as
    'all-gather=0, bytes<=1GiB', E220 where the contract cannot be read. The other arguments are
    those of `explain`, and so are the other errors."""
    explain(function, *args, **kwargs).expect(contract)
