# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays as the compiled part has them: HLO's name of the type, dimensions, bytes."""
import numpy as np

from shardcall import _core
from shardcall.errors import Error

_PLAIN = {
    'pred': 'bool', 's8': 'int8', 's16': 'int16', 's32': 'int32', 's64': 'int64', 'u8': 'uint8',
    'u16': 'uint16', 'u32': 'uint32', 'u64': 'uint64', 'f16': 'float16', 'f32': 'float32',
    'f64': 'float64', 'c64': 'complex64', 'c128': 'complex128'}
# Types of the package ml_dtypes.
_NARROW = {
    'bf16': 'bfloat16', 's2': 'int2', 's4': 'int4', 'u2': 'uint2', 'u4': 'uint4',
    'f4e2m1fn': 'float4_e2m1fn', 'f8e3m4': 'float8_e3m4', 'f8e4m3': 'float8_e4m3',
    'f8e4m3b11fnuz': 'float8_e4m3b11fnuz', 'f8e4m3fn': 'float8_e4m3fn',
    'f8e4m3fnuz': 'float8_e4m3fnuz', 'f8e5m2': 'float8_e5m2', 'f8e5m2fnuz': 'float8_e5m2fnuz',
    'f8e8m0fnu': 'float8_e8m0fnu'}
_NAMES = {dtype: name for name, dtype in {**_PLAIN, **_NARROW}.items()}


def dtype_of(name):
    """NumPy's dtype of an element type such as 'f32'; those of ml_dtypes need that package."""
    if name in _PLAIN:
        return np.dtype(_PLAIN[name])
    if name in _NARROW:
        try:
            import ml_dtypes
        except ImportError as e:
            raise Error(f'arrays of {name} need the package ml_dtypes. Fix: pip install ml_dtypes',
                        'FAILED_PRECONDITION') from e
        return np.dtype(getattr(ml_dtypes, _NARROW[name]))
    raise Error(f'NumPy has no arrays of {name}. Fix: Convert the value in the program',
                'UNIMPLEMENTED')


def name_of(dtype):
    """The element type of NumPy's dtype."""
    name = _NAMES.get(np.dtype(dtype).name)
    if name is None:
        raise Error(f'E313 HLO has no arrays of {dtype}. Fix: Give numbers of another dtype')
    return name


def to_core(array):
    array = np.ascontiguousarray(array) if np.ndim(array) else np.array(array)
    array = array.astype(array.dtype.newbyteorder('='), copy=False)  # the bytes of this machine
    name = name_of(array.dtype)
    return _core.Array(name, list(array.shape), array.reshape(-1).view(np.uint8))


def to_numpy(described):
    name, dims, data = described
    if name == 'token':
        return None
    return data.view(dtype_of(name)).reshape(dims)


def given(inputs, leaves):
    """`inputs` (arrays, or anything that NumPy takes) as the program's leaves want them."""
    inputs = list(inputs)
    if len(inputs) != len(leaves):
        raise Error(f'E313 wrong number of inputs: expected {len(leaves)}, found {len(inputs)}. '
                    'Fix: Give one array for each flat leaf of the parameters')
    made = []
    for x, (name, dims) in zip(inputs, leaves):
        if name == 'token':
            made.append(_core.Array(name, [], np.zeros(0, np.uint8)))
        elif hasattr(x, 'dtype'):
            made.append(to_core(np.asarray(x)))
        else:  # numbers and lists have no element type
            made.append(to_core(np.asarray(x, dtype_of(name))))
    return made
