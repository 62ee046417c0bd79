# SPDX-License-Identifier: Apache-2.0
"""A custom call's partitioner in Python, asked by our partitioner and by XLA.

Callbacks get and give jaxlib's Shape and HloSharding where jaxlib is there, else those of
hlo_types."""
from shardcall import _core
from shardcall import hlo_types
from shardcall.errors import Error

try:
    from jaxlib import xla_client as jaxlib
except ImportError:
    jaxlib = None

HloSharding = (jaxlib or hlo_types).HloSharding


def shape_of(proto):
    if jaxlib is None:
        return hlo_types.Shape._of_proto(proto)
    return jaxlib.Shape(_core.shape_text(proto))


def sharding_of(proto):
    if proto is None:
        return None
    if jaxlib is None:
        return HloSharding._of(_core.sharding_of_proto(proto))
    message = jaxlib.OpSharding()
    message.ParseFromString(proto)
    return HloSharding.from_proto(message).v3_to_v2_sharding()


def proto_of(sharding):
    return sharding.to_proto().SerializeToString()


def to_hlo(code):
    """StableHLO that a partitioner made as a serialised HloModuleProto, by JAX. The kernels that it
    calls are known from now on."""
    from shardcall import xla_client
    from shardcall.jax import conversion
    xla_client._take_from_jaxlib(code)
    return conversion.bytecode_to_hlo(code)


class Callbacks:
    """The three functions of a target. What they raise is E121, what they give and is no answer
    E120."""

    def __init__(self, name, propagate, partition, infer):
        self._name = name
        self._propagate, self._partition, self._infer = propagate, partition, infer

    def _ask(self, which, function, *args):
        if not callable(function):
            raise self._no_answer(which, function, 'a function', 'it')
        try:
            return function(*args)
        except Exception as e:
            raise Error(f'E121 {which} of "{self._name}" raised {type(e).__name__}: {e}. Fix: See '
                        'what it says', 'INTERNAL') from e

    def _no_answer(self, which, found, expected, what='its answer'):
        found = 'None' if found is None else f'a {type(found).__name__}'
        return Error(f'E120 {which} of "{self._name}" breaks its contract: {what} is {found}, '
                     f'expected {expected}. Fix: Return {expected}')

    def _sharding(self, which, found, shape=None):
        if not isinstance(found, HloSharding):
            raise self._no_answer(which, found, f'{HloSharding.__module__}.HloSharding')
        leaves = found.tuple_elements()
        if leaves and shape is not None and len(leaves) != shape.leaf_count():
            raise Error(f'E120 {which} of "{self._name}" breaks its contract: {len(leaves)} '
                        f'shardings for {shape}. Fix: Return one for each leaf')
        return found

    def partition(self, shapes, shardings, result_shape, result_sharding, config):
        which = 'partition'
        made = self._ask(which, self._partition, shapes, shardings, result_shape, result_sharding,
                         config)
        if not isinstance(made, (tuple, list)) or len(made) != 3:
            raise self._no_answer(which, made, '(module, operand shardings, result sharding)')
        module, operands, result = made
        if isinstance(module, (str, bytearray, memoryview)):
            module = module.encode() if isinstance(module, str) else bytes(module)
        if not isinstance(module, bytes):
            raise self._no_answer(which, module, 'bytes', 'the module')
        if not isinstance(operands, (tuple, list)) or len(operands) != len(shapes):
            raise self._no_answer(which, operands, f'a list of {len(shapes)} shardings',
                                  'what it says of the operands')
        return (module, [self._sharding(which, s) for s in operands],
                self._sharding(which, result, result_shape))

    def infer(self, shapes, shardings, result_shape, config):
        made = self._ask('infer_sharding_from_operands', self._infer, shapes, shardings,
                         result_shape, config)
        if made is None:
            return None
        return self._sharding('infer_sharding_from_operands', made, result_shape)

    def propagate(self, sharding, shape, config):
        made = self._ask('prop_user_sharding', self._propagate, sharding, shape, config)
        return self._sharding('prop_user_sharding', made, shape)


def _is_manual(sharding):
    if sharding is None:
        return False
    return sharding.is_manual() or any(map(_is_manual, sharding.tuple_elements()))


def _whole(sharding):
    """Of the same form, with every leaf on all devices."""
    if sharding is None:
        return None
    leaves = sharding.tuple_elements()
    if leaves and not sharding.is_manual():
        return HloSharding.from_string('{' + ', '.join(['{replicated}'] * len(leaves)) + '}')
    return HloSharding.from_string('{replicated}')


class ForXla:
    """Callbacks as XLA may ask them. An error of the first two would end its process: `partition`
    reports it. Of calls in a manual computation, which are of shards already, XLA asks, too:
    those are computed as they stand."""

    def __init__(self, callbacks):
        self._asked = callbacks
        self._failed = None

    def _or(self, otherwise, function, *args):
        try:
            return function(*args)
        except Error as e:
            self._failed = e
            return otherwise

    def propagate(self, sharding, shape, config):
        if _is_manual(sharding):
            return sharding
        return self._or(sharding, self._asked.propagate, sharding, shape, config)

    def infer(self, shapes, shardings, result_shape, config):
        for sharding in filter(_is_manual, shardings):
            return sharding
        return self._or(None, self._asked.infer, shapes, shardings, result_shape, config)

    def partition(self, shapes, shardings, result_shape, result_sharding, config):
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        if not _is_manual(result_sharding):
            module, operands, result = self._asked.partition(
                shapes, shardings, result_shape, result_sharding, config)
            return _core.to_stablehlo(module), operands, result
        module, _, _ = self._asked.partition(shapes, list(map(_whole, shardings)), result_shape,
                                             _whole(result_sharding), config)
        return _core.to_stablehlo(module), shardings, result_sharding


def over_bytes(callbacks):
    """(partition, infer, propagate) on serialised shapes and shardings, for the compiled part."""
    def partition(shapes, shardings, result_shape, result_sharding, config):
        module, operands, result = callbacks.partition(
            list(map(shape_of, shapes)), list(map(sharding_of, shardings)),
            shape_of(result_shape), sharding_of(result_sharding), config)
        return module, list(map(proto_of, operands)), proto_of(result)

    def infer(shapes, shardings, result_shape, config):
        made = callbacks.infer(list(map(shape_of, shapes)), list(map(sharding_of, shardings)),
                               shape_of(result_shape), config)
        return None if made is None else proto_of(made)

    def propagate(sharding, shape, config):
        return proto_of(callbacks.propagate(sharding_of(sharding), shape_of(shape), config))

    return partition, infer, propagate


def known_to_xla():
    """The targets for whose calls XLA in JAX asks a partitioner."""
    return sorted({*_in_xla, *_core.partitioned_targets()})


_in_xla = {}  # by target: the partitioner that XLA in JAX uses now


def give_to_xla(name, callbacks, side_effects=False):
    """Registers `propagate`, `partition` and `infer` with XLA in JAX, whose first registration of
    a name stays: later ones take its place here."""
    known = name in _in_xla
    _in_xla[name] = callbacks
    if not known:
        jaxlib.register_custom_call_partitioner(
            name, lambda *args: _in_xla[name].propagate(*args),
            lambda *args: _in_xla[name].partition(*args),
            lambda *args: _in_xla[name].infer(*args), side_effects)
