# SPDX-License-Identifier: Apache-2.0
"""What the tests that hold our HLO readers against jaxlib's parser share."""

import argparse
import glob
import os
import re
import sys

import command


def start():
    """(the tool given with --tool, HLO files by path, jaxlib's parser module).

    Files come from the folders given and from the corpus of the JAX of this version
    (SHARDCALL_CORPUS, or SHARDCALL_NEWEST_CORPUS), one of each name.
    Ends the process with 77 where jaxlib has no parser, with 1 without files.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument('--tool', required=True)
    parser.add_argument('dirs', nargs='+')
    args = parser.parse_args()
    try:
        from jaxlib import _hlo as hlo
        hlo.hlo_module_from_text
    except (ImportError, AttributeError) as e:
        print(f'SKIPPED: jaxlib with an HLO parser cannot be imported ({e}); '
              'pip install jaxlib')
        sys.exit(command.SKIPPED)
    dirs = list(args.dirs)
    newer = writes_elements_without_names()
    corpus = os.environ.get('SHARDCALL_NEWEST_CORPUS' if newer else 'SHARDCALL_CORPUS')
    found = {}
    for folder in dirs:
        found.update(by_name(glob.glob(os.path.join(folder, '*.hlo'))))
    if corpus:
        found.update(by_name(command.sampled(sorted(glob.glob(os.path.join(corpus, '*.hlo'))))))
    files = sorted(found.values())
    if not files:
        print('no *.hlo files in', dirs)
        sys.exit(1)
    return args.tool, files, hlo


def by_name(files):
    return {os.path.basename(file): file for file in files}


def writes_elements_without_names():
    """Whether this jaxlib is 0.12 or newer, which writes an element of a tuple as %t#0."""
    import jaxlib
    return tuple(int(part) for part in jaxlib.__version__.split('.')[:2]) >= (0, 12)


def for_xla(text):
    """XLA prints -0.0 as `-0`, and reads that in a constant as the integer 0."""
    return re.sub(r'(?m)^(.* constant\(.*)$',
                  lambda line: re.sub(r'(?<=[ {(,])-0(?=[ ,)}])', '-0.0', line[1]), text)
