#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Propagation as a specification: each file of tests/data/propagation is a small program, what it
shows in its first line, and the shardings that are decided as comments at its end.

  SHARDCALL_COMMAND=build/bin/shardcall programs_test.py            compares them
  SHARDCALL_COMMAND=build/bin/shardcall programs_test.py --write    writes them anew

differential_propagation sets the same programs beside XLA's own propagation."""

import glob
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', 'support'))
import command  # noqa: E402

FILES = sorted(glob.glob(os.path.join(command.DATA, 'propagation', '*.hlo')))
DECIDED = re.compile(r'^// %.*\n', re.M)


def decided(path):
    """The lines of the values that have a dimension."""
    result = command.run(['propagate', path, '--search=none', '--trace'])
    if result.code != 0:
        raise AssertionError(f'{os.path.basename(path)}: {result.err}')
    found = (re.match(r'(%\S+ \[.*?\])  ', line) for line in result.out.splitlines())
    return ''.join(f'// {m.group(1)}\n' for m in found if m and not m.group(1).endswith(' []'))


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


class ProgramsTest(unittest.TestCase):
    def test_every_program_is_propagated_as_it_says(self):
        self.assertGreater(len(FILES), 40)
        for path in FILES:
            with self.subTest(os.path.basename(path)):
                said = ''.join(DECIDED.findall(read(path)))
                self.assertEqual(said, decided(path))
                self.assertRegex(read(path), r'\A// \S.*\.\nHloModule ')

    def test_shardings_that_are_written_down_say_nothing_else(self):
        """Read again with all of them, a program has the same ones."""
        for path in FILES:
            with self.subTest(os.path.basename(path)):
                once = command.run(['propagate', path, '--search=none']).out
                again = command.run(['propagate', '-', '--search=none'], stdin=once.encode()).out
                self.assertEqual(once, again)


def write():
    for path in FILES:
        text = DECIDED.sub('', read(path)) + decided(path)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)


if __name__ == '__main__':
    if sys.argv[1:] == ['--write']:
        write()
    else:
        unittest.main()
