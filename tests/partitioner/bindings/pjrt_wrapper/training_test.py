#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training with flax and optax, JAX unmodified: on XLA:CPU's plugin as it is and on the one
that wraps it, at the same time. Losses and parameters are the same but for the last bits,
and it was us who partitioned. Environment as for under_jax_test.py; exit status 77 without
the plugin, jax, flax or optax."""
import glob
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import framework  # noqa: E402

OURS = framework.from_arguments()
try:
    import flax  # noqa: F401
    import numpy as np
    import optax  # noqa: F401
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
PLAIN = framework.Framework(OURS.plugin, OURS.plugin)
# Of the largest number of an array: sums in another order, through four steps of Adam.
LIMIT = 2e-5


def start(side):
    # Compiling is most of the time, and optimising most of that.
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, 'train_flax.py'), side.path('trained.npz')],
        env={**side.environment, 'SHARDCALL_REPORT': side.path('reports'),
             'JAX_DISABLE_MOST_OPTIMIZATIONS': '1'},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        running = [start(PLAIN), start(OURS)]
        said = [process.communicate(timeout=600)[1] for process in running]
        for process, text in zip(running, said):
            if process.returncode != 0:
                raise AssertionError(text[-3000:])
        cls.plain, cls.ours = (np.load(side.path('trained.npz')) for side in (PLAIN, OURS))

    def test_losses_and_parameters_are_those_of_jax_as_it_is(self):
        self.assertEqual(self.plain.files, self.ours.files)
        for name in self.plain.files:
            want, found = self.plain[name], self.ours[name]
            self.assertLessEqual(np.abs(found - want).max(), LIMIT * np.abs(want).max(), name)

    def test_every_model_learns(self):
        losses = [name for name in self.ours.files if name.endswith('losses')]
        self.assertEqual(len(losses), 4)
        for name in losses:
            self.assertTrue(np.all(np.diff(self.ours[name]) < 0), (name, self.ours[name]))

    def test_the_steps_were_partitioned_here(self):
        self.assertFalse(os.path.exists(PLAIN.path('reports')))
        steps = []
        for path in glob.glob(OURS.path('reports') + '/jit_step.*.json'):
            with open(path, encoding='utf-8') as f:
                steps.append(json.load(f))
        # A step of each model in each form of annotations.
        self.assertGreaterEqual(len(steps), 4)
        for step in steps:
            self.assertEqual(step['num_partitions'], 8)
            # Gradients of what all devices hold are summed over the batch's devices.
            self.assertIn('all-reduce', {c['opcode'] for c in step['collectives']})


if __name__ == '__main__':
    unittest.main()
