# SPDX-License-Identifier: Apache-2.0
"""The calls of installed targets, as XLA's own partitioner meets them.

XLA asks a partitioner by the name of a call's target, and passes no layouts, aliases or side
effects of the call. So each form that calls of an installed target have gets a name of its own,
`TARGET@rule.` and a digest of the form, just before XLA compiles a program. The partitioner of that
name knows the form, and what it answers calls TARGET itself. XLA never has a partitioner of
TARGET: where calls keep their name, it does what it does without us.
"""
import hashlib
import threading

from shardcall import _core
from shardcall import partitioners
from shardcall.errors import Error
from shardcall.jax import compat
from shardcall.jax import conversion
from shardcall.jax.compat import ir

installed = {}  # by target: the targets whose rule XLA uses for its calls
_lock = threading.RLock()
_forms = {}  # by name of a form: _Form
_CALL = 'stablehlo.custom_call'
# What calls of one form have in common.
_FORM = ('api_version', 'has_side_effect', 'operand_layouts', 'result_layouts',
         'output_operand_aliases')


class _Form:
    """A target's rule for its calls of one form, as the three functions that XLA asks, over
    jaxlib's objects. Calls in manual computations, and errors, are pjrt_serving.h's affair.

    Attributes:
      targets: those with the rule.
      plugins: what the XLA of plugins has: {id of a plugin's table: targets}.
    """

    def __init__(self, targets, target, like):
        self._target, self._like = target, like  # a program that calls it, as bytecode
        self.plugins = {}
        self.set_targets(targets)

    def set_targets(self, targets):
        self.targets = targets
        self._served = _core.Served(targets, self._target, self._like)

    def side_effects(self):
        return self._served.side_effects

    def give_to_plugin(self, name, c_api):
        """Whether the plugin's XLA has the rule, by then."""
        if self.plugins.get(id(c_api)) is not self.targets:
            try:
                _core.pass_rule_to_pjrt(self.targets, self._target, self._like, name, c_api)
            except Error as e:
                if e.status != 'UNIMPLEMENTED':  # the plugin takes no partitioners
                    raise
                return False
            self.plugins[id(c_api)] = self.targets
        return True

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


def check(targets, name):
    """E101 of a target without a rule that XLA could ask for."""
    _core.Served(targets, name, b'')


def named(module, shardy, c_api):
    """The module, for the XLA of a plugin or, where `c_api` is None, of jaxlib, with the calls of
    installed targets by the names of their forms: a new one where there are any. For Shardy, which
    propagates by it, the calls have their rule as text, too."""
    code = compat.module_to_bytecode(module)
    if not any(name.encode() in code for name in list(installed)):
        return module
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(code)
        calls = []

        def find(op):
            if op.name == _CALL and _target_of(op) in installed:
                calls.append(op)
            return ir.WalkResult.ADVANCE

        copy.operation.walk(find)
        for op in calls:
            _serve(op, shardy, c_api)
    return copy if calls else module


def _target_of(op):
    return ir.StringAttr(op.attributes['call_target_name']).value


def _serve(op, shardy, c_api):
    """Gives the call the name of its form, and XLA the rule by that name. Where XLA takes no
    partitioners, the call stays as it is."""
    target = _target_of(op)
    with _lock:
        targets = installed.get(target)
        if targets is None:
            return
        like = _like(op)
        name = _name(op, target)
        form = _forms.get(name)
        if form is None:
            form = _forms[name] = _Form(targets, target, like)
        elif form.targets is not targets:
            form.set_targets(targets)
        if c_api is None:
            partitioners.give_to_xla(name, form, form.side_effects())
        elif not form.give_to_plugin(name, c_api):
            return
    if shardy and 'sdy.sharding_rule' not in op.attributes:
        rule = _core.sdy_rule(targets, target, like)
        if rule:
            op.attributes['sdy.sharding_rule'] = ir.Attribute.parse(rule)
    op.attributes['call_target_name'] = ir.StringAttr.get(name)


def _name(op, target):
    form = {name: str(op.attributes[name]) for name in _FORM if name in op.attributes}
    form['typed'] = 'mhlo.backend_config' in op.attributes
    digest = hashlib.sha256(repr(sorted(form.items())).encode()).hexdigest()[:16]
    return f'{target}@rule.{digest}'


def _like(op):
    """A program with one such call, as bytecode."""
    kept = (*_FORM, 'call_target_name', 'backend_config', 'mhlo.backend_config')
    attributes = ir.DictAttr.get({name: op.attributes[name] for name in kept
                                  if name in op.attributes})
    taken, given = [str(x.type) for x in op.operands], [str(r.type) for r in op.results]
    operands = ', '.join(f'%x{k}' for k in range(len(taken)))
    parameters = ', '.join(f'%x{k}: {t}' for k, t in enumerate(taken))
    made = f'%r:{len(given)} = ' if given else ''
    results = ', '.join(f'%r#{k}' for k in range(len(given)))
    types = f'({", ".join(given)})'
    end = f'return {results} : {", ".join(given)}' if given else 'return'
    return conversion.to_bytecode(ir.Module.parse(
        f'module {{ func.func @main({parameters}) -> {types} {{\n'
        f'{made}"{_CALL}"({operands}) {attributes} : ({", ".join(taken)}) -> {types}\n{end} }} }}'))
