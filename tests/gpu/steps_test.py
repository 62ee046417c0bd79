# SPDX-License-Identifier: Apache-2.0
"""What steps.py makes of the ways in which a step ends."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
import steps  # noqa: E402


class Outcomes(unittest.TestCase):
    def outcome(self, command, seconds=20):
        return steps.run(command, seconds, dict(os.environ))['outcome']

    def test_a_step_passes_or_fails_by_its_status(self):
        self.assertEqual(self.outcome('echo "[  PASSED  ] 4 tests."'), 'passed')
        self.assertEqual(self.outcome('echo "[  FAILED  ] 1 test"; exit 1'), 'failed')
        self.assertEqual(self.outcome('kill -11 $$'), 'failed')

    def test_what_the_machine_lacks_is_no_failure_and_no_success(self):
        self.assertEqual(self.outcome('echo "[  PASSED  ] 0 tests."'), 'could not run')
        self.assertEqual(self.outcome('echo "E303 there is no CUDA device"; exit 4'),
                         'could not run')

    def test_a_step_that_does_not_end_is_ended_with_its_children(self):
        self.assertEqual(self.outcome('sleep 60 & sleep 60', seconds=0.5), 'timed out')

    def test_the_line_that_says_most_is_shown(self):
        tail = 'rank 0\nE309 NCCL failed in x\n-----\nProcess name: [1]\n-----\n'
        self.assertEqual(steps.reason({'tail': tail}), 'E309 NCCL failed in x')

    def test_each_step_has_a_name_of_its_own(self):
        for plugin in (None, 'plugin.so'):
            names = [name for name, *_ in steps.steps(plugin)]
            self.assertEqual(len(names), len(set(names)))


if __name__ == '__main__':
    unittest.main()
