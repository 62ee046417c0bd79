#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX's client ends while another thread compiles for it: backends are cleared, or the
program is over. Environment as for under_jax_test.py; exit status 77 without the plugin."""
import glob
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import framework  # noqa: E402

F = framework.from_arguments()
COMPILING = '''
import gc, sys, threading, time
import jax.extend.backend
def program(k):
    def f(x):
        for i in range(60):
            x = jnp.tanh(x @ x + i * k)
        return x
    return f
x = put(np.eye(16), "x", "y")
started, compiled, first = threading.Event(), [], threading.Event()
def work(x):
    started.set()
    for k in range(3):
        compiled.append(jax.jit(program(k)).lower(x).compile())
        first.set()
thread = threading.Thread(target=work, args=(x,))
thread.start()
started.wait()
time.sleep(WAIT)
'''


class ClientEnds(unittest.TestCase):
    def ok(self, code):
        status, out, err = F.python(code)
        self.assertEqual(status, 0, err[-3000:])
        self.assertFalse(glob.glob('/dev/shm/shardcall.*') + glob.glob('/tmp/shardcall.*'))
        return out.strip()

    def test_backends_are_cleared_while_a_thread_compiles(self):
        # Early, where it is likely to be converted and partitioned, and within XLA.
        for wait in ('0.2', 'first.wait() and 0.05'):
            self.assertEqual(self.ok(COMPILING.replace('WAIT', wait) + '''
del x, mesh
jax.extend.backend.clear_backends()
gc.collect()
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
y = jax.jit(lambda v: v.sum(0))(put(np.ones((8, 4)), "x", None))
assert np.array_equal(y, np.full(4, 8)), y
thread.join()
print(len(compiled))
'''), '3')

    def test_the_program_is_over_while_a_thread_compiles(self):
        self.assertEqual(self.ok(COMPILING.replace('WAIT', '0.2') + '''
import atexit
atexit.register(lambda: print(len(compiled)))
sys.exit(0)
'''), '3')


if __name__ == '__main__':
    unittest.main()
