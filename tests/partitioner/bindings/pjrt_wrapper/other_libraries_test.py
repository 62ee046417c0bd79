#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What else a process has loaded is nothing to the plugin that wraps a plugin: libraries that
show everybody their own Abseil and protobuf, as TensorFlow does, and other allocators.
Environment as for under_jax_test.py, SHARDCALL_CC names a C compiler and SHARDCALL_ALLOCATOR
the library made of allocator.c."""
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framework  # noqa: E402

F = framework.from_arguments()
LOADER = os.environ['SHARDCALL_PJRT_LIBRARY']
WHOLE = os.path.join(os.path.dirname(LOADER), 'libshardcall_pjrt_whole.so')
STEP = '''
x = put(np.arange(64).reshape(8, 8), "x", None)
assert np.array_equal(jax.jit(lambda a: a @ a)(x), np.asarray(x) @ np.asarray(x))
'''


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def exports(library):
    return [line.split()[0].split('@')[0]
            for line in said('nm', '-D', '--defined-only', '-P', library)]


def needed(library):
    found = (re.match(r'\s*(\S+) => (/\S+)', line) for line in said('ldd', library))
    return {match[1]: match[2] for match in found if match}


def library_of_traps():
    """A library that exports what the Abseil and the protobuf of the plugin do. Whoever calls
    one of its functions crashes."""
    names = set()
    for name, path in needed(WHOLE).items():
        if re.match('lib(absl|protobuf)', name):
            names.update(exports(path))
    assert any('6google8protobuf' in name for name in names), needed(WHOLE)
    source = F.write('traps.s', '.text\n' + ''.join(
        f'.globl "{name}"\n"{name}":\n' for name in sorted(names)) +
        '.long 0\n.section .note.GNU-stack,"",%progbits\n')
    said(os.environ['SHARDCALL_CC'], '-shared', '-nostdlib', '-o', F.path('libtraps.so'), source)
    return F.path('libtraps.so')


class OtherLibraries(unittest.TestCase):
    def ok(self, code, head=True, **variables):
        status, out, err = F.python(code, head, **variables)
        self.assertEqual(status, 0, err[-3000:])
        return out

    def test_the_entry_is_all_that_others_see(self):
        self.assertEqual(exports(LOADER), ['GetPjrtApi'])
        self.assertEqual(exports(WHOLE), ['GetPjrtApi'])
        self.assertFalse([name for name in needed(LOADER) if 'absl' in name or 'protobuf' in name])

    def test_libraries_that_frameworks_bring_in_versions_of_their_own_are_not_loaded(self):
        self.assertFalse([name for name in needed(WHOLE) if re.match('lib(nccl|cuda|mpi)', name)])

    def test_libraries_that_show_an_abseil_and_a_protobuf_are_not_called(self):
        load = f'import ctypes\nctypes.CDLL({library_of_traps()!r}, ctypes.RTLD_GLOBAL)\n'
        for code in (load + F.HEAD + STEP, F.HEAD + load + STEP):
            self.ok(code, head=False)

    def test_where_another_allocator_is_loaded_memory_is_its_own(self):
        self.ok(STEP, LD_PRELOAD=os.environ['SHARDCALL_ALLOCATOR'])

    def test_the_whole_plugin_alone_is_a_plugin_as_well(self):
        self.ok(STEP, **framework.variables(WHOLE, F.plugin, F.folder.name))

    def test_a_plugin_that_is_to_wrap_itself_says_so(self):
        for library in (LOADER, WHOLE):
            status, _, err = F.python('', SHARDCALL_WRAPPED_PLUGIN=library)
            self.assertNotEqual(status, 0)
            self.assertIn('E333', err)
            self.assertIn('found this library', err)

    def test_without_the_whole_plugin_beside_it_the_error_says_what_is_missing(self):
        alone = shutil.copy(LOADER, F.path('libalone.so'))
        status, _, err = F.python('', **framework.variables(alone, F.plugin, F.folder.name))
        self.assertEqual(status, 1, err[-3000:])
        self.assertIn('E143', err)
        self.assertIn(F.path('libshardcall_pjrt_whole.so'), err)


if __name__ == '__main__':
    unittest.main()
