# SPDX-License-Identifier: Apache-2.0
"""HLO programs of any size n, each large in one way: an op of n operands, a chain of n
ops, n computations. measure_costs.py asks what commands take for them.

Each function gives the text of a program for 8 partitions. Arrays are small, so that the
count of whatever there are n of is all that grows.
"""
N_PARTITIONS = 8
ROW = 'f32[16,8]'
SHARDED = 'sharding={devices=[8,1]<=[8]}'
OTHER = 'sharding={devices=[1,8]<=[8]}'
WHOLE = 'sharding={replicated}'
ADD = ('add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n'
       '  ROOT s = f32[] add(a, b)\n}\n')


def module(lines, computations='', header=''):
    """A module with the entry's lines, whose last one is the root."""
    *body, root = lines
    body = ''.join(f'  {line}\n' for line in body)
    return (f'HloModule m, num_partitions={N_PARTITIONS}{header}\n\n{computations}\n'
            f'ENTRY main {{\n{body}  ROOT {root}\n}}\n')


def computation(name, lines):
    *body, root = lines
    body = ''.join(f'  {line}\n' for line in body)
    return f'{name} {{\n{body}  ROOT {root}\n}}\n'


def names(prefix, n):
    return ', '.join(f'{prefix}{i}' for i in range(n))


def types(n, one=ROW):
    return ', '.join([one] * n)


def distinct(n, annotated=SHARDED):
    """n ops of one parameter, v0 to v(n-1)."""
    return ([f'p = {ROW} parameter(0), {annotated}'] +
            [f'v{i} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(p)' for i in range(n)])


def whole_tuple(n, annotated=SHARDED):
    inner = annotated.removeprefix('sharding=')
    return 'sharding={' + ', '.join([inner] * n) + '}'


def concatenate(n):
    """One concatenate of n operands along the dimension that is sharded."""
    return module([*distinct(n),
                   f'c = f32[{16 * n},8] concatenate({names("v", n)}), dimensions={{0}}, {SHARDED}'])


def concatenate_same(n):
    """The same with one operand n times."""
    return module([f'p = {ROW} parameter(0), {SHARDED}',
                   f'c = f32[{16 * n},8] concatenate({", ".join(["p"] * n)}), dimensions={{0}}, {SHARDED}'])


def concatenate_uneven(n):
    """Operands of 3 rows, which no shard's edge meets."""
    rows = [f'v{i} = f32[3,8] slice(p), slice={{[{i % 13}:{i % 13 + 3}], [0:8]}}' for i in range(n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}', *rows,
                   f'c = f32[{3 * n},8] concatenate({names("v", n)}), dimensions={{0}}, {SHARDED}'])


def concatenate_along_free(n):
    """One concatenate of n operands along a dimension that is whole."""
    return module([*distinct(n),
                   f'c = f32[16,{8 * n}] concatenate({names("v", n)}), dimensions={{1}}, {SHARDED}'])


def tuple_of(n):
    """A tuple of n elements as the result."""
    return module([*distinct(n), f't = ({types(n)}) tuple({names("v", n)})'])


def tuple_elements(n):
    """A tuple of n elements that is taken apart again."""
    lines = [*distinct(n), f't = ({types(n)}) tuple({names("v", n)})']
    lines += [f'g{i} = {ROW} get-tuple-element(t), index={i}' for i in range(n)]
    lines += [f'x{i} = {ROW} add({f"x{i - 1}" if i else "p"}, g{i})' for i in range(n)]
    return module(lines)


def nested_tuples(n):
    """A tuple in a tuple, n deep."""
    depth = min(n, 200)
    shape, lines = ROW, [f'p = {ROW} parameter(0), {SHARDED}', f'v0 = {ROW} negate(p)']
    for i in range(depth):
        shape = f'({shape})'
        lines.append(f'v{i + 1} = {shape} tuple(v{i})')
    return module(lines)


def barrier(n):
    """An optimization barrier over n elements."""
    return module([*distinct(n), f't = ({types(n)}) tuple({names("v", n)})',
                   f'b = ({types(n)}) opt-barrier(t)',
                   f'g = {ROW} get-tuple-element(b), index=0'])


