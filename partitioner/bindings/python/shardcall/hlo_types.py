# SPDX-License-Identifier: Apache-2.0
"""Shapes and shardings, with the methods of jaxlib's: for where jaxlib is not there."""
import enum

import numpy as np

from shardcall import _core
from shardcall import arrays
from shardcall.errors import Error


# The names of these two in jaxlib.
_NAMES = {'invalid': 'PRIMITIVE_TYPE_INVALID', 'opaque': 'OPAQUE_TYPE'}
PrimitiveType = enum.IntEnum('PrimitiveType', {
    _NAMES.get(name, name.upper()): number for name, number in _core.element_types().items()})


def _misuse(what, fix):
    return Error(f'E120 {what}. Fix: {fix}')


class Shape:
    """An array's type and dimensions, or a tuple of shapes: Shape('f32[16,32]{1,0}').

    Raises:
      Error: text that is no shape (E0xx); a question that the shape has no answer to (E120).
    """

    def __init__(self, text):
        self._take(_core.shape_of_text(text))

    def _take(self, described):
        self._type, self._dims, self._dynamic, self._layout, elements = described
        self._elements = [Shape._of(e) for e in elements]

    @classmethod
    def _of(cls, described):
        made = cls.__new__(cls)
        made._take(described)
        return made

    @staticmethod
    def _of_proto(proto):
        return Shape._of(_core.shape_of_proto(proto))

    @staticmethod
    def array_shape(type, dims, layout=None, dynamic_dimensions=None):
        if isinstance(type, PrimitiveType):
            name = type.name.lower()
        else:
            name = arrays.name_of(type)
        dims = tuple(int(d) for d in dims)
        dynamic = tuple(dynamic_dimensions or (False,) * len(dims))
        layout = tuple(layout) if layout is not None else tuple(range(len(dims)))[::-1]
        return Shape(str(Shape._of((name, dims, dynamic, layout, ()))))

    @staticmethod
    def scalar_shape(type):
        return Shape.array_shape(type, ())

    @staticmethod
    def token_shape():
        return Shape('token[]')

    @staticmethod
    def tuple_shape(shapes):
        return Shape(f'({", ".join(map(str, shapes))})')

    def is_tuple(self):
        return self._type == 'tuple'

    def is_token(self):
        return self._type == 'token'

    def is_array(self):
        return self._type not in ('tuple', 'token', 'opaque')

    def tuple_shapes(self):
        if not self.is_tuple():
            raise _misuse(f'{self} is no tuple', 'Ask is_tuple() first')
        return list(self._elements)

    def leaf_count(self):
        return sum(e.leaf_count() for e in self._elements) if self.is_tuple() else 1

    def xla_element_type(self):
        return PrimitiveType[_NAMES.get(self._type, self._type.upper())]

    def element_type(self):
        if not self.is_array():
            raise _misuse(f'{self} has no element type', 'Ask is_array() first')
        return arrays.dtype_of(self._type)

    def numpy_dtype(self):
        return self.element_type() if self.is_array() else np.dtype('O')

    def dimensions(self):
        if not self.is_array():
            raise _misuse(f'{self} has no dimensions', 'Ask is_array() first')
        return tuple(self._dims)

    def rank(self):
        return len(self.dimensions())

    def is_static(self):
        return not self.is_dynamic()

    def is_dynamic(self):
        return any(self._dynamic) or any(e.is_dynamic() for e in self._elements)

    def is_dynamic_dimension(self, dimension):
        return bool(self._dynamic[dimension])

    def layout(self):
        """Minor to major; None: the shape has none."""
        return self._layout

    def with_major_to_minor_layout_if_absent(self):
        if self.is_tuple():
            return Shape.tuple_shape(
                [e.with_major_to_minor_layout_if_absent() for e in self._elements])
        layout = self._layout if self._layout is not None else range(len(self._dims))[::-1]
        return Shape._of((self._type, self._dims, self._dynamic, tuple(layout), ()))

    def to_serialized_proto(self):
        return _core.shape_proto(str(self))

    def __str__(self):
        if self.is_tuple():
            return f'({", ".join(map(str, self._elements))})'
        dims = ','.join(f'<={d}' if dynamic else str(d)
                        for d, dynamic in zip(self._dims, self._dynamic))
        layout = ''
        if self._layout:
            layout = '{' + ','.join(map(str, self._layout)) + '}'
        return f'{self._type}[{dims}]{layout}'

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, Shape) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


