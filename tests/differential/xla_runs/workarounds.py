# SPDX-License-Identifier: Apache-2.0
"""What XLA:CPU gets wrong in valid programs: for each fault a rewriting of the module that
means the same and keeps clear of it. Where XLA's numbers are not ours and the rewritten
module has ours, the fault is XLA's, and our numbers have been judged all the same.
workarounds_test.py shows each fault in the smallest module that has it."""

import re

from collective_bytes import Instruction
from rewriting import Lines, Text, array, dims_of, element_of, listed


def overlapping_update(t, i):
    """The update is shifted into its place, and chosen there."""
    if i.opcode != 'dynamic-update-slice':
        return None
    x, update, *starts = i.operands()
    from_x, from_update = (t.source(o, ('broadcast', 'dynamic-slice')) for o in (x, update))
    if not from_x or from_x is not from_update:
        return None
    dims, sizes = dims_of(i.type), dims_of(t.type(update))
    element, index = element_of(i.type), element_of(t.type(starts[0]))
    lines = Lines(t, f'{index}[]')
    new = lines.new
    zero = new(f'constant({0 if element[0] != "c" else "(0, 0)"})', kind=f'{element}[]', bare=True)
    room = [d - s for d, s in zip(dims, sizes)]
    padded = new('pad', update, zero, kind=array(element, [s + 2 * r for s, r in zip(sizes, room)]),
                 rest=', padding=' + 'x'.join(f'{r}_{r}' for r in room))
    shifts, inside = [], []
    for d, start in enumerate(starts):
        most, size = (new(f'constant({n})', bare=True) for n in (room[d], sizes[d]))
        first = new('clamp', new('constant(0)', bare=True), start, most)
        shifts.append(new('subtract', most, first))
        place = new('iota', kind=array(index, dims), rest=f', iota_dimension={d}')
        for direction, bound in (('GE', first), ('LT', new('add', first, size))):
            spread = new('broadcast', bound, kind=array(index, dims), rest=', dimensions={}')
            inside.append(new('compare', place, spread, kind=array('pred', dims),
                              rest=f', direction={direction}'))
    while len(inside) > 1:
        inside.append(new('and', inside.pop(), inside.pop(), kind=array('pred', dims)))
    moved = new('dynamic-slice', padded, *shifts, kind=i.type,
                rest=f', dynamic_slice_sizes={{{",".join(map(str, dims))}}}')
    return lines + [t.line(i, [*inside, moved, x], 'select', '')]


def bound_again(t, i):
    if i.opcode not in ('maximum', 'minimum'):
        return None
    for k, other in enumerate(reversed(i.operands())):
        clamp = t.by_name.get(i.operands()[k])
        if clamp and clamp.opcode == 'clamp' and other in clamp.operands():
            return t.kept(i, k)
    return None


def reduction_that_loses_nan(t, i):
    if i.opcode != 'all-reduce' or element_of(i.type) not in ('f16', 'bf16', 'f32', 'f64') or \
            t.reducer(i) not in ('minimum', 'maximum'):
        return None
    groups = i.attribute('replica_groups')
    found = re.match(r'\[(\d+),(\d+)\]', groups)
    size = int(found.group(2)) if found else groups.strip('{}').split('}')[0].count(',') + 1
    element, dims = element_of(i.type), dims_of(i.type)
    one, one_name = t.fresh(array(element, [1, *dims]), f'reshape(%{i.operands()[0]})')
    kept = re.sub(r', to_apply=%?[\w.\-]+', '', i.attributes)
    all_, all_name = t.fresh(array(element, [size, *dims]),
                             f'all-gather(%{one_name}), dimensions={{0}}{kept}')
    first, first_name = t.fresh(f'{element}[]', 'constant(%sinf)' % (
        '-' if t.reducer(i) == 'maximum' else ''))
    return [one, all_, first, t.line(i, [all_name, first_name], 'reduce',
                                     f', dimensions={{0}}, to_apply={i.attribute("to_apply")}')]


