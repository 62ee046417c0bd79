#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Large programs of every kind take what their size needs.

The programs are those of tests/benchmarks/cost_programs.py. A command gets a budget of
processor time that is far more than a linear one needs, and that one whose time grows with
the square of the program passes many times over. Sizes of outputs and peaks of memory are
compared between n and 2n.
"""

import os
import resource
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../../benchmarks'))
import cost_programs as programs  # noqa: E402

COMMAND = os.environ['SHARDCALL_COMMAND']
SECONDS = 30


class Run:
    """Status, peak memory in bytes and output of one command within the budget."""

    def __init__(self, folder, text, *args):
        program, out = os.path.join(folder, 'program.hlo'), os.path.join(folder, 'out.txt')
        with open(program, 'w') as f:
            f.write(text)
        child = os.fork()
        if child == 0:
            with open(os.path.join(folder, 'err.txt'), 'w') as err:
                os.dup2(err.fileno(), 2)
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            os.execv(COMMAND, [COMMAND, args[0], program, f'-o={out}', *args[1:]])
        _, status, usage = os.wait4(child, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.peak = usage.ru_maxrss * 1024
        with open(os.path.join(folder, 'err.txt')) as f:
            self.err = f.read(500)
        self.out = ''
        if self.code == 0:
            with open(out) as f:
                self.out = f.read()


class CostsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_one(self, text, *args):
        done = Run(self.folder.name, text, *args)
        self.assertEqual(0, done.code, f'{args}: {done.err}')
        return done


class Time(CostsTest):

    def test_one_op_of_many_operands_or_results(self):
        for make, n in ((programs.tuple_of, 300000), (programs.while_loop, 200000),
                        (programs.parameters_donated, 300000), (programs.branches, 300000),
                        (programs.called_results, 300000)):
            with self.subTest(make.__name__):
                manifest = os.path.join(self.folder.name, 'many.json')
                with open(manifest, 'w') as f:
                    f.write('{"targets": [{"name": "many", "batch_dims": 1}]}')
                self.run_one(make(n), 'partition', f'--plugin={manifest}')

    def test_a_concatenate_of_many_operands_along_a_sharded_dimension(self):
        text = programs.concatenate(60000).replace('num_partitions=8', 'num_partitions=64')
        self.run_one(text.replace('[8,1]<=[8]', '[64,1]<=[64]'), 'explain')

    def test_a_chain_is_traced_and_explained(self):
        self.run_one(programs.chain_of_halos(100000), 'explain')
        self.run_one(programs.chain(100000), 'propagate', '--trace')


class Reasons(CostsTest):

    def sizes(self, n, *args):
        done = self.run_one(programs.chain_of_halos(n), *args)
        return len(done.out), done.peak

    def test_the_text_of_a_chain_with_collectives_doubles_with_the_chain(self):
        for args in (('explain',), ('explain', '--format=html'), ('propagate', '--trace')):
            with self.subTest(args):
                small, large = self.sizes(4000, *args), self.sizes(8000, *args)
                self.assertLess(large[0], 2.5 * small[0])
                self.assertLess(large[1], 2.5 * small[1])

    def test_they_are_whole_on_request(self):
        text = programs.chain_of_halos(400)
        short = self.run_one(text, 'explain').out
        whole = self.run_one(text, 'explain', '--whole-reasons').out
        self.assertIn(' more steps) -> ', short)
        self.assertNotIn('more steps', whole)
        self.assertGreater(len(whole), 3 * len(short))
        # The longest reason names every op of the chain before it.
        longest = max((line for line in whole.splitlines() if line.startswith('  why  ')), key=len)
        for k in range(1, 399):
            self.assertIn(f'%v{k} operand 0 -> result', longest)
        page = self.run_one(text, 'explain', '--format=html', '--whole-reasons').out
        self.assertIn(longest.removeprefix('  why  ').replace('<', '\\u003c'), page)
        trace = self.run_one(text, 'propagate', '--trace', '--whole-reasons').out
        self.assertIn(longest.removeprefix('  why  '), trace)


if __name__ == '__main__':
    unittest.main(verbosity=2)
