# SPDX-License-Identifier: Apache-2.0
"""Programs of several instructions, and whole modules, for verifier_cases.py."""

import os

PROGRAMS = [
    # Asynchronous forms.
    '''x = f32[2] parameter(0)
s = (f32[2], f32[8]) all-gather-start(x), dimensions={0}
ROOT d = f32[8] all-gather-done(s)''',
    '''x = f32[2] parameter(0)
y = s32[1] parameter(1)
s = ((f32[2], s32[1]), (f32[8], s32[4])) all-gather-start(x, y), dimensions={0}
ROOT d = (f32[8], s32[4]) all-gather-done(s)''',
    '''x = f32[2] parameter(0)
s = f32[2] all-reduce-start(x), to_apply=add_f32
ROOT d = f32[2] all-reduce-done(s)''',
    '''x = f32[2] parameter(0)
y = f32[3] parameter(1)
s = (f32[2], f32[3]) all-reduce-start(x, y), to_apply=add_f32
ROOT d = (f32[2], f32[3]) all-reduce-done(s)''',
    '''x = f32[2] parameter(0)
s = (f32[2], f32[2]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}
ROOT d = f32[2] collective-permute-done(s)''',
    '''x = f32[2] parameter(0)
s = (f32[2], f32[2], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}
ROOT d = f32[2] collective-permute-done(s)''',
    '''x = f32[2] parameter(0)
s = (f32[2], f32[2], u32[]) copy-start(x)
ROOT d = f32[2] copy-done(s)''',
    '''x = f32[4] parameter(0)
s = ((f32[4]), f32[4], s32[]) async-start(x), calls=vec_f32
u = ((f32[4]), f32[4], s32[]) async-update(s)
ROOT d = f32[4] async-done(u)''',
    '''x = f32[4] parameter(0)
s = ((f32[4]), f32[4]) async-start(x), calls=vec_f32
ROOT d = f32[4] async-done(s)''',
    '''x = f32[8] parameter(0)
s = ((f32[8]), f32[2]) reduce-scatter-start(x), dimensions={0}, to_apply=add_f32
ROOT d = f32[2] reduce-scatter-done(s)''',
    '''x = f32[4] parameter(0)
y = f32[4] parameter(1)
s = ((f32[4], f32[4]), f32[4], u32[]) add-start(x, y)
ROOT d = f32[4] add-done(s)''',
    '''x = f32[4] parameter(0)
s = ((f32[4]), f32[4]) custom-call-start(x), custom_call_target="t"
ROOT d = f32[4] custom-call-done(s)''',
    # Transfers.
    '''x = f32[2] parameter(0)
t = token[] after-all()
s = (f32[2], u32[], token[]) send(x, t), channel_id=1
ROOT d = token[] send-done(s), channel_id=1''',
    '''t = token[] after-all()
s = (f32[2], u32[], token[]) recv(t), channel_id=2
ROOT d = (f32[2], token[]) recv-done(s), channel_id=2''',
    '''x = f32[2] parameter(0)
t = token[] after-all()
s = (f32[2], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true
d = token[] send-done(s), channel_id=1, is_host_transfer=true
r = (f32[2], u32[], token[]) recv(d), channel_id=2, is_host_transfer=true
ROOT e = (f32[2], token[]) recv-done(r), channel_id=2, is_host_transfer=true''',
    '''t = token[] after-all()
i = ((f32[2], s32[]), token[]) infeed(t)
p = (f32[2], s32[]) get-tuple-element(i), index=0
u = token[] get-tuple-element(i), index=1
ROOT o = token[] outfeed(p, u), outfeed_shape=(f32[2], s32[])''',
    # Chains and control dependencies.
    '''x = f32[4] parameter(0)
a = f32[4] negate(x)
b = f32[4] exponential(x), control-predecessors={a}
ROOT c = f32[4] add(a, b), control-predecessors={b}''',
    '''x = f32[4] parameter(0)
y = s32[] parameter(1)
t = (f32[4], s32[]) tuple(x, y)
o = (f32[4], s32[]) opt-barrier(t)
a = f32[4] get-tuple-element(o), index=0
b = s32[] get-tuple-element(o), index=1
ROOT d = f32[<=4] set-dimension-size(a, b), dimensions={0}''',
    '''x = f32[4] parameter(0)
n = s32[] parameter(1)
d = f32[<=4] set-dimension-size(x, n), dimensions={0}
e = f32[<=4] exponential(d)
z = f32[] constant(0)
s = f32[] reduce(e, z), dimensions={0}, to_apply=add_f32
ROOT m = s32[] get-dimension-size(e), dimensions={0}''',
]

