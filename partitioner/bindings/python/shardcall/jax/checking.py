# SPDX-License-Identifier: Apache-2.0
"""check: a target's rule, and its gradient, proven by its kernel."""
import functools
from collections.abc import Callable, Mapping
from typing import Any, Optional

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning

from shardcall import programs
from shardcall import xla_client
from shardcall.errors import Error
from shardcall.jax import call_types
from shardcall.jax import functions
from shardcall.jax import settings as _settings
from shardcall.jax import sharded_check
from shardcall.types import Paths, Rules


def check(function: Callable, *example: Any, target: Optional[str] = None, vjp: bool = False,
          rules: Optional[Rules] = None, plugins: Optional[Paths] = None, seed: int = 0,
          deadline: float = 20.0, attributes: Optional[Mapping[str, Any]] = None,
          **keywords: Any) -> programs.RuleCheck:
    """Proves a target's rule with its kernel: every dimension that the rule lets be sharded is
    cut in 2, 3 and 4 parts, evenly and not, and what the parts give is held against the whole. The
    call is made as the program makes it: with its layouts, what is computed in place, its
    attributes and its side effects.

        assert sj.check(norm, x, scale)

    Args:
      function: of `target`, a custom_partitioning, or any function that calls one, also of `jit`.
      *example: arrays or jax.ShapeDtypeStruct as it is called with. None: the calls that the rule
        says.
      target: of a function that calls several, the one that is meant.
      vjp: its gradient is held against finite differences, too: that of a `vjp=` in Python on
        `example`, which must then be given.
      rules, plugins: as of `partitioner`; None: those of the function of `jit`, else of the
        `partitioner` around.
      seed, deadline: as of shardcall.check_rule.
      attributes: keywords of the call, of any names.
      **keywords: likewise, where the name is none of these.

    Returns:
      A shardcall.RuleCheck, which is true where the rule holds.

    Raises:
      shardcall.Error: E101 without a rule, E140 without a kernel for CPUs, E191 where the call
        must be said by an example, E118 for `vjp` of a target without one.
      TypeError: a keyword that is given twice.
    """
    attributes = _merged(attributes, keywords)
    if target is not None and not isinstance(target, str):
        raise Error(f'E101 target={target!r} is a {type(target).__name__}: expected the name of a '
                    'target. Fix: Say which is meant, or give an attribute of that name by '
                    'attributes={"target": ..}')
    name = target or getattr(function, 'name', '')
    if not name and isinstance(function, custom_partitioning):
        name = sharded_check.TARGET
    if not name:
        raise Error(f'E101 {function!r} is no target. Fix: Say which is meant, by target=')
    own = functions.settings_of(function, dict(rules=rules, plugins=plugins))
    function = getattr(function, '_wrapped', function)
    differentiated = vjp and callable(getattr(function, '_vjp', None))
    if differentiated and not example:
        raise Error(f'E191 the gradient of "{name}" is a function: expected a call of it. '
                    'Fix: Give an example of its operands')
    xla_client._take_from_jaxlib(name)
    options = dict(vjp=vjp and not differentiated, seed=seed, deadline=deadline)
    if not example:
        return programs.checked(own.targets, name, None, **options)
    called = functools.partial(function, **attributes)
    if name == sharded_check.TARGET:  # on one device it is lowered as the function itself
        return sharded_check.check(called, example, seed=seed, deadline=deadline)
    with _settings.context(own):
        # On one device and without a mesh: the check makes its own programs of the calls.
        lowered = jax.jit(called).lower(*map(call_types.plain, example))
    own_names = [n for n, given in (('target', target), ('vjp', vjp), ('seed', seed != 0),
                                    ('deadline', deadline != 20.0), ('rules', rules is not None),
                                    ('plugins', plugins is not None))
                 if given and n not in attributes]
    found = _found(own_names, name, functions.staged(lowered, own), options)
    if differentiated and found:
        return _with_gradient(found, function, example, seed, attributes)
    return found


def _found(own_names, name, lowered, options):
    """The check of a rule. Where the kernel takes no call, it may lack attributes that were meant
    by `own_names`, which are arguments of `check`."""
    try:
        return programs.check_rule(name, lowered, **options)
    except Error as e:
        message = str(e).rsplit('. Fix: ', 1)[0]
        if e.code != 'E190' or 'attribute' not in message or not own_names:
            raise
        given = ', '.join(f'"{n}": ..' for n in own_names)
        raise Error(f'{message}. Fix: If the handler has attributes of these names, which are '
                    f'arguments of sj.check, give them by attributes={{{given}}}', e.status) from e


def _merged(attributes, keywords):
    """The attributes of a call, which are given in two ways."""
    twice = sorted(set(attributes or ()) & set(keywords))
    if twice:
        raise TypeError(f'{", ".join(twice)} among attributes= and among the keywords: expected once')
    return {**(attributes or {}), **keywords}


def _with_gradient(found, function, example, seed, attributes):
    """The check of a rule, and of a gradient that is a Python function."""
    random = np.random.default_rng(seed)

    def drawn(x):
        if isinstance(x, jax.ShapeDtypeStruct):
            x = random.uniform(-1, 1, x.shape).astype(x.dtype)
        return np.asarray(x)

    operands = list(map(drawn, example))
    real = [k for k, x in enumerate(operands) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def of_real(*given):
        every = list(operands)
        for k, x in zip(real, given):
            every[k] = x
        return function(*every, **attributes)

    try:
        jax.test_util.check_grads(of_real, [operands[k] for k in real], order=1, modes=('rev',))
    except AssertionError as e:
        message = 'the gradient differs from finite differences: ' + ' '.join(str(e).split())
        return programs.RuleCheck('incorrect', '', found.untested,
                                  {**found.details, 'verdict': 'incorrect', 'vjp': message})
    return found
