# SPDX-License-Identifier: Apache-2.0
"""XLA's parser and HloVerifier, from the jaxlib that is installed.

jaxlib has no Python name for the verifier, but its library keeps the symbol
table: the verifier's constructor and Run are called at the addresses found
there. Options are those of XLA's CPU compiler before layouts are assigned: not
layout-sensitive, no mixed precision.

A failed CHECK ends the process, so the work is done in forked children; a text
that ends its child counts as refused, "aborts".
"""

import ctypes
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile

_RUN = ('_ZN3xla11HloVerifier7RunImplEPNS_9HloModuleERKN4absl12lts_20260107'
        '13flat_hash_setISt17basic_string_viewIcSt11char_traitsIcEENS4_18container_internal'
        '10StringHashENSA_8StringEqESaIS9_EEE')
_CREATE = ('_ZN3xla11HloVerifierC2EbbSt8functionIFbPKNS_14HloInstructionEEES1_IFlRKNS_5ShapeEEEb')
# The default of the constructor's last-but-one parameter, the size of a shape.
_SIZE_MANAGER = ('_ZNSt14_Function_base13_Base_managerIZN3xla11HloVerifierC1EbbSt8functionIFbPKNS1_'
                 '14HloInstructionEEES3_IFlRKNS1_5ShapeEEEbEd0_UlSB_E_E10_M_managerERSt9_Any_data'
                 'RKSG_St18_Manager_operation')
_SIZE_INVOKER = ('_ZNSt17_Function_handlerIFlRKN3xla5ShapeEEZNS0_11HloVerifierC1EbbSt8functionIFb'
                 'PKNS0_14HloInstructionEEES6_IS4_EbEd0_UlS3_E_E9_M_invokeERKSt9_Any_dataS3_')


_SECONDS_A_TEXT = 20  # of some milliseconds


class Unavailable(Exception):
    pass


def _symbols(path, names):
    """Addresses of `names` in the ELF file's symbol table."""
    import numpy as np
    entry = np.dtype([('name', '<u4'), ('info', 'u1'), ('other', 'u1'), ('section', '<u2'),
                      ('value', '<u8'), ('size', '<u8')])
    with open(path, 'rb') as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
        begin, = struct.unpack_from('<Q', data, 0x28)
        count, = struct.unpack_from('<H', data, 0x3c)
        sections = [struct.unpack_from('<IIQQQQIIQQ', data, begin + 64 * k) for k in range(count)]
        table = next((s for s in sections if s[1] == 2), None)
        if table is None:
            raise Unavailable('jaxlib has no symbol table')
        strings = sections[table[6]]
        symbols = np.frombuffer(data[table[4]:table[4] + table[5]], dtype=entry)
        found = []
        for name in names:
            at = data.find(b'\0' + name.encode() + b'\0', strings[4], strings[4] + strings[5])
            if at < 0:
                raise Unavailable('this jaxlib has no ' + name)
            found.append(int(symbols['value'][symbols['name'] == at + 1 - strings[4]][0]))
        return found


