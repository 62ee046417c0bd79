#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our binary form of HLO with XLA's.

For every *.hlo file, with jaxlib as the other side:
  read      XLA's HloModuleProto of the file, read by us and printed as text, is
            the same program to XLA's parser
  kept      XLA's proto, read by us and written again, is equal field by field,
            ids and names included
  written   our proto of the file equals XLA's field by field, but for ids, names
            of instructions and computations, and the order of the stack-frame
            tables
  accepted  XLA reads our proto, and prints what it prints for its own
The one field of our own (what XLA's messages have no place for) is left out of
the comparison, and so is what only other versions of XLA write.

  hlo_proto_diff.py --tool=build/bin/hlo_convert DIR...

SHARDCALL_CORPUS adds one more folder. Exit code 77: jaxlib is not there.
"""

import os
import re
import subprocess
import sys
import tempfile

from hlo_text_diff import decode, first_difference, normalise, sorted_map

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import jaxlib_parser  # noqa: E402

OWN_HEADER = 61001  # of HloModuleProto
OPCODE, COMPARISON_TYPE, COMPARISON_ORDER = 2, 72, 102  # of HloInstructionProto
IS_STABLE = 60  # which older versions do not write on topk
EMPTY_CONFIGS = (98, 101)  # sparsity_config, block_scaling_config
SHARDING, ORIGIN = 40, 88
# Of values that are not summed yet: jaxlib 0.12 adds it to the metadata of what it reads.
REDUCTION = b':\x18\n\x11sdy::reduction_op\x12\x03SUM'


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def convert(tool, to, source, target, names):
    run = subprocess.run([tool, f'--to={to}', f'--out={target}'] +
                         [os.path.join(source, n) for n in names],
                         capture_output=True, text=True, check=False)
    if run.stderr:
        print(run.stderr)


def fields(serialized):
    """The whole message as it stands, but for the order of maps."""
    module = decode(serialized)
    sorted_map(module, 19)
    computations = []
    for c in module[3]:
        c = decode(c)
        instructions = [decode(i) for i in c[2]]
        for i in instructions:
            sorted_map(i, 68)
        c[2] = instructions
        computations.append(c)
    module[3] = computations
    return module


def without_own(module):
    module.pop(OWN_HEADER, None)
    return module


def without_other_versions(theirs, own):
    """Our message without what XLA of this version does not write: of a comparison it writes the
    type or the order, and we write both. They must say the same. Of topk, we write that it is
    stable. What XLA writes empty on every product, since jaxlib 0.12, is taken out of its
    message."""
    for their_computation, own_computation in zip(theirs[3], own[3]):
        for their, i in zip(their_computation[2], own_computation[2]):
            for message in (their, i):
                message.update({field: [plain(value) for value in message[field]]
                                for field, plain in (PLAIN.items()) if field in message})
            for field in EMPTY_CONFIGS:
                if their.get(field) == [b''] and field not in i:
                    del their[field]
            if i.get(OPCODE) == [b'topk'] and IS_STABLE not in their:
                i.pop(IS_STABLE, None)
            if i.get(OPCODE) != [b'compare'] or COMPARISON_TYPE not in i or COMPARISON_ORDER not in i:
                continue
            if (i[COMPARISON_TYPE] == [b'FLOAT']) == (i[COMPARISON_ORDER] == [b'PARTIAL']):
                for field in (COMPARISON_TYPE, COMPARISON_ORDER):
                    if field not in their:
                        del i[field]
    return own


PLAIN = {SHARDING: lambda value: value.replace(REDUCTION, b''),
         ORIGIN: lambda value: {k: v for k, v in decode(value).items() if v != [b'']}}


def with_numbered_elements(text):
    """Elements of tuples have no name in the compact form of text (`%t#0`): each reader makes its
    own."""
    elements = re.findall(r'(?m)^ *(?:ROOT )?(%\S+) = .* get-tuple-element\(', text)
    numbers = {name: f'%element.{k}' for k, name in enumerate(elements)}
    return re.sub(r'%[\w.-]+', lambda name: numbers.get(name[0], name[0]), text)


def accepted(hlo, own, theirs):
    """None, or why XLA does not take our proto for its own."""
    try:
        expected = hlo.HloModule.from_serialized_hlo_module_proto(theirs).to_string()
    except Exception:  # pylint: disable=broad-except
        return None  # XLA refuses its own: nothing to compare
    try:
        found = hlo.HloModule.from_serialized_hlo_module_proto(own).to_string()
    except Exception as e:  # pylint: disable=broad-except
        return f'XLA refuses our proto: {str(e)[:300]}'
    # jaxlib 0.12 has an empty element in the origin of a call that the compiler made.
    expected, found = (with_numbered_elements(text.replace('origin={(),[""]}', 'origin={()}'))
                       for text in (expected, found))
    for a, b in zip(expected.split('\n'), found.split('\n')):
        if a != b:
            return f'{a[:300]!r} against {b[:300]!r}'
    return None if expected == found else 'one text is longer'


def compared_fields(theirs, own):
    return first_difference(theirs, without_other_versions(theirs, own))


def main():
    tool, files, hlo = jaxlib_parser.start()
    failures = compared = 0
    newer = jaxlib_parser.writes_elements_without_names()
    with tempfile.TemporaryDirectory() as temp:
        at = {}
        for name in ('text', 'theirs', 'own', 'read', 'kept'):
            at[name] = os.path.join(temp, name)
            os.mkdir(at[name])
        stems = []
        for file in files:
            stem = os.path.basename(file)[:-len('.hlo')]
            text = read(file)
            with open(os.path.join(at['text'], stem + '.hlo'), 'wb') as f:
                f.write(text)
            module = hlo.hlo_module_from_text(jaxlib_parser.for_xla(text.decode()))
            with open(os.path.join(at['theirs'], stem + '.pb'), 'wb') as f:
                f.write(module.as_serialized_hlo_module_proto())
            stems.append(stem)
        hlo_names, pb_names = [s + '.hlo' for s in stems], [s + '.pb' for s in stems]
        convert(tool, 'pb', at['text'], at['own'], hlo_names)
        convert(tool, 'text', at['theirs'], at['read'], pb_names)
        convert(tool, 'pb', at['theirs'], at['kept'], pb_names)
        for stem in stems:
            paths = {k: os.path.join(v, stem + ('.pb' if k in ('theirs', 'own', 'kept') else
                                                '.hlo')) for k, v in at.items()}
            missing = [k for k, p in paths.items() if not os.path.exists(p)]
            if missing:
                print(f'{stem}: nothing made of it: {missing}')
                failures += 1
                continue
            compared += 1
            theirs, own = read(paths['theirs']), read(paths['own'])
            again = hlo.hlo_module_from_text(jaxlib_parser.for_xla(read(paths['read']).decode()))
            results = {
                'read': compared_fields(normalise(theirs),
                                        normalise(again.as_serialized_hlo_module_proto())),
                'kept': compared_fields(fields(theirs), fields(read(paths['kept']))),
                'written': compared_fields(without_own(normalise(theirs, newer)),
                                           without_own(normalise(own, newer))),
                'accepted': accepted(hlo, own, theirs),
            }
            for what, difference in results.items():
                if difference:
                    print(f'{stem}: {what}: {difference}')
                    failures += 1
    print(f'{len(files)} files, {compared} compared, {failures} differences')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
