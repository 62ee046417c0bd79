# SPDX-License-Identifier: Apache-2.0
"""Sections of tests/STATUS.md, each with a maker of its own."""
import argparse


def with_section(text, made, title):
    """The status page with that section replaced, or put before the next title."""
    start = text.find(title)
    if start < 0:
        start = text.find('## ', text.find('| File |'))
        start = len(text) if start < 0 else start
        return text[:start].rstrip('\n') + '\n\n' + made + '\n' + text[start:]
    end = text.find('\n## ', start)
    return text[:start] + made + ('' if end < 0 else text[end:])


def main(title, section, wrong, fine):
    """--write and --check of a section; `wrong` yields what is wrong with the page's text."""
    parser = argparse.ArgumentParser()
    parser.add_argument('--write', metavar='STATUS.md')
    parser.add_argument('--check', metavar='STATUS.md')
    args = parser.parse_args()
    path = args.write or args.check
    if not path:
        parser.error('--write or --check')
    with open(path, encoding='utf-8') as f:
        text = f.read()
    if args.write:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(with_section(text, section(), title))
        return 0
    problems = list(wrong(text))
    print('\n'.join(problems) if problems else fine)
    return 1 if problems else 0