# Modules as they are, mostly about the header; nothing is done to them.
ENTRY = '\nENTRY e {\n a = f32[4] parameter(0)\n b = s32[2] parameter(1)\n' \
        ' n = f32[4] negate(a)\n ROOT t = (f32[4], s32[2]) tuple(n, b)\n}\n'
MODULES = [f'HloModule m{attributes}\n{ENTRY}' for attributes in '''
, input_output_alias={ {0}: (0, {}, may-alias) }
, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}) }
, input_output_alias={ {0}: (1, {}) }
, input_output_alias={ {0}: (2, {}) }
, input_output_alias={ {0}: (0, {0}) }
, input_output_alias={ {2}: (0, {}) }
, input_output_alias={ {}: (0, {}) }
, input_output_alias={ {0,0}: (0, {}) }
, input_output_alias={ {0}: (0, {}), {0}: (1, {}) }
, input_output_alias={ {0}: (0, {}), {1}: (0, {}) }
, buffer_donor={ (0, {}) }
, buffer_donor={ (0, {}), (1, {}) }
, buffer_donor={ (0, {}), (0, {}) }
, buffer_donor={ (2, {}) }
, buffer_donor={ (0, {0}) }
, buffer_donor={ (0, {}) }, input_output_alias={ {0}: (0, {}) }
, buffer_donor={ (1, {}) }, input_output_alias={ {0}: (0, {}) }
, entry_computation_layout={(f32[4]{0}, s32[2]{0})->(f32[4]{0}, s32[2]{0})}
, entry_computation_layout={(f32[4]{0})->(f32[4]{0}, s32[2]{0})}
, entry_computation_layout={(f32[4]{0}, s32[3]{0})->(f32[4]{0}, s32[2]{0})}
, entry_computation_layout={(f32[4]{0}, u32[2]{0})->(f32[4]{0}, s32[2]{0})}
, entry_computation_layout={(f32[4]{0}, s32[2]{0})->(f32[4]{0}, s32[3]{0})}
, entry_computation_layout={(f32[4]{0}, s32[2]{0})->f32[4]{0}}
, entry_computation_layout={(f32[<=4]{0}, s32[2]{0})->(f32[4]{0}, s32[2]{0})}
, is_scheduled=true
, replica_count=0
, num_partitions=0
, replica_count=-1
, replica_count=4, num_partitions=2
, allow_spmd_sharding_propagation_to_output={true,false}
, allow_spmd_sharding_propagation_to_output={true,false,true}
, allow_spmd_sharding_propagation_to_parameters={true,false}
, allow_spmd_sharding_propagation_to_parameters={true,false,true}
, alias_passthrough_params=true
'''.strip().splitlines()]


def _sharded(attribute, header=', num_partitions=4', shape='f32[8,4]'):
    return (f'HloModule m{header}\n\nENTRY e {{\n a = {shape} parameter(0){attribute}\n'
            f' ROOT n = {shape} copy(a)\n}}\n')