def while_loop(n):
    """A loop that carries n elements, each changed by the body."""
    carried = f'(s32[], {types(n)})'
    cond = computation('cond', [f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
                                'k = s32[] constant(3)', 'c = pred[] compare(i, k), direction=LT'])
    body = [f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
            'one = s32[] constant(1)', 'j = s32[] add(i, one)']
    body += [f'g{i} = {ROW} get-tuple-element(t), index={i + 1}' for i in range(n)]
    body += [f'v{i} = {ROW} negate(g{i})' for i in range(n)]
    body += [f'r = {carried} tuple(j, {names("v", n)})']
    return module([*distinct(n), 'z = s32[] constant(0)', f't = {carried} tuple(z, {names("v", n)})',
                   f'w = {carried} while(t), condition=cond, body=body',
                   f'g = {ROW} get-tuple-element(w), index=1'], cond + computation('body', body))


def while_passed(n):
    """A loop whose body hands its n elements on as they are, but for the first."""
    carried = f'(s32[], {types(n)})'
    cond = computation('cond', [f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
                                'k = s32[] constant(3)', 'c = pred[] compare(i, k), direction=LT'])
    body = [f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
            'one = s32[] constant(1)', 'j = s32[] add(i, one)']
    body += [f'g{i} = {ROW} get-tuple-element(t), index={i + 1}' for i in range(n)]
    body += [f'r = {carried} tuple(j, {names("g", n)})']
    return module([*distinct(n), 'z = s32[] constant(0)', f't = {carried} tuple(z, {names("v", n)})',
                   f'w = {carried} while(t), condition=cond, body=body'], cond + computation('body', body))


def whiles(n):
    """n loops, one after the other, each with a body of its own."""
    carried = f'(s32[], {ROW})'
    parts, lines = [], [f'p = {ROW} parameter(0), {SHARDED}', 'z = s32[] constant(0)']
    for i in range(n):
        parts.append(computation(f'cond{i}', [
            f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
            'k = s32[] constant(3)', 'c = pred[] compare(i, k), direction=LT']))
        parts.append(computation(f'body{i}', [
            f't = {carried} parameter(0)', 'i = s32[] get-tuple-element(t), index=0',
            'one = s32[] constant(1)', 'j = s32[] add(i, one)', f'g = {ROW} get-tuple-element(t), index=1',
            f'v = {ROW} negate(g)', f'r = {carried} tuple(j, v)']))
        lines += [f't{i} = {carried} tuple(z, {f"g{i - 1}" if i else "p"})',
                  f'w{i} = {carried} while(t{i}), condition=cond{i}, body=body{i}',
                  f'g{i} = {ROW} get-tuple-element(w{i}), index=1']
    return module(lines, ''.join(parts))


def branches(n):
    """A conditional of n branches."""
    parts = [computation(f'b{i}', [f'a = {ROW} parameter(0)', f'r = {ROW} {("negate", "abs")[i % 2]}(a)'])
             for i in range(n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}', 'i = s32[] parameter(1)',
                   f'c = {ROW} conditional(i, {", ".join(["p"] * n)}), branch_computations={{{names("b", n)}}}'],
                  ''.join(parts))


def branch_elements(n):
    """A conditional whose branches take and give n elements."""
    shape = f'({types(n)})'
    parts = []
    for b, op in (('b0', 'negate'), ('b1', 'abs')):
        parts.append(computation(b, [
            f't = {shape} parameter(0)', *[f'g{i} = {ROW} get-tuple-element(t), index={i}' for i in range(n)],
            *[f'v{i} = {ROW} {op}(g{i})' for i in range(n)], f'r = {shape} tuple({names("v", n)})']))
    return module([*distinct(n), 'q = pred[] parameter(1)', f't = {shape} tuple({names("v", n)})',
                   f'c = {shape} conditional(q, t, t), true_computation=b0, false_computation=b1'],
                  ''.join(parts))


def parameters(n):
    """n parameters, all summed."""
    lines = [f'p{i} = {ROW} parameter({i}), {SHARDED}' for i in range(n)]
    return module(lines + [f'x{i} = {ROW} add({f"x{i - 1}" if i else "p0"}, p{i})' for i in range(n)])


def parameters_donated(n):
    """n parameters that become n results, each donated to its result."""
    lines = [f'p{i} = {ROW} parameter({i}), {SHARDED}' for i in range(n)]
    lines += [f'v{i} = {ROW} negate(p{i})' for i in range(n)]
    alias = ', '.join(f'{{{i}}}: ({i}, {{}}, may-alias)' for i in range(n))
    return module(lines + [f't = ({types(n)}) tuple({names("v", n)})'],
                  header=f', input_output_alias={{ {alias} }}')


