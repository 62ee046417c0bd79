# SPDX-License-Identifier: Apache-2.0
"""What a function is compiled with: part of the keys of jax.jit's caches."""
import dataclasses
import os
import threading

import jax

from shardcall import _core
from shardcall import options
from shardcall import registry
from shardcall.jax import compat


@dataclasses.dataclass(frozen=True, eq=False)
class Settings:
    """Equal ones are one object: JAX hashes and compares it on every call."""
    targets: tuple  # keys from targets.key_of
    allow_replicate: tuple
    max_reshard_bytes: int
    conflicts: str
    cost: str
    max_memory: int
    search: str
    strict_partial: bool
    strict: bool
    report: str
    only_partition: bool = False  # compile nothing

    def searched(self, platform):
        """What is not said: what is compiled runs many times, so its plan is searched, whatever
        its size. But the plans of host devices are not searched by the costs of other machines,
        which compute much and send little."""
        if self.search:
            return self.search
        return 'none' if platform == 'cpu' and not self.cost else 'all'

    def to_partition_only(self):
        return _one_of(dataclasses.replace(self, only_partition=True, report=''))


_known = {}


def _one_of(settings):
    fields = tuple(getattr(settings, f.name) for f in dataclasses.fields(settings))
    return _known.setdefault(fields, settings)


def _checked(*, allow_replicate=(), max_reshard_bytes=0, conflicts='cheapest', cost='',
             max_memory=0, search='', strict_partial=False, strict=False, report=''):
    for name, value in (('conflicts', conflicts), ('cost', cost), ('search', search)):
        options.text(name, value)
    _core.check_options(conflicts, cost, search or 'small')
    return dict(allow_replicate=options.names('allow_replicate', allow_replicate),
                max_reshard_bytes=options.count('max_reshard_bytes', max_reshard_bytes),
                conflicts=conflicts, cost=cost,
                max_memory=options.count('max_memory', max_memory), search=search,
                strict_partial=bool(strict_partial), strict=bool(strict),
                report=os.fspath(report))


def _with_targets(settings):
    registry.made(settings.targets)  # rules that do not parse fail where they are written
    return _one_of(settings)


def make(*, rules=None, plugins=(), **others):
    return _with_targets(Settings(registry.key_of(rules, plugins), **_checked(**others)))


def changed(base, given):
    """`base` with what `given` has of `make`'s arguments, and is not None, in place of its own."""
    others = {name: value for name, value in given.items() if value is not None}
    targets = registry.key_over(base.targets, others.pop('rules', None),
                                others.pop('plugins', None))
    fields = _checked(**others)
    return _with_targets(dataclasses.replace(
        base, targets=targets, **{name: fields[name] for name in others}))


class _Scopes(threading.local):
    def __init__(self):
        self.entered = []


_scopes = _Scopes()


class Scope:
    """`with Scope(settings) as scope`: the settings of all programs that are compiled within.

    Attributes:
      unused: the rules that none of these programs has used; None before the first.
    """

    def __init__(self, settings):
        self.settings, self.unused = settings, None
        self._context = context(settings)

    def __enter__(self):
        self._context.__enter__()
        _scopes.entered.append(self)
        return self

    def __exit__(self, *raised):
        _scopes.entered.remove(self)
        return self._context.__exit__(*raised)


def note_unused(settings, unused):
    """Notes the rules that a program within a Scope does not use; False where it is in none."""
    for scope in _scopes.entered:
        if scope.settings.targets == settings.targets:
            scope.unused = set(unused) & (set(unused) if scope.unused is None else scope.unused)
            return True
    return False


context = jax.make_user_context(None)
# The effect of `with context(settings)` with fewer calls: swap returns the previous value.
swap, restore = compat.local_value(context)


def current():
    """The Settings of this thread, or None."""
    return context.value
