#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of explain --format=html in a real browser. Exit status 77 without Chromium.

Screenshots are kept in the folder that SHARDCALL_SCREENSHOTS names, else in that of the build.
"""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../support'))
import chromium  # noqa: E402
import command  # noqa: E402

if chromium.path() is None:
    print('SKIPPED: no Chromium')
    sys.exit(77)

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../..'))
TRAIN = os.path.join(ROOT, 'tests/data/hlo/llama_4layer_train_tiny_calls_d4m2.sdy.hlo')
HOSTILE = '</script><img src=x onerror=fail()>'


def many(count):
    """A program whose constraints alternate, so that each op asks for a collective."""
    lines = ['HloModule many, num_partitions=8', 'ENTRY main {',
             '  x0 = f32[64,64] parameter(0), sharding={devices=[8,1]<=[8]}']
    for k in range(count):
        tiles = '[1,8]' if k % 2 == 0 else '[8,1]'
        lines.append(f'  x{k + 1} = f32[64,64] negate(x{k}), sharding={{devices={tiles}<=[8]}}')
    return '\n'.join(lines[:-1] + [lines[-1].replace(f'  x{count} =', f'  ROOT x{count} =')] +
                     ['}', ''])


ALONE = '''HloModule alone, num_partitions=4
ENTRY main {
  x = f32[8] parameter(0), sharding={devices=[4]<=[4]}
  ROOT y = f32[8] add(x, x), sharding={devices=[4]<=[4]}
}
'''
NAMED = f'''HloModule named, num_partitions=4
ENTRY main {{
  x = f32[8,4] parameter(0), sharding={{devices=[4,1]<=[4]}}
  ROOT y = f32[8,4] add(x, x), sharding={{replicated}}, metadata={{op_name="{HOSTILE}" source_file="{HOSTILE}.py" source_line=3}}
}}
'''


LINES = '''HloModule lines, num_partitions=4
ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}
  w = f32[8,4] parameter(1), sharding={devices=[4,1]<=[4]}
  y = f32[8,4] add(x, x), sharding={devices=[1,4]<=[4]}, metadata={op_name="y" source_file="a.py" source_line=3}
  z = f32[8,4] negate(w), sharding={devices=[1,4]<=[4]}, metadata={op_name="z" source_file="a.py" source_line=31}
  ROOT t = (f32[8,4], f32[8,4]) tuple(y, z), sharding={{devices=[1,4]<=[4]}, {devices=[1,4]<=[4]}}
}
'''


class ExplainPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.shots = os.environ.get('SHARDCALL_SCREENSHOTS') or os.path.join(
            os.path.dirname(os.path.dirname(os.environ['SHARDCALL_COMMAND'])), 'screenshots')
        os.makedirs(cls.shots, exist_ok=True)
        cls.browser = chromium.Chromium()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def setUp(self):
        self.browser.problems.clear()

    def tearDown(self):
        self.assertEqual(self.browser.problems, [])

    def explain(self, program, format):
        if not os.path.exists(program):
            path = os.path.join(self.folder.name, 'program.hlo')
            with open(path, 'w', encoding='utf-8') as f:
                f.write(program)
            program = path
        result = command.run(['explain', program, f'--format={format}'], timeout=120)
        self.assertEqual(result.code, 0, result.err)
        return result.out if isinstance(result.out, str) else result.out.decode()

    def open(self, program):
        path = os.path.join(self.folder.name, 'page.html')
        page = self.explain(program, 'html')
        with open(path, 'w', encoding='utf-8') as f:
            f.write(page)
        self.browser.open(path)
        return page

    def rows(self):
        return self.browser.evaluate(
            '[...document.querySelectorAll("#rows tr[data-index]")].map(r => '
            '[...r.cells].map(c => c.textContent))')

    def text(self, selector):
        return self.browser.evaluate(
            f'document.querySelector({json.dumps(selector)}).textContent')

    def test_the_table_says_what_the_report_says_and_sorts_and_filters(self):
        page = self.open(TRAIN)
        self.assertLess(len(page), 200_000)
        report = json.loads(self.explain(TRAIN, 'json'))
        sent = sorted(((c['bytes_moved'] * c['trip_count'], c['name'])
                       for c in report['collectives']), key=lambda c: -c[0])
        rows = self.rows()
        self.assertEqual(self.browser.evaluate('all.map(c => c.total).sort((a, b) => b - a)'),
                         [s for s, _ in sent])
        self.assertEqual(rows[0][0][1:], next(n for s, n in sent if s == sent[0][0]))
        self.assertEqual(self.text('#total-count'), str(len(sent)))
        # Sorted by name, downwards on the second click.
        self.browser.click('[data-sort="name"]')
        names = sorted(n for _, n in sent)
        self.assertEqual(self.rows()[0][0], f'%{names[0]}')
        self.browser.click('[data-sort="name"]')
        self.assertEqual(self.rows()[0][0], f'%{names[-1]}')
        self.assertEqual(self.browser.evaluate(
            'document.querySelector("th").getAttribute("aria-sort")'), 'descending')
        # Of one opcode.
        self.browser.click('[data-opcode="reduce-scatter"]')
        self.assertEqual({r[1] for r in self.rows()}, {'reduce-scatter'})
        of_opcode = sum(c['opcode'] == 'reduce-scatter' for c in report['collectives'])
        self.assertTrue(self.text('#shown').startswith(f'{of_opcode} of {len(sent)},'))
        self.browser.click('[data-opcode="reduce-scatter"]')
        # Typed.
        self.browser.evaluate('document.querySelector("#filter").focus()')
        self.browser.call('Input.insertText', text='all-reduce %rms')
        for row in self.rows():
            self.assertEqual(row[1], 'all-reduce')

    def test_a_selected_collective_shows_its_cause_its_devices_and_its_neighbours(self):
        self.open(TRAIN)
        report = {c['name']: c for c in json.loads(self.explain(TRAIN, 'json'))['collectives']}
        self.browser.click('#rows tr[data-index]')
        name = self.text('#detail h3')[1:]
        self.assertIn(report[name]['cause'], self.text('#detail dl'))
        self.assertEqual(self.browser.evaluate('document.querySelectorAll("#mesh rect").length'), 8)
        here = self.browser.evaluate('document.querySelector("#graph .here").dataset.node')
        self.browser.screenshot(os.path.join(self.shots, 'explain.light.png'))
        # A step to a neighbour.
        self.browser.click('#graph .node:not(.here)')
        self.assertNotEqual(
            self.browser.evaluate('document.querySelector("#graph .here").dataset.node'), here)

    def test_a_source_line_filters_and_the_theme_switches(self):
        self.open(TRAIN)
        line = self.text('#lines .name')
        self.browser.click('#lines button')
        for row in self.rows():
            self.assertEqual(row[-1], line)
        back = 'getComputedStyle(document.body).backgroundColor'
        before = self.browser.evaluate(back)
        self.browser.click('#theme')
        self.assertNotEqual(self.browser.evaluate(back), before)
        self.browser.screenshot(os.path.join(self.shots, 'explain.dark.png'))

    def test_a_line_is_not_another_that_begins_with_it(self):
        self.open(LINES)
        self.assertEqual(len(self.rows()), 2)
        self.browser.evaluate(
            'document.querySelector(\'#lines button[data-source$=":3"]\').scrollIntoView()')
        self.browser.click('#lines button[data-source$=":3"]')
        self.assertEqual([r[-1] for r in self.rows()], ['a.py:3'])
        self.browser.click('#lines button[data-source$=":3"]')
        self.assertEqual(len(self.rows()), 2)

    def test_the_step_adds_up_and_zooms(self):
        self.open(TRAIN)
        self.assertAlmostEqual(self.browser.evaluate('lengthOf(data.entry)'), self.browser.evaluate(
            'data.steps[data.entry].reduce((s, e) => s + e[1], 0)'))
        sends = self.browser.evaluate('all.reduce((s, c) => s + c.time, 0)')
        self.assertGreater(self.browser.evaluate('lengthOf(data.entry)'), sends)
        drawn = self.browser.evaluate('time.marks.length')
        self.assertGreater(drawn, 20)
        self.browser.click('#zoom-in')
        self.assertAlmostEqual(self.browser.evaluate('time.to - time.from'),
                               self.browser.evaluate('lengthOf(data.entry) / 2'))
        # A click on something that is sent selects it.
        at = self.browser.evaluate(
            '(() => { const m = time.marks.find(m => m.event[0] === 1 && m.w > 2), '
            'c = document.querySelector("#timeline"); c.scrollIntoView({block: "center"}); '
            'const b = c.getBoundingClientRect(); '
            'return [b.x + m.x + m.w / 2, b.y + m.y + 10, m.event[2]]; })()')
        for kind in ('mousePressed', 'mouseReleased'):
            self.browser.call('Input.dispatchMouseEvent', type=kind, x=at[0], y=at[1],
                              button='left', clickCount=1)
        self.assertEqual(self.browser.evaluate('state.selected'), at[2])

    def test_ten_thousand_collectives_are_drawn_as_they_are_seen(self):
        page = self.open(many(10_000))
        self.assertLess(len(page), 6_000_000)
        self.assertEqual(self.text('#total-count'), '10,000')
        self.assertLess(len(self.rows()), 80)
        self.browser.evaluate('document.querySelector("#scroll").scrollTop = 1e9')
        self.browser.evaluate('new Promise(r => requestAnimationFrame(() => r()))')
        self.assertIn(9999, self.browser.evaluate(
            '[...document.querySelectorAll("#rows tr[data-index]")].map(r => state.rows.findIndex('
            'c => c.index == r.dataset.index))'))
        self.browser.screenshot(os.path.join(self.shots, 'explain.many.png'))

    def test_texts_of_the_program_stay_texts(self):
        self.open(NAMED)
        self.browser.click('#rows tr[data-index]')
        self.assertEqual(self.browser.evaluate('document.querySelectorAll("img").length'), 0)
        self.assertIn(HOSTILE, self.text('#detail dl'))

    def test_a_program_that_sends_nothing_says_so(self):
        self.open(ALONE)
        self.assertEqual(self.text('#none'), 'The devices send nothing to each other.')
        self.assertEqual(self.text('#total-bytes'), '0 B')
        self.browser.screenshot(os.path.join(self.shots, 'explain.nothing.png'))


if __name__ == '__main__':
    unittest.main()
