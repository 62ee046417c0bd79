# SPDX-License-Identifier: Apache-2.0
"""Custom-call targets: rules given in Python, manifests, libraries."""
import dataclasses
import difflib
import functools
import json
import math
import os
from collections.abc import Mapping
from typing import Optional

import numpy as np

from shardcall import _core
from shardcall import telling
from shardcall.errors import Error, in_python
from shardcall.types import Paths, Rules


def _entries(rules):
    """((target, its entry in a manifest), ..)."""
    if not rules:
        return ()
    if not isinstance(rules, Mapping):
        raise Error(f'E141 rules are a {type(rules).__name__}: expected {{target: rule}}. '
                    "Fix: Write rules={'my_target': '... d -> ... d'}")
    return tuple((name, _entry(name, rule)) for name, rule in rules.items())


def _entry(name, rule):
    if not isinstance(name, str):
        raise Error(f'E141 a rule is for {name!r}, a {type(name).__name__}: expected the name of a '
                    "target, a str. Fix: Write rules={'my_target': '... d -> ... d'}")
    if isinstance(rule, str):
        rule = {'rule': rule}
    if isinstance(rule, (list, tuple)):
        rule = {'rules': list(rule)}
    if not isinstance(rule, Mapping):
        raise Error(f'E141 the rule of {name!r} is a {type(rule).__name__}: expected a string, '
                    "a dict with a manifest's keys, or a list of these. Fix: Write "
                    "'... d -> ... d', or {'rule': '... d -> ... d', 'need_replication': ['d']}")
    if rule.get('name', name) != name:
        raise Error(f'E141 the rule of {name!r} has another name, {rule["name"]!r}: expected none. '
                    'Fix: Leave "name" out, or give the rule to the target that is meant')
    try:
        return json.dumps({'name': name, **_spelled(rule)}, sort_keys=True, allow_nan=False,
                          default=_plain)
    except (TypeError, ValueError) as e:
        raise Error(f'E141 the rule of {name!r} has a value that JSON does not: {e}. Fix: Give '
                    'strings, finite numbers, lists and dicts; a pad may be an infinity or '
                    'NaN') from e


def _spelled(rule):
    """A rule whose pads that are no finite numbers are spelled as manifests have them: its own, and
    those of its vjp and of each of its rules."""
    def own(part):
        if not isinstance(part, Mapping):
            return part
        pad = part.get('pad')
        if not isinstance(pad, Mapping):
            return dict(part)
        return {**part, 'pad': {factor: _number(value) for factor, value in pad.items()}}

    out = own(rule)
    if 'vjp' in out:
        out['vjp'] = own(out['vjp'])
    if isinstance(out.get('rules'), (list, tuple)):
        out['rules'] = list(map(own, out['rules']))
    return out


def _number(value):
    if not isinstance(value, (float, np.floating)) or math.isfinite(value):
        return value
    return 'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'


def _plain(value):
    """A scalar of NumPy as JSON has it."""
    found = value.item() if isinstance(value, np.generic) else value
    if isinstance(found, (bool, int, float, str)):
        return found
    raise TypeError(f'{value!r} is a {type(value).__name__}')


def _listed(plugins):
    if isinstance(plugins, (str, os.PathLike)):
        plugins = (plugins,)
    return tuple(os.path.abspath(os.fspath(p)) for p in plugins)


_declared = {}  # from `declare`: the manifest entry of each target


def declare(name, rule):
    """A rule, as of `rules`, that all programs of the process know from then on. Another one of
    the target's takes its place, and is returned for `redeclare`. E110, E141 as of `rules`, and
    nothing is declared."""
    entry, before = _entry(name, rule), _declared.get(name)
    _declared[name] = entry
    try:
        targets_of(None, ())
    except BaseException:
        redeclare(name, before)
        raise
    return before


def redeclare(name, before):
    """Undoes a `declare` that returned `before`."""
    _declared.pop(name)
    if before is not None:
        _declared[name] = before


def declared(name):
    """What `declare` keeps of the target, or None."""
    return _declared.get(name)


