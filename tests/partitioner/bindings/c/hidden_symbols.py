#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Libraries that register themselves, in a process that shows libshardcall.so to nobody, as
one does that opened it for itself.

    hidden_symbols.py libshardcall.so PLUGINS

PLUGINS is the folder of the tests' plugins. In processes of their own:
  a library that registers itself, and one of untyped functions, load, and run
  a runtime that is there for all, and one that is loaded later, keep their own
  nothing of ours is shown but the functions that libraries need
"""
import ctypes
import os
import subprocess
import sys

OURS = b'XLA_FFI_GetApi'


class Shardcall:
    def __init__(self, path):
        self.c = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        for name in ('Shardcall_Error_Text', 'Shardcall_Registry_Create', 'Shardcall_LoadPlugin',
                     'Shardcall_DescribeTargets'):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.c.Shardcall_Text_Data.restype = ctypes.c_char_p
        self.registry = ctypes.c_void_p()
        assert not self.c.Shardcall_Registry_Create(ctypes.byref(self.registry))

    def load(self, path):
        """What is wrong; '' if nothing is."""
        error = self.c.Shardcall_LoadPlugin(self.registry, path.encode())
        if not error:
            return ''
        return ctypes.string_at(self.c.Shardcall_Error_Text(ctypes.c_void_p(error))).decode()

    def targets(self):
        text = ctypes.c_void_p()
        assert not self.c.Shardcall_DescribeTargets(self.registry, ctypes.byref(text))
        return self.c.Shardcall_Text_Data(text).decode()


def shown(symbol):
    """Whether a library that is loaded now would find it."""
    dlsym = ctypes.CDLL(None).dlsym
    dlsym.restype, dlsym.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
    return dlsym(None, symbol) is not None


def loads(library, plugins):
    shardcall = Shardcall(library)
    assert not shown(OURS)
    said = shardcall.load(os.path.join(plugins, 'libself_registering.so'))
    assert said == '', said
    table = ' '.join(shardcall.targets().split())
    assert 'self_twice Abacus 4' in table and 'self_states Host 4' in table, table
    assert shown(OURS) and shown(b'_ZN3xla3ffi12GetXlaFfiApiEv')
    assert not shown(b'Shardcall_LoadPlugin')
    manifest = os.path.join(plugins, 'hidden_symbols.json')
    with open(manifest, 'w', encoding='utf-8') as f:
        f.write('{"library": "libuntyped_library.so", "targets": [{"name": "hidden_root", '
                '"symbol": "root", "api_version": 2}]}')
    said = shardcall.load(manifest)
    os.remove(manifest)
    assert said == '', said
    # One that brings its own comes after ours, and gets its own.
    said = shardcall.load(os.path.join(plugins, 'libself_registering_own_api.so'))
    assert 'registers no handler itself' in said, said


def keeps(library, plugins):
    """Ours is not asked where another one is there for all."""
    path = os.path.join(plugins, 'libself_registering_own_api.so')
    theirs = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    shardcall = Shardcall(library)
    before = theirs.OwnRegistrations()
    assert before == 2, before
    said = shardcall.load(os.path.join(plugins, 'libself_registering_on_a_thread.so'))
    assert 'registers no handler itself' in said, said
    assert theirs.OwnRegistrations() == before + 1


def main():
    library, plugins = sys.argv[1:3]
    if len(sys.argv) > 3:
        globals()[sys.argv[3]](library, plugins)
        return 0
    for test in ('loads', 'keeps'):
        done = subprocess.run([sys.executable, *sys.argv[:3], test], timeout=120, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print(f'{test}: exit status {done.returncode}\n{done.stdout}')
            return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
