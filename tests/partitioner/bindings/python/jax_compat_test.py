#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The versions of JAX that shardcall.jax works with: what this one has moved or changed of the
private names that the package uses, all at once. Exit status 77 without JAX."""
import os
import pathlib
import re
import subprocess
import sys
import unittest
import unittest.mock

os.environ.update({'NPROC': '16', 'JAX_NUM_CPU_DEVICES': '8'})
try:
    import jax
    import shardcall
    from shardcall.jax import compat
except ModuleNotFoundError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

IN_CPP = 'jax._src.lib:_jax.mlir.mlir_module_to_xla_computation'
SUM = """
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ('data',))
x = jax.device_put(np.arange(16.), NamedSharding(mesh, P('data')))
print('sum', sj.jit(lambda x: x.sum())(x))
"""


def of_python(*lines):
    """(the exit status, what is printed, what is printed as errors) of a program."""
    found = subprocess.run([sys.executable, '-c', '\n'.join(lines)], capture_output=True, text=True,
                           check=False)
    return found.returncode, found.stdout, found.stderr


def with_version(version):
    numbers = tuple(int(n) for n in version.split('.'))
    return f'import jax\njax.__version_info__, jax.__version__ = {numbers}, "{version}"'


class JaxCompatTest(unittest.TestCase):
    def test_this_version_has_every_private_name_as_it_is_used(self):
        wrong = [f'missing: {name}' for name in compat.missing()]
        wrong += [f'changed: {name}' for name in compat.changed()]
        self.assertEqual(wrong, [], f'in JAX {jax.__version__}')
        self.assertGreater(len(compat.NAMES), 50)

    def test_private_names_stand_in_one_module(self):
        package = pathlib.Path(shardcall.__file__).parent
        private = re.compile(r'jax\._src|from jax import _|import jaxlib|'
                             r'from jaxlib import (?!xla_client)|jaxlib\._[a-z]')
        found = {path.relative_to(package).as_posix() for path in package.rglob('*.py')
                 if private.search(path.read_text(encoding='utf-8'))}
        self.assertEqual(found, {'jax/compat.py'})

    def test_all_names_that_a_version_lacks_are_named_at_once(self):
        status, _, errors = of_python(
            with_version('0.14.1'), 'from jax._src import core, xla_bridge',
            'del core.auto_insert_reshard, xla_bridge._plugin_callbacks',
            'try: import shardcall.jax',
            'except ImportError as e: print(e.code, e.fix, sep="; ")', 'import shardcall.jax')
        self.assertEqual(status, 1)
        for text in ('E344', 'found 0.14.1 without', 'jax._src.core:auto_insert_reshard (',
                     'jax._src.xla_bridge:_plugin_callbacks ('):
            self.assertIn(text, errors)
        self.assertNotIn('jax._src.xla_bridge:backends', errors)

    def test_a_function_that_takes_other_parameters_is_named(self):
        def names(*given):
            return [compat.Private((place,), 'a test', takes) for place, takes in given]

        with unittest.mock.patch.object(compat, 'NAMES', names(
                ('jax._src.core:ManualAxisType', ('varying', 'wandering')),
                (IN_CPP, ('use_tuple_args', 'into')),
                ('jax._src.core:no_such_name', ('it',)))):
            self.assertEqual([c.split(' (')[0] for c in compat.changed()], [
                'jax._src.core:ManualAxisType takes no wandering',
                f'{IN_CPP} takes no into'])
            self.assertEqual(compat.missing(), ['jax._src.core:no_such_name (a test)'])

    def test_a_name_is_taken_from_the_place_that_the_version_has(self):
        places = ('jax._src.no_such_module:ir', 'jax._src.core:no_such_name',
                  'jax._src.lib.mlir:ir')
        with unittest.mock.patch.object(compat, 'NAMES', []):
            self.assertIs(compat._the(*places, use='a test'), compat.ir)
            self.assertEqual(compat.missing(), [])

    def test_types_that_are_registered_with_jax_alone_are_known(self):
        """Before shardcall.xla_client is imported and after, and once JAX has its client."""
        register = """
import ctypes, jax
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
numbers = []

def capsule(number):
    numbers.append(ctypes.c_int64(number))
    return new(ctypes.addressof(numbers[-1]), None, None)

def register(name):
    jax.ffi.register_ffi_type(name, {'type_id': capsule(0)})

register('early')
from shardcall import xla_client
from shardcall.errors import Error
register('late')
jax.devices()
register('last')
for name in ('early', 'late', 'last', 'new'):
    try:
        xla_client._core.register_type(name, capsule(77), None, 'cpu')
        print(name, 'is new')  # else it has another number
    except Error as e:
        print(name, e.code)
"""
        self.assertEqual(of_python(register), (
            0, 'early E141\nlate E141\nlast E141\nnew is new\n', ''))

    def test_an_older_jax_is_an_error_that_names_the_oldest(self):
        status, told, errors = of_python(
            with_version('0.6.2'), 'try: import shardcall.jax',
            'except ImportError as e: print(e.code, e.fix, sep="; ")', 'import shardcall.jax')
        self.assertEqual(status, 1)
        self.assertIn('E344; pip install "jax>=0.10.2"', told)
        self.assertIn('E344 JAX is too old for shardcall.jax: expected 0.10.2 or newer, '
                      'found 0.6.2', errors)

    def test_a_newer_jax_is_told_once_and_works(self):
        status, told, errors = of_python(
            with_version('0.99.0'), 'import shardcall.jax as sj, shardcall.jax.compat', SUM)
        self.assertEqual((status, told), (0, 'sum 120.0\n'), errors)
        self.assertEqual(errors.count('W207'), 1, errors)
        self.assertIn(f'expected 0.10.2 to {".".join(map(str, compat.NEWEST))}', errors)
        self.assertIn('<string>:', errors)  # the line that imports it
        # No version that would be told of again: 0.12.* has 0.12.1.
        self.assertIn(f'pip install "jax=={".".join(map(str, compat.NEWEST))}.*"', errors)


if __name__ == '__main__':
    unittest.main()
