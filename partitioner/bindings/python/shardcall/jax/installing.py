# SPDX-License-Identifier: Apache-2.0
"""install: a target's rule for XLA's own partitioner."""
import threading
from typing import Optional

from shardcall import _core
from shardcall import arrays
from shardcall import partitioners
from shardcall import options
from shardcall import registry
from shardcall.jax import settings
from shardcall.errors import Error
from shardcall.jax import compat
from shardcall.jax.compat import ir
from shardcall.types import Paths, Rules

_lock = threading.RLock()
_installed = {}  # by target: the targets whose rule XLA uses for it
_told = set()  # targets of which JAX tells each plugin that it loads
_lowering = None  # JAX's lowering of ffi_call, while it is replaced by ours
_ours = None


class _Served:
    """A target's rule as the three functions that XLA asks, over jaxlib's objects. Calls in
    manual computations, and errors, are pjrt_serving.h's affair."""

    def __init__(self, targets, name):
        self._served = _core.Served(targets, name)

    @staticmethod
    def _bytes(shapes, shardings):
        return ([s.to_serialized_proto() for s in shapes],
                [None if s is None else partitioners.proto_of(s) for s in shardings])

    def propagate(self, sharding, shape, config):
        return partitioners.sharding_of(self._served.propagate(
            partitioners.proto_of(sharding), shape.to_serialized_proto(), config))

    def infer(self, shapes, shardings, result_shape, config):
        return partitioners.sharding_of(self._served.infer(
            *self._bytes(shapes, shardings), result_shape.to_serialized_proto(), config))

    def partition(self, shapes, shardings, result_shape, result_sharding, config):
        module, operands, result = self._served.partition(
            *self._bytes(shapes, shardings), result_shape.to_serialized_proto(),
            partitioners.proto_of(result_sharding), config)
        return (module, [partitioners.sharding_of(s) for s in operands],
                partitioners.sharding_of(result))


def install(*names: str, rules: Optional[Rules] = None, plugins: Paths = ()) -> None:
    """The rules of targets for XLA's own partitioner: under jax.jit, without sj.jit, calls of
    them are then sharded by their rules, on JAX's CPU client and on every PJRT plugin that is or
    will be loaded, under GSPMD and Shardy. Kernels are to be registered, as for any call.

        sj.target('my_norm', library.MyNorm, rule='... d, d -> ... d')
        sj.install('my_norm')

    Args:
      *names: the targets: of sj.target, of `rules` or `plugins`, or shipped ones.
      rules, plugins: as of sj.partitioner.

    What was compiled before stays as it is. XLA has no way to take a partitioner back: after
    sj.uninstall() it asks one that gathers all, as XLA itself does without.

    Raises:
      shardcall.Error: a target without a rule (E101), rules and files as of sj.partitioner (E110,
        E141, E143).
      TypeError: a name that is no str.
    """
    global _lowering, _ours
    names = options.names('names', names)
    targets = registry.targets_of(rules, plugins)
    served = {name: _Served(targets, name) for name in names}
    with _lock:
        for name, functions in served.items():
            partitioners.give_to_xla(name, functions)
            _installed[name] = targets
            if name in _told:
                _pass_to_plugins(name)
            else:
                _told.add(name)
                compat.register_plugin_callbacks(lambda c_api, n=name: _pass(n, c_api))
        if _lowering is None and _installed:
            _lowering = compat.ffi_call_lowering()
            _ours = _with_rule
            compat.set_ffi_call_lowering(_ours)


def uninstall() -> None:
    """Leaves XLA with partitioners that gather all, and JAX's lowering as it was."""
    global _lowering
    with _lock:
        for name in _installed:
            gathering = _installed[name] = _core.gathering_targets(name)
            partitioners.give_to_xla(name, _Served(gathering, name))
            _pass_to_plugins(name)
        _installed.clear()
        if _lowering is not None and compat.ffi_call_lowering() is _ours:
            compat.set_ffi_call_lowering(_lowering)
        _lowering = None


def _pass_to_plugins(name):
    """To those that are loaded."""
    for c_api in compat.c_apis().values():
        if c_api is not None:
            _pass(name, c_api)


def _pass(name, c_api):
    """Called for each plugin, when it is loaded."""
    targets = _installed.get(name)
    if targets is None:
        return
    try:
        _core.pass_rule_to_pjrt(targets, name, c_api)
    except Error as e:
        if e.status != 'UNIMPLEMENTED':  # the plugin takes no partitioners
            raise


def _with_rule(ctx, *operands, target_name, **params):
    """JAX's lowering of ffi_call, and Shardy's text of the rule on the call, which it
    propagates by."""
    results = _lowering(ctx, *operands, target_name=target_name, **params)
    targets = _installed.get(target_name)
    # Our own partitioner knows the rule itself, and more of it than the text has.
    if targets is None or not compat.use_shardy.value or settings.current() is not None:
        return results
    for op in {r.owner for r in results if isinstance(r, ir.Value)}:
        if op.name != 'stablehlo.custom_call' or 'sdy.sharding_rule' in op.attributes:
            continue
        given = op.attributes['mhlo.backend_config'] if 'mhlo.backend_config' in op.attributes \
            else ''
        text = _core.sdy_rule(targets, target_name, str(given), _types(ctx.avals_in),
                              _types(ctx.avals_out))
        if text:
            op.attributes['sdy.sharding_rule'] = ir.Attribute.parse(text)
    return results


def _types(avals):
    return [(arrays.name_of(a.dtype), list(a.shape)) for a in avals if hasattr(a, 'dtype')]