MODULES += [_sharded(f', sharding={{{text}}}') for text in '''
replicated
manual
unknown
maximal device=0
maximal device=3
maximal device=4
maximal device=-1
devices=[4,1]0,1,2,3
devices=[4,1]<=[4]
devices=[2,2]<=[4]
devices=[2,2]<=[2,2]T(1,0)
devices=[2,2]0,1,2,4
devices=[2,2]0,1,2,2
devices=[2,2]0,1,2
devices=[2,1]0,1
devices=[8,1]<=[8]
devices=[4]<=[4]
devices=[4,1,1]<=[4]
devices=[2,1,2]<=[4] last_tile_dim_replicate
devices=[2,1,2]<=[4] last_tile_dims={manual}
devices=[2,1,2]<=[4] last_tile_dims={replicated}
devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}
devices=[2,2,2]<=[8] last_tile_dim_replicate
devices=[16,1]<=[16]
mesh['a'=2,'b'=2], [{'a'}, {'b'}]
mesh['a'=4], [{'a'}, {}]
mesh['a'=8], [{'a'}, {}]
{replicated}
{devices=[4,1]<=[4], replicated}
'''.strip().splitlines()]
MODULES += [_sharded(f', sharding={{{text}}}', shape='(f32[8,4], s32[])') for text in '''
replicated
maximal device=1
{replicated, replicated}
{devices=[4,1]<=[4], replicated}
{devices=[4,1]<=[4], devices=[4]<=[4]}
{replicated}
{replicated, replicated, replicated}
devices=[4,1]<=[4]
'''.strip().splitlines()]
MODULES += [_sharded(f', parameter_replication={{{text}}}') for text in
            ('true', 'false', 'true,false')]
MODULES += [
    # Layouts.
    _sharded('', shape='f32[8,4]{0,1}'), _sharded('', shape='f32[8,4]{1,0:T(2,2)}'),
    _sharded('', shape='f32[8,4]{1,1}'), _sharded('', shape='f32[8,4]{2,0}'),
    _sharded('', shape='f32[8,4]{0}'), _sharded('', shape='f32[-8,4]'),
    # Roots and parameters.
    'HloModule m\nENTRY e {\n a = f32[] parameter(0)\n b = f32[] parameter(0)\n'
    ' ROOT c = f32[] add(a, b)\n}\n',
    'HloModule m\nENTRY e {\n a = f32[] parameter(1)\n ROOT c = f32[] negate(a)\n}\n',
    'HloModule m\nENTRY e {\n a = f32[] parameter(-1)\n ROOT c = f32[] negate(a)\n}\n',
    # A computation that is called in two ways.
    'HloModule m\nf {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n'
    ' ROOT c = f32[] add(a, b)\n}\nENTRY e {\n x = f32[] parameter(0)\n y = f32[4] parameter(1)\n'
    ' c = f32[] call(x, x), to_apply=f\n'
    ' ROOT r = f32[] reduce(y, c), dimensions={0}, to_apply=f\n}\n',
    'HloModule m\nf {\n a = f32[] parameter(0)\n ROOT c = f32[] negate(a)\n}\n'
    'ENTRY e {\n x = f32[] parameter(0)\n u = f32[] fusion(x), kind=kLoop, calls=f\n'
    ' ROOT v = f32[] fusion(u), kind=kLoop, calls=f\n}\n',
    # Channels used twice.
    'HloModule m, replica_count=2\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n'
    ' ROOT c = f32[] add(a, b)\n}\nENTRY e {\n x = f32[] parameter(0)\n'
    ' y = f32[] all-reduce(x), channel_id=1, to_apply=add\n'
    ' ROOT z = f32[] all-reduce(y), channel_id=1, to_apply=add\n}\n',
    'HloModule m, replica_count=2\nadd {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n'
    ' ROOT c = f32[] add(a, b)\n}\nENTRY e {\n x = f32[4] parameter(0)\n'
    ' y = f32[4] all-reduce(x), channel_id=1, to_apply=add\n'
    ' ROOT z = f32[8] all-gather(y), channel_id=1, dimensions={0}\n}\n',
    # Collectives in manual computations, threads.
    'HloModule m\nf {\n a = f32[] parameter(0)\n ROOT c = f32[] negate(a)\n'
    '}, execution_thread="t"\n'
    'ENTRY e {\n x = f32[] parameter(0)\n ROOT v = f32[] call(x), to_apply=f\n}\n',
    'HloModule m\nf {\n a = f32[] parameter(0)\n ROOT c = f32[] negate(a)\n'
    '}, execution_thread="t"\n'
    'ENTRY e {\n x = f32[] parameter(0)\n s = ((f32[]), f32[]) async-start(x), calls=f,'
    ' async_execution_thread="t"\n ROOT v = f32[] async-done(s)\n}\n',
    # A start with two dones, with none, and a done of another op.
    'HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n s = (f32[4], f32[4], u32[]) copy-start(x)\n'
    ' d = f32[4] copy-done(s)\n ROOT f = f32[4] copy-done(s)\n}\n',
    'HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n'
    ' ROOT s = (f32[4], f32[4], u32[]) copy-start(x)\n}\n',
    'HloModule m\nENTRY e {\n x = (f32[4], f32[4], u32[]) parameter(0)\n'
    ' ROOT d = f32[4] copy-done(x)\n}\n',
    'HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n s = (f32[4], f32[4], u32[]) copy-start(x)\n'
    ' g = f32[4] get-tuple-element(s), index=0\n d = f32[4] copy-done(s)\n'
    ' ROOT f = f32[4] add(g, d)\n}\n',
    'HloModule m, is_scheduled=true\nENTRY e {\n x = f32[4] parameter(0)\n'
    ' y = f32[4] negate(x)\n ROOT z = f32[4] add(x, y)\n}\n',
]

