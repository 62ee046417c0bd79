# SPDX-License-Identifier: Apache-2.0
"""Sections of tests/STATUS.md, each with a maker of its own."""
import argparse
import json
import os


def numbers(version):
    return [int(part) for part in version.split('.')]


def is_newest(version):
    """Whether that jaxlib takes the files of JAX 0.12."""
    return numbers(version) >= [0, 12]


def record(path):
    """{version of jaxlib, the newest first: {file: what it says, or why it does not}}."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding='utf-8') as f:
        found = json.load(f)
    return {version: found[version] for version in sorted(found, key=numbers, reverse=True)}


def write_record(path, version, found):
    """Adds what that jaxlib says. One that is as new in kind gives way: the newest stands there, and
    0.10.2 beside it."""
    kept = {v: files for v, files in record(path).items() if is_newest(v) != is_newest(version)}
    with open(path, 'w', encoding='utf-8') as f:
        json.dump({**kept, version: dict(sorted(found.items()))}, f, indent=0)
        f.write('\n')


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
        made = with_section(text, section(), title)  # before the page is opened, and so emptied
        with open(path, 'w', encoding='utf-8') as f:
            f.write(made)
        return 0
    problems = list(wrong(text))
    print('\n'.join(problems) if problems else fine)
    return 1 if problems else 0