def parameter_tuple(n):
    """One parameter that is a tuple of n elements."""
    lines = [f'p = ({types(n)}) parameter(0), {whole_tuple(n)}']
    lines += [f'g{i} = {ROW} get-tuple-element(p), index={i}' for i in range(n)]
    return module(lines + [f'x{i} = {ROW} add({f"x{i - 1}" if i else "g0"}, g{i})' for i in range(n)])


def resharded_results(n):
    """n results, each wanted sharded along another dimension."""
    return module([*distinct(n), f't = ({types(n)}) tuple({names("v", n)}), {whole_tuple(n, OTHER)}'])


def sum_of_parameters(n, shape):
    """The computation f, which adds up its n parameters."""
    return computation('f', [f'p{i} = {shape} parameter({i})' for i in range(n)] +
                       [f'x{i} = {shape} add({f"x{i - 1}" if i else "p0"}, p{i})' for i in range(n)])


def called_parameters(n):
    """A call that may not be inlined, of a computation of n parameters."""
    part = sum_of_parameters(n, ROW)
    return module([*distinct(n), f'c = {ROW} call({names("v", n)}), to_apply=f, is_composite=true, '
                   'frontend_attributes={composite.attributes={},composite.name="f",composite.version="0"}'], part)


def inlined_parameters(n):
    """A call of a computation of n parameters."""
    part = sum_of_parameters(n, ROW)
    return module([*distinct(n), f'c = {ROW} call({names("v", n)}), to_apply=f'], part)


def fused_parameters(n):
    """A fusion of n parameters."""
    part = sum_of_parameters(n, ROW)
    return module([*distinct(n), f'c = {ROW} fusion({names("v", n)}), kind=kLoop, calls=f'], part)


def computations(n):
    """n computations, each called once."""
    parts = [computation(f'fn{i}', [f'a = {ROW} parameter(0)', f'r = {ROW} negate(a)']) for i in range(n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}'] +
                  [f'y{i} = {ROW} call({f"y{i - 1}" if i else "p"}), to_apply=fn{i}' for i in range(n)],
                  ''.join(parts))


def fusions(n):
    """n fusions, each with a computation of its own."""
    parts = [computation(f'fn{i}', [f'a = {ROW} parameter(0)', f'r = {ROW} negate(a)']) for i in range(n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}'] +
                  [f'y{i} = {ROW} fusion({f"y{i - 1}" if i else "p"}), kind=kLoop, calls=fn{i}' for i in range(n)],
                  ''.join(parts))


def calls(n):
    """n calls of one computation."""
    part = computation('f', [f'a = {ROW} parameter(0)', f'b = {ROW} negate(a)', f'r = {ROW} abs(b)'])
    return module([f'p = {ROW} parameter(0), {SHARDED}'] +
                  [f'y{i} = {ROW} call({f"y{i - 1}" if i else "p"}), to_apply=f' for i in range(n)], part)