ADD = ('add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n')
NEGATE = 'f {\n a = f32[] parameter(0)\n ROOT c = f32[] negate(a)\n}\n'


def _module(body, computations='', header=''):
    return f'HloModule m{header}\n{computations}ENTRY e {{\n x = f32[4] parameter(0)\n' \
           f' y = f32[] parameter(1)\n{body}\n}}\n'


def _loop(loop='', condition='', body='', root='', call='', f='', g=''):
    return (f'HloModule m, num_partitions=4\nc {{\n a = f32[4] parameter(0){condition}\n'
            f' ROOT r = pred[] constant(true)\n}}\nb {{\n a = f32[4] parameter(0){body}\n'
            f' ROOT r = f32[4] negate(a){root}\n}}\n'
            f'f {{\n a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a){f}\n}}\n'
            f'g {{\n a = f32[4] parameter(0)\n ROOT r = f32[4] negate(a){g}\n}}\n'
            f'ENTRY e {{\n x = f32[4] parameter(0)\n p = pred[] constant(true)\n'
            f' w = f32[4] while(x), condition=c, body=b{loop}\n'
            f' ROOT d = f32[4] conditional(p, w, w), true_computation=f, '
            f'false_computation=g{call}\n}}\n')


CUT, WHOLE = ', sharding={devices=[4]<=[4]}', ', sharding={replicated}'
MODULES += [_loop(**{a: CUT, b: c}) for c in (CUT, WHOLE) for a, b in (
    ('loop', 'body'), ('loop', 'root'), ('loop', 'condition'), ('body', 'root'),
    ('call', 'f'), ('call', 'g'), ('f', 'g'), ('loop', 'call'))]
# Ways to write a sharding: which pairs a loop takes for one.
WAYS = [
    'replicated', 'manual', 'unknown', 'unreduced', 'maximal device=0',
    'maximal_mesh[device_id=0]', 'devices=[4]<=[4]', 'devices=[4]0,1,2,3', 'devices=[4]0,2,1,3',
    'devices=[4]<=[2,2]T(1,0)', 'devices=[4]<=[4] metadata={op_name="q"}',
    'devices=[4]<=[4] shard_as 1', 'devices=[2,2]<=[4] last_tile_dim_replicate',
    'devices=[2,2]1,0,2,3 last_tile_dim_replicate', 'devices=[2,2]<=[4] last_tile_dims={manual}',
    "mesh['a'=4], [{'a'}]", "mesh['b'=4], [{'b'}]", "mesh['a'=4], [{'a',?}]", "mesh['a'=4], [{?}]",
    "mesh['a'=4], device_ids=(0,2,1,3), [{'a'}]", "mesh['a'=4], device_ids=(1,0,2,3), [{}]",
    "mesh['a'=4], [{'a':(1)2}]", "mesh['a'=2,'b'=2], [{'a','b'}]", "mesh['a'=2,'b'=2], [{'a'}]",
    "mesh['a'=2,'b'=2], [{'a'}], replicated={'b'}", "mesh['a'=2,'b'=2], [{}], manual={'a','b'}",
    "mesh['a'=2,'b'=2], [{'a'}], manual={'b'}", "mesh['a'=2,'b'=2], [{}], unreduced={'a','b'}"]
