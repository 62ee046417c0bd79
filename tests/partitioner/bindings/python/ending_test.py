#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends calls of the library, deadlines do, and the interpreter ends cleanly while other
threads are in the library. Each case is a process of its own."""
import os
import subprocess
import sys
import textwrap
import unittest

try:
    import numpy as np  # noqa: F401
    import shardcall  # noqa: F401
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)
try:
    import jax  # noqa: F401
    HAS_JAX = True
except ImportError:
    HAS_JAX = False

SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../../support')
PRELUDE = '''
import os, signal, sys, threading, time
import numpy as np
import shardcall
from endless_programs import loop, product

ENDLESS = loop()

def daemons(count, call):
    """Starts threads that make the call again and again."""
    def always():
        while True:
            call()
    for _ in range(count):
        threading.Thread(target=always, daemon=True).start()

def interrupted(call, after=0.3):
    """Runs call(), which would take long, and prints whether Ctrl-C ended it."""
    asked = []
    def ask():
        asked.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Timer(after, ask).start()
    try:
        call()
        print("ended by itself")
    except KeyboardInterrupt:
        print("interrupted", "late" if time.monotonic() - asked[0] > 20 else "soon")
'''


def process(code, *args):
    return subprocess.run([sys.executable, '-c', PRELUDE + textwrap.dedent(code), *args],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, 'OPENBLAS_NUM_THREADS': '1',
                               'PYTHONPATH': f'{SUPPORT}:{os.environ.get("PYTHONPATH", "")}'})


class Ending(unittest.TestCase):

    def interrupts(self, code):
        r = process(code)
        self.assertEqual((r.returncode, r.stdout), (0, 'interrupted soon\n'), r.stderr[-2000:])

    def test_ctrl_c_ends_run(self):
        self.interrupts('interrupted(lambda: shardcall.run(ENDLESS, [np.ones(8, np.float32)]))')

    def test_ctrl_c_ends_one_long_product(self):
        # 2 n^3 operations: minutes on a core.
        self.interrupts('''
            x = np.ones((12000, 12000), np.float32)
            interrupted(lambda: shardcall.run(product(12000), [x, x]), after=1.5)''')

    def test_ctrl_c_ends_verify(self):
        self.interrupts('interrupted(lambda: shardcall.verify(ENDLESS))')

    def test_ctrl_c_ends_partition(self):
        self.interrupts('''
            text = ["HloModule long, num_partitions=2", "ENTRY e {",
                    "  x0 = f32[8,8] parameter(0), sharding={devices=[2,1]<=[2]}"]
            for k in range(1, 400000):
                text.append(f"  x{k} = f32[8,8] {('sine', 'cosine')[k % 2]}(x{k - 1})")
            text += ["  ROOT r = f32[8,8] sine(x399999)", "}"]
            text = "\\n".join(text)
            interrupted(lambda: [shardcall.partition(text) for _ in range(20)], after=1.0)''')

    def test_ctrl_c_ends_check_rule(self):
        self.interrupts('''
            interrupted(lambda: [shardcall.check_rule("rms_norm") for _ in range(100000)])''')

    def test_a_handler_of_the_user_decides(self):
        r = process('''
            seen = []
            signal.signal(signal.SIGINT, lambda *_: seen.append(1))
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                shardcall.run(ENDLESS, [np.ones(8, np.float32)], deadline=1.5)
            except shardcall.Error as e:
                print(e.code, seen)''')
        self.assertEqual((r.returncode, r.stdout), (0, 'E346 [1]\n'), r.stderr[-2000:])

    def test_a_deadline_ends_run_and_verify_and_says_where(self):
        r = process('''
            for call in (lambda: shardcall.run(ENDLESS, [np.ones(8, np.float32)], deadline=0.3),
                         lambda: shardcall.verify(ENDLESS, deadline=0.3)):
                try:
                    call()
                except shardcall.Error as e:
                    print(e.code, e.status, "of %loop on device 0" in str(e), "deadline" in e.fix)''')
        self.assertEqual((r.returncode, r.stdout), (0, 2 * 'E346 DEADLINE_EXCEEDED True True\n'),
                         r.stderr[-2000:])

    def test_the_interpreter_ends_while_daemon_threads_run_programs(self):
        code = '''
            n = int(sys.argv[1])
            program = shardcall.partition(product(n))
            x = np.ones((n, n), np.float32)
            daemons(3, lambda: program.run([x, x]))
            time.sleep(0.3)
            sys.exit(5)'''
        for n in (64, 64, 64, 1024, 1024):
            r = process(code, str(n))
            self.assertEqual((r.returncode, r.stderr), (5, ''))

    def test_it_ends_while_daemon_threads_partition(self):
        code = '''
            daemons(3, lambda: shardcall.partition(product(64)))
            time.sleep(0.3)'''
        for _ in range(3):
            r = process(code)
            self.assertEqual((r.returncode, r.stderr), (0, ''))

    def test_it_ends_while_daemon_threads_raise(self):
        # Each error is made by Python code that C++ calls.
        code = '''
            def fail():
                try:
                    shardcall.run('no program', [])
                except shardcall.Error:
                    pass
            sys.setswitchinterval(1e-6)
            daemons(6, fail)
            time.sleep(0.2)'''
        for _ in range(6):
            r = process(code)
            self.assertEqual((r.returncode, r.stderr), (0, ''))

    def test_rules_are_checked_while_other_threads_run_python(self):
        # Trials run in a fork, in which no other thread can give back the GIL.
        r = process('''
            daemons(2, lambda: sum(range(1000)))
            for _ in range(3):
                check = shardcall.check_rule('rms_norm')
                assert check, str(check)''')
        self.assertEqual((r.returncode, r.stderr), (0, ''))

    def test_functions_that_run_at_its_end_may_run_programs(self):
        r = process('''
            import atexit
            program = shardcall.partition(product(64))
            x = np.ones((64, 64), np.float32)
            atexit.register(lambda: print(float(program.run([x, x])[0][0, 0]), flush=True))
            daemons(1, lambda: program.run([x, x]))
            time.sleep(0.2)''')
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, '64.0\n', ''))


ASKED = '''
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import shardcall.jax as sj
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.sharding.Mesh(jax.devices(), ("d",))
asked = threading.Event()

@custom_partitioning
def double(x):
    return 2 * x

def partition(mesh, arg_shapes, result_shape):
    print("asked", flush=True)
    asked.set()
    time.sleep(60)
    sharding = arg_shapes[0].sharding
    return mesh, lambda x: 2 * x, sharding, (sharding,)

double.def_partition(partition=partition, infer_sharding_from_operands=(
    lambda mesh, args, result: args[0].sharding), sharding_rule="i -> i")
x = jax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P("d")))
'''


@unittest.skipUnless(HAS_JAX, 'JAX is not there')
class WithJax(unittest.TestCase):

    def test_ctrl_c_in_a_callback_ends_the_compilation(self):
        r = process(ASKED + '''
def interrupt():
    asked.wait()
    time.sleep(0.5)  # a signal at the very start of a sleep ends none of it
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    sj.jit(lambda x: double(x) + 1)(x)
except KeyboardInterrupt:
    print("interrupted")''')
        self.assertEqual(r.returncode, 0, r.stderr[-2000:])
        self.assertEqual(r.stdout, 'asked\ninterrupted\n')

    def test_the_interpreter_ends_while_a_daemon_thread_is_asked(self):
        r = process(ASKED + '''
threading.Thread(target=lambda: sj.jit(lambda x: double(x) + 1)(x), daemon=True).start()
asked.wait()
time.sleep(0.2)
sys.exit(5)''')
        self.assertEqual(r.returncode, 5, r.stderr[-2000:])
        self.assertEqual(r.stdout, 'asked\n')


if __name__ == '__main__':
    unittest.main()