def nested_calls(n):
    """A call in a call, n deep."""
    parts = [computation('fn0', [f'a = {ROW} parameter(0)', f'r = {ROW} negate(a)'])]
    parts += [computation(f'fn{i}', [f'a = {ROW} parameter(0)', f'r = {ROW} call(a), to_apply=fn{i - 1}'])
              for i in range(1, n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}', f'c = {ROW} call(p), to_apply=fn{n - 1}'], ''.join(parts))


def reduces(n):
    """n reductions of a sharded dimension, with a computation each."""
    parts = [ADD.replace('add {', f'add{i} {{') for i in range(n)]
    return module([f'p = {ROW} parameter(0), {SHARDED}', 'z = f32[] constant(0)'] +
                  [f'r{i} = f32[8] reduce(p, z), dimensions={{0}}, to_apply=add{i}' for i in range(n)] +
                  [f'x{i} = f32[8] add({f"x{i - 1}" if i else "r0"}, r{i})' for i in range(n)], ''.join(parts))


def reduced_operands(n):
    """One reduce of n operands."""
    part = computation('f', [f'a{i} = f32[] parameter({i})' for i in range(2 * n)] +
                       [f'x{i} = f32[] add(a{i}, a{n + i})' for i in range(n)] +
                       [f't = ({types(n, "f32[]")}) tuple({names("x", n)})'])
    return module([*distinct(n), 'z = f32[] constant(0)',
                   f'r = ({types(n, "f32[16]")}) reduce({names("v", n)}, {", ".join(["z"] * n)}), '
                   'dimensions={1}, to_apply=f'], part)


def all_reduced_operands(n):
    """One all-reduce of n operands in a manual region."""
    return module([f'p = {ROW} parameter(0), {SHARDED}',
                   'm = f32[2,8] custom-call(p), custom_call_target="SPMDFullToShardShape", sharding={manual}'] +
                  [f'v{i} = f32[2,8] negate(m), sharding={{manual}}' for i in range(n)] +
                  [f'r = ({types(n, "f32[2,8]")}) all-reduce({names("v", n)}), channel_id=1, '
                   'replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=add, ' +
                   whole_tuple(n, 'sharding={manual}'),
                   'g = f32[2,8] get-tuple-element(r), index=0, sharding={manual}',
                   f'o = {ROW} custom-call(g), custom_call_target="SPMDShardToFullShape", {SHARDED}'], ADD)


def all_to_all_operands(n):
    """n all-to-alls, each of eight operands, in a manual region."""
    lines = [f'p = {ROW} parameter(0), {SHARDED}',
             'v0 = f32[2,8] custom-call(p), custom_call_target="SPMDFullToShardShape", sharding={manual}']
    for i in range(n):
        lines += [f't{i} = ({types(8, "f32[2,8]")}) all-to-all({", ".join([f"v{i}"] * 8)}), channel_id=1, '
                  'replica_groups={{0,1,2,3,4,5,6,7}}, ' + whole_tuple(8, 'sharding={manual}'),
                  f'v{i + 1} = f32[2,8] get-tuple-element(t{i}), index=0, sharding={{manual}}']
    return module([*lines, f'o = {ROW} custom-call(v{n}), custom_call_target="SPMDShardToFullShape", {SHARDED}'])


def manual_regions(n):
    """n manual regions, one after the other."""
    lines = [f'p0 = {ROW} parameter(0), {SHARDED}']
    for i in range(n):
        lines += [f'm{i} = f32[2,8] custom-call(p{i}), custom_call_target="SPMDFullToShardShape", sharding={{manual}}',
                  f'v{i} = f32[2,8] negate(m{i}), sharding={{manual}}',
                  f'p{i + 1} = {ROW} custom-call(v{i}), custom_call_target="SPMDShardToFullShape", {SHARDED}']
    return module([*lines, f'o = {ROW} negate(p{n})'])


def called_operands(n):
    """A custom call of n operands."""
    return module([*distinct(n), f'c = {ROW} custom-call({names("v", n)}), custom_call_target="many", '
                   'api_version=API_VERSION_TYPED_FFI'])


def called_results(n):
    """A custom call of n results."""
    return module([f'p = {ROW} parameter(0), {SHARDED}',
                   f'c = ({types(n)}) custom-call(p), custom_call_target="many", api_version=API_VERSION_TYPED_FFI'])


def called_aliases(n):
    """A custom call whose n results are its n operands, in place."""
    alias = ', '.join(f'{{{i}}}: ({i}, {{}})' for i in range(n))
    return module([*distinct(n), f'c = ({types(n)}) custom-call({names("v", n)}), custom_call_target="many", '
                   f'output_to_operand_aliasing={{{alias}}}, api_version=API_VERSION_TYPED_FFI'])


def replicated_operands(n):
    """A custom call of n operands that nothing is known of."""
    return module([*distinct(n), f'c = {ROW} custom-call({names("v", n)}), custom_call_target="unknown", '
                   'api_version=API_VERSION_TYPED_FFI'])


def sorted_operands(n):
    """A sort of n operands along a sharded dimension."""
    part = computation('lt', [f'a{i} = f32[] parameter({i})' for i in range(2 * n)] +
                       ['c = pred[] compare(a0, a1), direction=LT'])
    return module([*distinct(n), f's = ({types(n)}) sort({names("v", n)}), dimensions={{0}}, to_apply=lt'], part)


def sorts(n):
    """n sorts along a sharded dimension."""
    part = computation('lt', ['a = f32[] parameter(0)', 'b = f32[] parameter(1)',
                              'c = pred[] compare(a, b), direction=LT'])
    return module([f'v0 = {ROW} parameter(0), {SHARDED}'] +
                  [f'v{i + 1} = {ROW} sort(v{i}), dimensions={{0}}, to_apply=lt' for i in range(n)], part)


def scattered_operands(n):
    """A scatter into n operands."""
    part = computation('f', [f'a{i} = f32[] parameter({i})' for i in range(2 * n)] +
                       [f'x{i} = f32[] add(a{i}, a{n + i})' for i in range(n)] +
                       [f't = ({types(n, "f32[]")}) tuple({names("x", n)})'])
    return module([*distinct(n), 'i = s32[4,1] parameter(1)', 'u = f32[4,8] parameter(2)',
                   f'c = ({types(n)}) scatter({names("v", n)}, i, {", ".join(["u"] * n)}), '
                   'update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, '
                   'index_vector_dim=1, to_apply=f'], part)


def mapped_operands(n):
    """A map over n operands."""
    part = sum_of_parameters(n, 'f32[]')
    return module([*distinct(n), f'c = {ROW} map({names("v", n)}), dimensions={{0,1}}, to_apply=f'], part)


def dynamic_slices(n):
    """A chain of dynamic slices and updates along a sharded dimension."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', 'i = s32[] parameter(1)', 'z = s32[] constant(0)']
    for k in range(n):
        lines += [f'x{k} = f32[2,8] dynamic-slice(v{k}, i, z), dynamic_slice_sizes={{2,8}}',
                  f'v{k + 1} = {ROW} dynamic-update-slice(v{k}, x{k}, i, z)']
    return module([*lines, f'o = {ROW} negate(v{n})'])


def slices(n):
    """n slices of one value along a sharded dimension."""
    lines = [f'p = {ROW} parameter(0), {SHARDED}']
    lines += [f'x{i} = f32[8,8] slice(p), slice={{[{i % 9}:{i % 9 + 8}], [0:8]}}' for i in range(n)]
    return module(lines + [f'a{i} = f32[8,8] add({f"a{i - 1}" if i else "x0"}, x{i})' for i in range(n)])


def slices_of_long(n):
    """A value of n rows that is cut into its rows."""
    lines = [f'p = f32[{8 * n},8] parameter(0), {SHARDED}']
    lines += [f'x{i} = f32[8,8] slice(p), slice={{[{8 * i}:{8 * i + 8}], [0:8]}}' for i in range(n)]
    return module(lines + [f'a{i} = f32[8,8] add({f"a{i - 1}" if i else "x0"}, x{i})' for i in range(n)])


def pads(n):
    """A chain of pads and slices along a sharded dimension."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', 'z = f32[] constant(0)']
    for k in range(n):
        lines += [f'x{k} = f32[18,8] pad(v{k}, z), padding=1_1x0_0',
                  f'v{k + 1} = {ROW} slice(x{k}), slice={{[0:16], [0:8]}}']
    return module([*lines, f'o = {ROW} negate(v{n})'])


def users(n):
    """One value with n users, each with a sharding of its own or none."""
    lines = [f'p = {ROW} parameter(0), {SHARDED}', f'q = {ROW} abs(p)']
    lines += [f'v{i} = {ROW} negate(q){("", ", " + OTHER, ", " + WHOLE)[i % 3]}' for i in range(n)]
    return module(lines + [f'x{i} = {ROW} add({f"x{i - 1}" if i else "v0"}, v{i})' for i in range(n)])


def user_tuple(n):
    """One value that stands n times in a tuple."""
    return module([f'p = {ROW} parameter(0), {SHARDED}', f'q = {ROW} abs(p)',
                   f't = ({types(n)}) tuple({", ".join(["q"] * n)})'])


def chain(n):
    """n elementwise ops in a row."""
    return module([f'v0 = {ROW} parameter(0), {SHARDED}'] +
                  [f'v{i + 1} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(v{i})' for i in range(n)])


def chain_backwards(n):
    """n elementwise ops in a row, the last of which alone is sharded."""
    return module([f'v0 = {ROW} parameter(0)'] +
                  [f'v{i + 1} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(v{i})' for i in range(n)] +
                  [f'r = {ROW} negate(v{n}), {SHARDED}'])


def tree(n):
    """About n ops: half of them of a parameter, the others sums of two, up to one."""
    half = max(n // 2, 1)
    lines = [f'p = {ROW} parameter(0), {SHARDED}']
    lines += [f'v{half + i} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(p)' for i in range(half)]
    lines += [f'v{i} = {ROW} add(v{2 * i}, v{2 * i + 1})' for i in range(half - 1, 0, -1)]
    return module(lines)


def tree_backwards(n):
    """The same, of n/2 parameters that may be sharded, and only the root is."""
    half = max(n // 2, 1)
    lines = [f'p{i} = {ROW} parameter({i})' for i in range(half)]
    lines += [f'v{half + i} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(p{i})' for i in range(half)]
    lines += [f'v{i} = {ROW} add(v{2 * i}, v{2 * i + 1})' for i in range(half - 1, 0, -1)]
    return module(lines + [f'r = {ROW} negate(v1), {SHARDED}'],
                  header=', allow_spmd_sharding_propagation_to_parameters={true}')


def ladder(n):
    """n ops, each of which has both ops before it as operands."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', f'v1 = {ROW} negate(v0)']
    lines += [f'v{i} = {ROW} {("add", "multiply", "subtract", "maximum")[i % 4]}(v{i - 1}, v{i - 2})'
              for i in range(2, n)]
    return module(lines)


def ladder_of_products(n):
    """n/2 products in a row that each wait for the order of their op, with a sum of both sides after each."""
    lines = ['v0 = f32[16,16] parameter(0), ' + SHARDED, 'w = f32[16,16] parameter(1)']
    for i in range(n // 2):
        lines += [f'd{i} = f32[16,16] dot(v{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}',
                  f'v{i + 1} = f32[16,16] add(v{i}, d{i})']
    return module(lines)


def chain_with_collectives(n, every=5):
    """n ops in a row, each `every` of which wants the other dimension sharded."""
    lines, kinds = [f'v0 = {ROW} parameter(0), {SHARDED}'], (OTHER, SHARDED)
    for i in range(n):
        wanted = f', {kinds[i // every % 2]}' if i % every == 0 else ''
        lines.append(f'v{i + 1} = {ROW} {("negate", "cosine", "sine", "abs")[i % 4]}(v{i}){wanted}')
    return module(lines)


def chain_of_halos(n):
    """n ops in a row, each fourth of which takes rows of other devices, too."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', 'z = f32[] constant(0)']
    for i in range(n):
        op = 'pad(v{}, z), padding=1_-1x0_0' if i % 4 == 3 else 'negate(v{})'
        lines.append(f'v{i + 1} = {ROW} ' + op.format(i))
    return module(lines)


def chain_of_products(n):
    """n products of matrices, each of which is summed over the devices."""
    lines = ['v0 = f32[16,16] parameter(0), ' + OTHER, 'w = f32[16,16] parameter(1), ' + SHARDED]
    for i in range(n):
        lines.append(f'v{i + 1} = f32[16,16] dot(v{i}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {OTHER}')
    return module(lines)


def chain_of_sums(n):
    """n ops in a row, each fourth a reduction over the devices whose result is spread again."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', 'z = f32[] constant(0)']
    for i in range(0, n, 4):
        lines += [f'r{i} = f32[8] reduce(v{i}, z), dimensions={{0}}, to_apply=add',
                  f'b{i} = {ROW} broadcast(r{i}), dimensions={{1}}', f'y{i} = {ROW} cosine(b{i})',
                  f'v{i + 4} = {ROW} add(v{i}, y{i})']
    return module(lines, ADD)


def shared_reasons(n):
    """A ladder: each op has both ops before it as operands, and each fourth asks for another sharding."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}', f'v1 = {ROW} negate(v0)']
    for i in range(2, n):
        wanted = f', {(OTHER, SHARDED)[i // 4 % 2]}' if i % 4 == 0 else ''
        lines.append(f'v{i} = {ROW} add(v{i - 1}, v{i - 2}){wanted}')
    return module(lines)


def control_edges(n):
    """n ops, all control predecessors of one."""
    return module([*distinct(n), f'o = {ROW} negate(p), control-predecessors={{{names("v", n)}}}'])


def constants(n):
    """n constants of 8 elements."""
    return module(['p = f32[8] parameter(0)'] +
                  [f'k{i} = f32[8] constant({{{", ".join(str(i + j) for j in range(8))}}})' for i in range(n)] +
                  [f'x{i} = f32[8] add({f"x{i - 1}" if i else "p"}, k{i})' for i in range(n)])


def constant_elements(n):
    """A constant of n elements."""
    return module([f'k = f32[{n}] constant({{{", ".join(str(i) for i in range(n))}}}), sharding={{devices=[8]<=[8]}}',
                   f'o = f32[{n}] negate(k)'])


def constant_tuple(n):
    """n scalar constants in a tuple."""
    return module([f'k{i} = f32[] constant({i})' for i in range(n)] +
                  [f't = ({types(n, "f32[]")}) tuple({names("k", n)})'])


def wide_metadata(n):
    """n ops with metadata each."""
    return module([f'v0 = {ROW} parameter(0), {SHARDED}'] +
                  [f'v{i + 1} = {ROW} negate(v{i}), metadata={{op_name="jit(f)/layer_{i}/neg" '
                   f'source_file="f{i}.py" source_line={i}}}, frontend_attributes={{a="{i}"}}' for i in range(n)])


def shape_kinds(n):
    """n ops of n different shapes."""
    return module(['p = f32[] parameter(0)'] +
                  [f'v{i} = f32[{i + 1}] broadcast(p), dimensions={{}}' for i in range(n)] +
                  [f't = ({", ".join(f"f32[{i + 1}]" for i in range(n))}) tuple({names("v", n)})'])


def reshapes(n):
    """A chain of transposes and reshapes."""
    lines = [f'v0 = {ROW} parameter(0), {SHARDED}']
    for i in range(n):
        lines += [f't{i} = f32[8,16] transpose(v{i}), dimensions={{1,0}}', f'v{i + 1} = {ROW} reshape(t{i})']
    return module([*lines, f'o = {ROW} negate(v{n})'])


def asynchronous(n):
    """n collectives that are started and finished, in a manual region."""
    lines = [f'p = {ROW} parameter(0), {SHARDED}',
             'v0 = f32[2,8] custom-call(p), custom_call_target="SPMDFullToShardShape", sharding={manual}']
    for i in range(n):
        lines += [f'x{i} = f32[2,8] all-reduce-start(v{i}), channel_id=1, replica_groups={{{{0,1,2,3,4,5,6,7}}}}, '
                  'use_global_device_ids=true, to_apply=add, sharding={manual}',
                  f'v{i + 1} = f32[2,8] all-reduce-done(x{i}), sharding={{manual}}']
    return module([*lines, f'o = {ROW} custom-call(v{n}), custom_call_target="SPMDShardToFullShape", {SHARDED}'], ADD)


def tokens(n):
    """n tokens joined by one after-all."""
    return module(['p = f32[8] parameter(0)'] + [f'k{i} = token[] after-all()' for i in range(n)] +
                  [f'k = token[] after-all({names("k", n)})', 'o = f32[8] negate(p)'])


def sub_axis_reshards(n):
    """n ops in a row over 16,384 devices, a mesh of 7 axes of 4, each with another half of other axes."""
    def placed(k):
        # Tile dimension d has the first or second half of axis (d + k) % 7, for four of the axes.
        mine = [2 * ((d + k) % 7) + (d * (k + 1) + k) % 2 for d in range(4)]
        rest = [a for a in range(14) if a not in mine]
        order = ','.join(str(a) for a in mine + rest)
        return (f'sharding={{devices=[2,2,2,2,{2 ** len(rest)}]<=[{",".join(["2"] * 14)}]T({order}) '
                'last_tile_dim_replicate}')
    lines = [f'v0 = f32[16,16,16,16] parameter(0), {placed(0)}']
    lines += [f'v{i + 1} = f32[16,16,16,16] negate(v{i}), {placed(i + 1)}' for i in range(n)]
    return module(lines).replace(f'num_partitions={N_PARTITIONS}', f'num_partitions={4 ** 7}')


def summed_over_devices(devices):
    """A sum over that many devices."""
    body = module([f'p = f32[{devices}] parameter(0), sharding={{devices=[{devices}]<=[{devices}]}}',
                   'z = f32[] constant(0)', 'r = f32[] reduce(p, z), dimensions={0}, to_apply=add'], ADD)
    return body.replace(f'num_partitions={N_PARTITIONS}', f'num_partitions={devices}')


# Custom calls that nothing computes.
WITHOUT_KERNEL = {'called_operands', 'called_results', 'called_aliases', 'replicated_operands'}


def all_programs():
    """Name and function of each program that has n of something and 8 devices."""
    helpers = {'module', 'computation', 'names', 'types', 'distinct', 'whole_tuple', 'all_programs',
               'sum_of_parameters', 'sub_axis_reshards', 'summed_over_devices'}
    return {name: f for name, f in globals().items()
            if callable(f) and getattr(f, '__module__', '') == __name__ and name not in helpers}