MODULES += [_loop(body=f', sharding={{{a}}}', root=f', sharding={{{b}}}')
            for a in WAYS for b in WAYS]
MODULES += [
    # Fusions: dead code, a root that is used, two that share a computation.
    _module(' ROOT v = f32[] fusion(y), kind=kLoop, calls=f', NEGATE),
    _module(' ROOT v = f32[] fusion(y), kind=kLoop, calls=f',
            NEGATE.replace(' ROOT', ' d = f32[] abs(a)\n ROOT')),
    _module(' ROOT v = f32[] fusion(y), kind=kLoop, calls=f',
            NEGATE.replace('}', ' d = f32[] abs(c)\n}')),
    _module(' ROOT v = f32[] fusion(y, y), kind=kLoop, calls=f',
            NEGATE.replace(' ROOT', ' b = f32[] parameter(1)\n ROOT')),
    _module(' v = f32[] call(y), to_apply=f\n'
            ' ROOT w = f32[] fusion(v), kind=kLoop, calls=f', NEGATE),
    # Dead code elsewhere is no fault.
    _module(' d = f32[] abs(y)\n ROOT v = f32[] negate(y)'),
    # Constrained and free all-reduces.
    _module(' r = f32[4] all-reduce(x), constrain_layout=true, to_apply=add\n'
            ' ROOT s = f32[4] all-reduce(r), constrain_layout=true, to_apply=add', ADD),
    _module(' r = f32[4] all-reduce(x), constrain_layout=true, to_apply=add\n'
            ' ROOT s = f32[4] all-reduce(r), to_apply=add', ADD),
    # Channels.
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) send(x, t), channel_id=1\n'
            ' d = token[] send-done(s), channel_id=1\n'
            ' ROOT r = f32[4] all-reduce(x), channel_id=1, to_apply=add', ADD),
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) send(x, t), channel_id=1\n'
            ' d = token[] send-done(s), channel_id=1\n'
            ' q = (f32[4], u32[], token[]) send(x, d), channel_id=1\n'
            ' ROOT e = token[] send-done(q), channel_id=1'),
    _module(' t = token[] after-all()\n'
            ' ROOT s = (f32[4], u32[], token[]) send(x, t), channel_id=1'),
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) send(x, t), channel_id=1\n'
            ' g = f32[4] get-tuple-element(s), index=0\n'
            ' ROOT d = token[] send-done(s), channel_id=1'),
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) send(x, t), channel_id=1\n'
            ' ROOT d = token[] send-done(s), channel_id=2'),
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) send(x, t), channel_id=1\n'
            ' u = ((f32[4], u32[], token[])) tuple(s)\n'
            ' v = (f32[4], u32[], token[]) get-tuple-element(u), index=0\n'
            ' ROOT d = token[] send-done(v), channel_id=1'),
    _module(' t = token[] after-all()\n s = (f32[4], u32[], token[]) recv(t), channel_id=1\n'
            ' ROOT d = token[] send-done(s), channel_id=1'),
    # Pairs.
    _module(' s = f32[4] all-reduce-start(x), to_apply=add\n d = f32[4] all-reduce-done(s)\n'
            ' ROOT e = f32[4] all-reduce-done(s)', ADD),
    _module(' s = f32[4] all-reduce-start(x), to_apply=add\n ROOT d = f32[4] negate(s)', ADD),
    _module(' ROOT s = f32[4] all-reduce-start(x), to_apply=add', ADD),
    _module(' ROOT d = f32[4] all-reduce-done(x)'),
    _module(' s = (f32[4], f32[4]) all-gather-start(x), dimensions={0}\n'
            ' d = f32[4] all-gather-done(s)\n ROOT e = f32[4] all-gather-done(s)'),
    _module(' s = (f32[4], f32[4]) all-gather-start(x), dimensions={0}\n'
            ' ROOT e = f32[4] get-tuple-element(s), index=1'),
    _module(' s = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,0}}\n'
            ' ROOT e = f32[4] get-tuple-element(s), index=1'),
    _module(' ROOT s = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,0}}'),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f\n d = f32[] async-done(s)\n'
            ' ROOT e = f32[] async-done(s)', NEGATE),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f\n u = ((f32[]), f32[]) async-update(s)\n'
            ' d = f32[] async-done(s)\n ROOT e = f32[] async-done(u)', NEGATE),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f\n'
            ' ROOT u = ((f32[]), f32[]) async-update(s)', NEGATE),
    _module(' ROOT s = ((f32[]), f32[]) async-start(y), calls=f', NEGATE),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f\n ROOT d = f32[] async-done(s)',
            NEGATE.replace(' ROOT', ' d = f32[] abs(a)\n ROOT').replace('negate(a)', 'negate(d)')),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f, async_execution_thread="t"\n'
            ' ROOT d = f32[] async-done(s)', NEGATE),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f, async_execution_thread="t"\n'
            ' ROOT d = f32[] async-done(s)', NEGATE.replace('}', '}, execution_thread="t"')),
    _module(' s = ((f32[]), f32[]) async-start(y), calls=f\n'
            ' ROOT d = f32[] async-done(s)', NEGATE.replace('}', '}, execution_thread="t"')),
] + [
    # Threads of what is called.
    _module(' ROOT s = f32[] ' + call, NEGATE.replace('}', '}, execution_thread="t"') +
            ADD.replace('}', '}, execution_thread="t"'))
    for call in ('call(y), to_apply=f', 'fusion(y), kind=kLoop, calls=f',
                 'reduce(x, y), dimensions={0}, to_apply=add',
                 'custom-call(y), custom_call_target="t", called_computations={f}',
                 'while(y), condition=f, body=f', 'conditional(y, y), branch_computations={f}')
] + [
    # Groups under every mode.
    _module(f' ROOT r = {shape} {op}(x), {more}', ADD, header)
    for header in ('', ', replica_count=2', ', num_partitions=2',
                   ', replica_count=2, num_partitions=2')
    for shape, op, extra in (('f32[4]', 'all-reduce', ', to_apply=add'),
                             ('f32[8]', 'all-gather', ', dimensions={0}'),
                             ('f32[16]', 'all-gather', ', dimensions={0}'),
                             ('f32[2]', 'reduce-scatter', ', dimensions={0}, to_apply=add'),
                             ('f32[4]', 'all-to-all', ', dimensions={0}'),
                             ('f32[4]', 'collective-broadcast', ''))
    for channel in ('', 'channel_id=1, ', 'channel_id=1, use_global_device_ids=true, ')
    if 'use_' not in channel or op not in ('all-to-all', 'collective-broadcast')
    for groups in ('{}', '{{0,1}}', '{{1,0}}', '{{0},{1}}', '{{0}}', '{{1}}', '{{0,1},{2,3}}',
                   '{{0,1,2,3}}', '{{0,2},{1,3}}', '{{0,1},{2}}', '{{0,1},{}}', '{{4,5}}',
                   '[1,2]<=[2]', '[2,2]<=[4]', '[1,4]<=[4]', "mesh['a'=2] {'a'}",
                   "mesh['a'=2,'b'=2] {'b'}")
    for more in [f'{channel}replica_groups={groups}{extra}']
] + [
    _module(f' ROOT r = f32[4] collective-permute(x), {channel}source_target_pairs={pairs}', '',
            header)
    for header in ('', ', replica_count=2', ', num_partitions=2')
    for channel in ('', 'channel_id=1, ')
    for pairs in ('{}', '{{0,1}}', '{{0,1},{1,0}}', '{{0,1},{0,0}}', '{{0,1},{1,1}}', '{{0,0}}',
                  '{{0,2}}', '{{2,0}}', '{{-1,0}}', '{{0,1,2}}', '{{0}}')
]

# Ends without a start, computations with several callers, nested fusions, transfers in asynchronous
# computations, shardings in several forms, dimensions without a bound.
TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../data/verifier/modules.txt')
with open(TEXTS) as texts:
    texts.readline()
    MODULES += [text for text in texts.read().split('//==\n') if text]