class XlaVerifier:
    """Raises Unavailable where jaxlib is missing or another one."""

    def __init__(self):
        try:
            import jaxlib
            from jaxlib import _hlo
        except ImportError as error:
            raise Unavailable(str(error)) from error
        self._parse = _hlo.hlo_module_from_text
        path = os.path.join(os.path.dirname(jaxlib.__file__), 'libjax_common.so')
        if not os.path.exists(path) or sys.platform != 'linux' or os.uname().machine != 'x86_64':
            raise Unavailable('not the jaxlib of Linux on x86-64')
        run, create, manager, invoker = _symbols(
            path, [_RUN, _CREATE, _SIZE_MANAGER, _SIZE_INVOKER])
        with open('/proc/self/maps') as maps:
            base = min(int(line.split('-')[0], 16) for line in maps
                       if line.rstrip().endswith('libjax_common.so'))
        pointer, flag = ctypes.c_void_p, ctypes.c_bool
        # One that refuses mixed precision, as on CPU, and one that allows it.
        self._verifiers = [ctypes.create_string_buffer(1024) for _ in range(2)]
        self._functions = [ctypes.create_string_buffer(32), ctypes.create_string_buffer(
            struct.pack('<QQQQ', 0, 0, base + manager, base + invoker), 32)]
        for mixed, verifier in enumerate(self._verifiers):
            ctypes.CFUNCTYPE(None, pointer, flag, flag, pointer, pointer, flag)(base + create)(
                ctypes.addressof(verifier), False, bool(mixed),
                ctypes.addressof(self._functions[0]), ctypes.addressof(self._functions[1]), False)
        self._run = ctypes.CFUNCTYPE(pointer, pointer, pointer, pointer, pointer)(base + run)
        self._threads = ctypes.create_string_buffer(64)  # the empty set: all threads
        self._status = ctypes.create_string_buffer(64)

    def check(self, text):
        """'ok', 'mixed: <message>' if it is the mixed precision that is refused, or
        XLA's message in one line. May abort."""
        try:
            module = self._parse(text)
        except Exception as error:  # its type differs between releases
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            return 'parser: ' + ' '.join(lines[1:3] or lines)
        # A nanobind instance that points to its value: offset, then flags.
        offset, = struct.unpack('<i', ctypes.string_at(id(module) + 16, 4))
        value, = struct.unpack('<Q', ctypes.string_at(id(module) + offset, 8))
        message = self._verify(self._verifiers[0], value)
        if message == 'ok':
            return message
        if self._verify(self._verifiers[1], value) == 'ok':
            return 'mixed: ' + message
        return 'verifier: ' + message

    def _verify(self, verifier, module):
        ctypes.memset(self._status, 0, 64)
        self._run(ctypes.addressof(self._status), ctypes.addressof(verifier), module,
                  ctypes.addressof(self._threads))
        status, = struct.unpack('<Q', self._status.raw[:8])
        if status == 1:
            return 'ok'
        if status & 1:
            return f'status {status}'
        message, size = struct.unpack('<QQ', ctypes.string_at(status + 8, 16))
        text = ctypes.string_at(message, size).decode(errors='replace')
        text = text.split('during context [Unknown]: ')[-1].split(' goo.gle/')[0]
        return text.splitlines()[0]

    def check_all(self, texts, jobs=None):
        """One answer for each text; a crash is 'aborts'."""
        jobs = jobs or os.cpu_count() or 1
        size = -(-len(texts) // jobs)
        parts = [texts[k:k + size] for k in range(0, len(texts), size)]
        with tempfile.TemporaryDirectory() as folder:
            children = []
            for k, part in enumerate(parts):
                child = os.fork()
                if child == 0:
                    with open(os.path.join(folder, str(k)), 'w') as out:
                        out.writelines(answer + '\n' for answer in self._check_in_turn(part))
                    os._exit(0)
                children.append(child)
            answers = []
            for k, child in enumerate(children):
                os.waitpid(child, 0)
                with open(os.path.join(folder, str(k))) as lines:
                    answers += lines.read().split('\n')[:-1]
        if len(answers) != len(texts):
            raise RuntimeError(f'{len(answers)} answers for {len(texts)} texts')
        return answers

    def _check_in_turn(self, texts):
        answers = []
        stuck = 0
        while len(answers) < len(texts):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                quiet = os.open(os.devnull, os.O_WRONLY)
                os.dup2(quiet, 2)
                # No more files: the stack trace of a failed CHECK would read all
                # symbols of the library for each of its lines.
                resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                with os.fdopen(writer, 'wb', buffering=0) as out:
                    for text in texts[len(answers):]:
                        signal.alarm(_SECONDS_A_TEXT)
                        out.write(self.check(text).replace('\n', ' ').encode() + b'\n')
                os._exit(0)
            os.close(writer)
            with os.fdopen(reader, 'rb') as lines:
                got = lines.read().decode(errors='replace').split('\n')
            status = os.waitpid(child, 0)[1]
            answers += got[:-1]
            # A lock that another thread held at the fork stays held in the child.
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM and stuck < 3:
                stuck += 1
            elif len(answers) < len(texts):
                answers.append('aborts')
        return answers