def entry(key, name):
    """What `rules` of a key, or else `declare`, say of a target, with the keys of a manifest; {}
    where they say nothing."""
    found = dict(key[0]).get(name) or _declared.get(name)
    return {} if found is None else json.loads(found)


_called = set()  # targets whose rules compiled or traced programs went by


def note_called(names):
    """Notes that JAX's caches may have programs that went by the rules of targets."""
    _called.update(names)


def was_called(name, before):
    """Whether JAX's caches may have programs that went by what the target's entry `before`, or its
    present one, speaks of. Those are then to be cleared: nothing is noted any longer."""
    concerned = _targets_of(name, before) | _targets_of(name, declared(name))
    if not concerned & _called:
        return False
    _called.clear()
    return True


_used = set()  # the entries of `rules` whose targets some program has called


def unused(key, called):
    """The targets that `rules` has in a key, and that neither this program, which calls the
    targets `called`, nor one before has called, by themselves or by what follows from them."""
    out = []
    for name, entry in key[0]:
        if _targets_of(name, entry) & called:
            _used.add(entry)
        elif entry not in _used:
            out.append(name)
    return out


@functools.lru_cache(maxsize=256)
def _targets_of(name, entry):
    """The target of an entry of `rules`, or of one that says nothing, None, and those that its
    gradient and its vmap call."""
    made = {} if entry is None else json.loads(entry)
    derived = (made.get(part) for part in ('vjp', 'batching'))
    return frozenset({name, *(d['target'] for d in derived
                              if isinstance(d, dict) and 'target' in d)})


def tell_unused(names, program, called=frozenset()):
    """W206 for each of the targets `names`, which nothing of `program` calls."""
    for name in names:
        near = difflib.get_close_matches(name, called, 1)
        telling.once(f'W206 rules= has a rule for "{name}", which {program} does not call'
                     + (f'; it calls {near[0]}' if near else '')
                     + '. Fix: Correct the name, or leave the rule out', ('W206', name))


@functools.lru_cache(maxsize=64)
def _made(entries, plugins, stamps, registrations):
    manifest = f'{{"targets": [{", ".join(entries)}]}}'
    return _core.Targets(list(plugins), [manifest] if entries else [])


def _stamp(path):
    """Changes when a file does, so that one that was written anew is read anew."""
    try:
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size
    except OSError:
        return None  # reading it reports the error


def key_of(rules, plugins):
    """What tells targets apart: hashable, and equal for equal arguments."""
    plugins = _listed(plugins)
    return _entries(rules), plugins, tuple(_stamp(p) for p in plugins)


def key_over(base, rules=None, plugins=None):
    """The key `base`, with other rules or plugins in the place of its own; None: its own."""
    entries, files, stamps = base
    if rules is not None:
        entries = _entries(rules)
    if plugins is not None:
        _, files, stamps = key_of(None, plugins)
    return entries, files, stamps


def targets_of(rules, plugins):
    return made(key_of(rules, plugins))


def made(key):
    """The targets of a key, with what is registered for the process by now, and declared for
    other targets."""
    given, plugins, stamps = key
    return _made(tuple({**_declared, **dict(given)}.values()), plugins, stamps,
                 _core.registrations())


@dataclasses.dataclass(frozen=True)
class Target:
    """A custom-call target.

    Attributes:
      name: as calls have it.
      rules: how it shards: rule strings, or how it says it ('batch_dims', 'callbacks').
      platforms: those with a kernel, such as 'Host' and 'CUDA'.
      sources: where it comes from: 'built in', a manifest, a library, 'rules='.
    """
    name: str
    rules: tuple[str, ...]
    platforms: tuple[str, ...]
    sources: tuple[str, ...]


def targets(*, rules: Optional[Rules] = None, plugins: Paths = ()) -> dict[str, Target]:
    """All targets: the shipped ones and those of `rules` and `plugins`, as {name: Target}."""
    found = targets_of(rules, plugins).describe()
    return {name: Target(name, tuple(forms), tuple(platforms), tuple(map(in_python, sources)))
            for name, (forms, platforms, sources) in found.items()}
