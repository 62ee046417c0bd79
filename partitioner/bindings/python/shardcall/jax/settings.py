# SPDX-License-Identifier: Apache-2.0
"""What a function is compiled with: part of the keys of jax.jit's caches."""
import dataclasses
import os

import jax

from shardcall import registry


@dataclasses.dataclass(frozen=True, eq=False)
class Settings:
    """Equal ones are one object: JAX hashes and compares it on every call."""
    targets: tuple  # keys from targets.key_of
    allow_replicate: tuple
    max_reshard_bytes: int
    strict: bool
    report: str
    only_partition: bool = False  # compile nothing

    def to_partition_only(self):
        return _one_of(dataclasses.replace(self, only_partition=True, report=''))


_known = {}


def _one_of(settings):
    fields = tuple(getattr(settings, f.name) for f in dataclasses.fields(settings))
    return _known.setdefault(fields, settings)


def make(*, rules=None, plugins=(), allow_replicate=(), max_reshard_bytes=0, strict=False,
         report=''):
    if isinstance(allow_replicate, str):
        allow_replicate = (allow_replicate,)
    settings = _one_of(Settings(
        registry.key_of(rules, plugins), tuple(allow_replicate), int(max_reshard_bytes),
        bool(strict), os.fspath(report)))
    registry.made(settings.targets)  # rules that do not parse fail where they are written
    return settings


context = jax.make_user_context(None)
# The effect of `with context(settings)` with fewer calls: swap returns the previous value.
swap, restore = context._obj.swap_local, context._obj.set_local


def current():
    """The Settings of this thread, or None."""
    return context.value