class _Type(enum.IntEnum):
    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6


class OpSharding:
    """The message: of a tiled one its dimensions, and the devices as a list or as an iota."""
    Type = _Type

    def __init__(self):
        self.type = _Type.REPLICATED
        self.tile_assignment_dimensions = []
        self.tile_assignment_devices = []
        self.iota_reshape_dims = []
        self.iota_transpose_perm = []
        self.last_tile_dims = []
        self.replicate_on_last_tile_dim = False
        self.tuple_shardings = []

    def clone(self):
        copy = OpSharding()
        copy.ParseFromString(self.SerializeToString())
        return copy

    def ParseFromString(self, data):
        self.__dict__.update(HloSharding._of(_core.sharding_of_proto(data)).to_proto().__dict__)

    def SerializeToString(self):
        return _core.sharding_proto(str(HloSharding.from_proto(self)))


def _listed(numbers):
    return ','.join(str(int(n)) for n in numbers)


def _tiled(dims, devices, subgroup_types=()):
    last = ', '.join(_Type(t).name.lower() for t in subgroup_types)
    last = f' last_tile_dims={{{last}}}' if last else ''
    return HloSharding.from_string(f'{{devices=[{_listed(dims)}]{devices}{last}}}')


class HloSharding:
    """How a value lies on the devices: HloSharding.from_string('{devices=[2,1]<=[2]}').

    Raises:
      Error: text that is no sharding (E161), a rank that does not fit (E120).
    """

    @classmethod
    def _of(cls, described):
        made = cls.__new__(cls)
        (made._text, made._kind, made._device, made._tile, made._subgroups, made._list,
         made._reshape, made._perm, elements) = described
        made._elements = [cls._of(e) for e in elements]
        return made

    @staticmethod
    def from_string(text):
        return HloSharding._of(_core.sharding_of_text(text))

    @staticmethod
    def from_proto(proto):
        if proto.type == _Type.TUPLE:
            inner = ', '.join(str(HloSharding.from_proto(p)) for p in proto.tuple_shardings)
            return HloSharding.from_string(f'{{{inner}}}')
        if proto.type == _Type.MAXIMAL:
            return HloSharding.from_string(f'{{maximal device={proto.tile_assignment_devices[0]}}}')
        if proto.type != _Type.OTHER:
            return HloSharding.from_string(f'{{{_Type(proto.type).name.lower()}}}')
        types = list(proto.last_tile_dims)
        if proto.replicate_on_last_tile_dim:
            types = [_Type.REPLICATED]
        devices = _listed(proto.tile_assignment_devices)
        if proto.iota_reshape_dims:
            devices = f'<=[{_listed(proto.iota_reshape_dims)}]'
            if len(proto.iota_transpose_perm) > 1:
                devices += f'T({_listed(proto.iota_transpose_perm)})'
        return _tiled(proto.tile_assignment_dimensions, devices, types)

    @staticmethod
    def replicate():
        return HloSharding.from_string('{replicated}')

    @staticmethod
    def manual():
        return HloSharding.from_string('{manual}')

    @staticmethod
    def unknown():
        return HloSharding.from_string('{unknown}')

    @staticmethod
    def unreduced():
        return HloSharding.from_string('{unreduced}')

    @staticmethod
    def iota_tile(dims, reshape_dims=(), transpose_perm=(), subgroup_types=()):
        count = 1
        for d in dims:
            count *= int(d)
        devices = f'<=[{_listed(reshape_dims or [count])}]'
        if len(transpose_perm) > 1:
            devices += f'T({_listed(transpose_perm)})'
        return _tiled(dims, devices, subgroup_types)

    @staticmethod
    def subgroup_with_device_ordering(tile_assignment, subgroup_types=()):
        return _tiled(tile_assignment.shape, _listed(tile_assignment.reshape(-1)), subgroup_types)

    @staticmethod
    def tuple_sharding(shape, shardings):
        shardings = list(shardings)
        if not shape.is_tuple() or shape.leaf_count() != len(shardings):
            raise _misuse(f'{len(shardings)} shardings for {shape}', 'Give one for each leaf')
        return HloSharding.from_string(f'{{{", ".join(map(str, shardings))}}}')

    def is_replicated(self):
        return self._all('replicated')

    def is_manual(self):
        return self._all('manual')

    def is_unknown(self):
        return self._all('unknown')

    def is_unreduced(self):
        return self._all('unreduced')

    def is_maximal(self):
        return self._kind in ('maximal', 'replicated')

    def is_tiled(self):
        return self._kind in ('tiled', 'tuple')

    def _all(self, kind):
        if self._kind == 'tuple':
            return all(e._all(kind) for e in self._elements)
        return self._kind == kind

    def is_tile_assignment_iota(self):
        return self._kind == 'tiled' and not self._list

    def replicate_on_last_tile_dim(self):
        return self._kind == 'tiled' and tuple(self._subgroups) == ('replicated',)

    def subgroup_types(self):
        if self.replicate_on_last_tile_dim():
            return []
        return [_Type[name.upper()] for name in self._subgroups]

    def num_dimensions(self):
        return len(self.tile_assignment_dimensions())

    def num_devices(self):
        return len(self.tile_assignment_devices())

    def tile_assignment_dimensions(self):
        if self._kind == 'tiled':
            return list(self._tile)
        return [1] if self._kind == 'maximal' else [0]

    def tile_assignment_devices(self):
        if self._kind == 'maximal':
            return [self._device]
        if self._kind != 'tiled':
            return []
        if self._list:
            return list(self._list)
        numbers = np.arange(np.prod(self._reshape)).reshape(self._reshape)
        return numbers.transpose(self._perm or None).reshape(-1).tolist()

    def tuple_elements(self):
        return list(self._elements)

    def tile(self, shape):
        """The shape of a shard."""
        if self._kind == 'tuple' or not shape.is_array():
            raise _misuse(f'{self} tiles no {shape}', 'Give the sharding and shape of an array')
        if self._kind != 'tiled':
            return shape
        if len(self._tile) - len(self._subgroups) != shape.rank():
            raise _misuse(f'{self} does not fit {shape}', 'Give a sharding of as many dimensions')
        dims = tuple(-(-d // n) for d, n in zip(shape._dims, self._tile))
        return Shape._of((shape._type, dims, shape._dynamic, shape._layout, ()))

    def to_proto(self):
        proto = OpSharding()
        proto.type = {'tiled': _Type.OTHER}.get(self._kind) or _Type[self._kind.upper()]
        if self._kind == 'tuple':
            proto.tuple_shardings = [e.to_proto() for e in self._elements]
        if self._kind in ('tiled', 'maximal'):
            proto.tile_assignment_dimensions = self.tile_assignment_dimensions()
            if self.is_tile_assignment_iota():
                proto.iota_reshape_dims = list(self._reshape)
                proto.iota_transpose_perm = list(self._perm or range(len(self._reshape)))
            else:
                proto.tile_assignment_devices = self.tile_assignment_devices()
            proto.replicate_on_last_tile_dim = self.replicate_on_last_tile_dim()
            proto.last_tile_dims = self.subgroup_types()
        return proto

    def v3_to_v2_sharding(self):
        return self  # read as tiles

    def __str__(self):
        return self._text

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, HloSharding) and self._text == other._text

    def __hash__(self):
        return hash(self._text)
