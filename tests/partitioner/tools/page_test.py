#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages whose commands are run: what stands below `$ shardcall ...` is printed."""

import json
import os
import re
import shlex
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import command  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..'))
PAGES = ('examples/custom_partitioning/README.md',)
BLOCK = re.compile(r'^```(\w*)\n(.*?)^```$', re.M | re.S)


def steps(text):
    """(command, output) of every `$ shardcall` in the page's blocks."""
    for kind, block in BLOCK.findall(text):
        if kind:
            continue
        for part in re.split(r'^\$ ', block, flags=re.M)[1:]:
            line, _, output = part.partition('\n')
            yield line, output


class PageTest(unittest.TestCase):

    def test_every_command_prints_what_stands_below_it(self):
        for page in PAGES:
            with open(os.path.join(ROOT, page), encoding='utf-8') as f:
                text = f.read()
            found = 0
            for line, output in steps(text):
                words = shlex.split(line)
                self.assertEqual('shardcall', words[0], line)
                found += 1
                args = [re.sub(r'(^|=)(tests|examples)/', lambda m: m[1] + ROOT + '/' + m[2] + '/', w)
                        for w in words[1:]]
                with self.subTest(command=line):
                    result = command.run(args, timeout=60)
                    self.assertEqual('', result.fault)
                    self.assertEqual(1 if output.startswith('E') else 0, result.code, result.err)
                    printed = result.err if output.startswith('E') else result.out
                    printed = printed if isinstance(printed, str) else printed.decode()
                    self.assertTrue(printed.startswith(output), (line, printed[:600]))
            self.assertGreaterEqual(found, 8, page)

    def test_files_say_what_the_page_shows(self):
        for page in PAGES:
            directory = os.path.join(ROOT, os.path.dirname(page))
            with open(os.path.join(ROOT, page), encoding='utf-8') as f:
                text = f.read()
            shown = [json.loads(block) for kind, block in BLOCK.findall(text) if kind == 'json']
            files = [name for name in sorted(os.listdir(directory)) if name.endswith('.json')]
            self.assertEqual(len(shown), len(files))
            for name in files:
                with open(os.path.join(directory, name), encoding='utf-8') as f:
                    self.assertIn(json.load(f), shown, name)


if __name__ == '__main__':
    unittest.main()