def integer_power(t, i):
    """By digits of six bits: x^(a + 64 b) is x^a (x^64)^b. What is negative stays."""
    if i.opcode != 'power' or element_of(i.type)[0] not in 'su':
        return None
    lines = Lines(t, i.type)
    new, constant, bits = lines.new, lines.constant, int(element_of(i.type)[1:])
    x, exponent = i.operands()
    exponent = new('opt-barrier', exponent)
    if bits <= 4:
        return lines + [t.line(i, [x, exponent])]
    digits, six, half, zero = constant(63), constant(6), constant(32), constant(0)
    power, left, product = x, exponent, constant(1)
    for _ in range(-(-bits // 6)):
        product = new('multiply', product, new('power', power, new('and', left, digits)))
        power = new('power', power, half)
        power = new('multiply', power, power)
        left = new('shift-right-logical', left, six)
    below = new('compare', exponent, zero, rest=', direction=LT',
                kind=array('pred', dims_of(i.type)))
    return lines + [t.line(i, [below, new('power', x, exponent), product], 'select', '')]


def bits_of_narrow(t, i):
    """Counted in 32 bits."""
    if i.opcode not in ('popcnt', 'count-leading-zeros') or element_of(i.type) not in ('s2', 's4'):
        return None
    bits, lines = int(element_of(i.type)[1:]), Lines(t, array('s32', dims_of(i.type)))
    new, constant = lines.new, lines.constant
    wide = new('opt-barrier', new('convert', i.operands()[0]))
    count = new(i.opcode, new('and', wide, constant(2 ** bits - 1)))
    if i.opcode == 'count-leading-zeros':
        count = new('subtract', count, constant(32 - bits))
    return lines + [t.line(i, [count], 'convert')]


def folded_zeros(t, i):
    return t.kept(i, 0) if i.opcode == 'count-leading-zeros' else None


def folded_division(t, i):
    return t.kept(i, 1) if i.opcode in ('divide', 'remainder') and \
        element_of(i.type)[0] in 'su' else None


def negative_padding(t, i):
    return padded_before(t, i) if i.opcode == 'convolution' and \
        re.search(r'pad=[^,}]*-\d', i.attributes) else None


def dilated_groups(t, i):
    return padded_before(t, i) if i.opcode == 'convolution' and \
        'lhs_dilate=' in i.attributes and 'feature_group_count=' in i.attributes else None


def padded_before(t, i):
    """The convolution's operand is padded and spread by an op of its own."""
    x, filters = i.operands()
    window = i.attribute('window').strip('{}')
    fields = dict(f.split('=') for f in window.split())
    rank = len(fields['size'].split('x'))
    pads = [tuple(map(int, p.split('_')))
            for p in fields.pop('pad', 'x'.join(['0_0'] * rank)).split('x')]
    interior = [int(d) - 1 for d in fields.pop('lhs_dilate', 'x'.join('1' * rank)).split('x')]
    labels = i.attribute('dim_labels').split('_')[0]
    dims, edges = dims_of(t.type(x)), []
    for d, label in enumerate(labels):
        low, high, inner = 0, 0, 0
        if label.isdigit():
            (low, high), inner = pads[int(label)], interior[int(label)]
        dims[d] += low + high + inner * max(0, dims[d] - 1)
        edges.append(f'{low}_{high}_{inner}')
    element = element_of(t.type(x))
    zero, zero_name = t.fresh(f'{element}[]', 'constant(%s)' % (
        '(0, 0)' if element[0] == 'c' else '0'))
    padded, padded_name = t.fresh(array(element, dims),
                                  f'pad(%{x}, %{zero_name}), padding={"x".join(edges)}')
    kept, kept_name = t.fresh(array(element, dims), f'opt-barrier(%{padded_name})')
    left = ' '.join(f'{k}={v}' for k, v in fields.items())
    return [zero, padded, kept, t.line(i, [kept_name, filters],
                                       attributes=i.attributes.replace(window, left))]


def scatter_without_indices(t, i):
    """An index dimension of one element is put in front."""
    if i.opcode != 'scatter' or 'scatter_dims_to_operand_dims={}' not in i.attributes or \
            len(i.operands()) != 3:
        return None
    x, indices, updates = i.operands()
    at = listed(i, 'index_vector_dim')[0]
    places = dims_of(t.type(indices))
    places[at] = 1
    element, dims = element_of(i.type), dims_of(i.type)
    one, one_name = t.fresh(array(element, [1, *dims]), f'reshape(%{x})')
    kind = element_of(t.type(indices))
    zero, zero_name = t.fresh(f'{kind}[]', 'constant(0)')
    zeros, zeros_name = t.fresh(array(kind, places), f'broadcast(%{zero_name}), dimensions={{}}')

    def later(found):
        return found[1] + ','.join(str(int(d) + 1) for d in found[2].split(',') if d.strip()) + '}'
    attributes = re.sub(r'(input_batching_dims=\{)([\d, ]*)\}', later, i.attributes)
    attributes = re.sub(r'(inserted_window_dims=\{)([\d, ]*)\}', later, attributes)
    attributes = re.sub(r'inserted_window_dims=\{(\d)', r'inserted_window_dims={0,\1', attributes)
    attributes = attributes.replace('inserted_window_dims={}', 'inserted_window_dims={0}')
    attributes = attributes.replace('scatter_dims_to_operand_dims={}',
                                    'scatter_dims_to_operand_dims={0}')
    done, done_name = t.fresh(array(element, [1, *dims]), f'scatter(%{one_name}, %{zeros_name}, '
                              f'%{updates}){attributes}')
    return [one, zero, zeros, done, t.line(i, [done_name], 'reshape', '')]


def narrow_top(t, i):
    """Chosen among 8 bits."""
    if i.opcode != 'topk' or element_of(t.type(i.operands()[0])) not in ('s4', 'u4'):
        return None
    x = i.operands()[0]
    eight = element_of(t.type(x))[0] + '8'
    wide, wide_name = t.fresh(eight + t.type(x)[2:], f'convert(%{x})')
    values, places = i.type.strip('()').split(', ')
    both, both_name = t.fresh(f'({eight}{values[2:]}, {places})',
                              f'topk(%{wide_name}){i.attributes}')
    first, first_name = t.fresh(eight + values[2:], f'get-tuple-element(%{both_name}), index=0')
    second, second_name = t.fresh(places, f'get-tuple-element(%{both_name}), index=1')
    narrow, narrow_name = t.fresh(values, f'convert(%{first_name})')
    return [wide, both, first, second, narrow,
            t.line(i, [narrow_name, second_name], 'tuple', '')]


FAULTS = [
    (overlapping_update,
     'XLA:CPU updates an array in place by elements of its own that it has overwritten'),
    (bound_again,
     'XLA takes a clamp to be no less than its lower bound where the upper one is below that'),
    (reduction_that_loses_nan, "XLA:CPU's all-reduce by minimum or maximum loses NaN"),
    (integer_power, "XLA:CPU looks at six bits of the exponent of an integer's power, and "
                    'rewrites a power of -1 to 1 / x, which is -1 where x is 0'),
    (bits_of_narrow, 'XLA:CPU counts other bits of a signed number of 4 than its own'),
    (folded_zeros, 'XLA folds count-leading-zeros of a negative constant to a negative number'),
    (folded_division, 'XLA dies where it folds a division of integers by 0'),
    (negative_padding, 'XLA:CPU reads outside of the operand, or dies, where the padding of a '
                       'convolution is negative'),
    (dilated_groups, 'XLA dies over a convolution in groups whose operand is dilated'),
    (scatter_without_indices, 'XLA:CPU leaves out updates of a scatter without index dimensions'),
    (narrow_top, "XLA's topk-decomposer gives the layout of a 4-bit operand to its s32 iota"),
]

# Which jaxlib 0.12 has no longer.
GONE = [folded_zeros, folded_division, scatter_without_indices]


def applied(text, faults):
    """The module without what has these faults, by their indices, and which it had."""
    t, had = Text(text), set()
    lines = []
    for k, line in enumerate(t.lines):
        pending = [line]
        if k in t.at:
            for number in faults:
                # A rewriting may leave what another one is for.
                i = Instruction(pending[-1])
                more = FAULTS[number][0](t, i)
                if more is not None:
                    had.add(number)
                    pending[-1:] = more
        lines += pending
    return '\n'.join(lines), had
