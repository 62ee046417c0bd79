# SPDX-License-Identifier: Apache-2.0
"""One small program for 8 devices of every op that has operands to shard: what the section "Every
op" of tests/STATUS.md is measured on. An op has several forms where they run differently.

A form is an instruction with the shapes of its operands in their places. A dimension with a name is
sharded in turn, `rows=1024`; an operand without names is whole, and `s32[]=0` a constant. Without a
named operand the named dimensions of the result are sharded. Dimensions of one name are sharded
together, too, and so are two that stand behind the label, `{rows lookups}`."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from brackets import closing, split  # noqa: E402

DEVICES = 8
# Named f_<key>: the types of the parameters p0, p1, .., and the instructions.
COMPUTATIONS = {
    'add': ('f32[] f32[]', 'ROOT r = f32[] add(p0, p1)'),
    'max': ('f32[] f32[]', 'ROOT r = f32[] maximum(p0, p1)'),
    'ge': ('f32[] f32[]', 'ROOT r = pred[] compare(p0, p1), direction=GE'),
    'lt': ('f32[] f32[]', 'ROOT r = pred[] compare(p0, p1), direction=LT'),
    'second': ('f32[] f32[]', 'ROOT r = f32[] copy(p1)'),
    'norm': ('f32[] f32[]', 'x = f32[] multiply(p0, p0); y = f32[] multiply(p1, p1); '
                            's = f32[] add(x, y); ROOT r = f32[] sqrt(s)'),
    'argmax': ('f32[] s32[] f32[] s32[]',
               'g = pred[] compare(p0, p2), direction=GT; v = f32[] select(g, p0, p2); '
               'i = s32[] select(g, p1, p3); ROOT r = (f32[], s32[]) tuple(v, i)'),
    'product': ('f32[16,16] f32[16,16]',
                'p = f32[16,16] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}; '
                'ROOT r = (f32[16,16], f32[16,16]) tuple(p, p)'),
    'step': ('f32[512] f32[512]',
             's = f32[512] add(p0, p1); ROOT r = (f32[512], f32[512]) tuple(s, s)'),
}

# What an elementwise op takes and gives, by the name of its shape function in opcodes.inc.
ELEMENTWISE = {
    'UnaryIntegerOrPred': 's32(s32)', 'UnaryInteger': 's32(s32)', 'ComplexPart': 'f32(c64)',
    'IsFinite': 'pred(f32)', 'Convert': 's32(f32)', 'Binary': 'f32(f32,f32)',
    'BinaryIntegerOrPred': 's32(s32,s32)', 'BinaryInteger': 's32(s32,s32)',
    'BinaryNumber': 'f32(f32,f32)', 'BinaryFloatOrComplex': 'f32(f32,f32)',
    'Complex': 'c64(f32,f32)', 'Compare': 'pred(f32,f32), direction=EQ',
    'Select': 'f32(pred,f32,f32)', 'Clamp': 'f32(f32,f32,f32)',
    'ReducePrecision': 'f32(f32), exponent_bits=5, mantissa_bits=10',
    **dict.fromkeys(('Abs', 'Same', 'UnaryFloat', 'UnaryFloatOrComplex', 'UnaryNumber',
                     'UnarySigned'), 'f32(f32)')}
OTHER_TYPES = {'stochastic-convert': 'bf16(f32,u32)'}

# A label, then the form. A label of `-`: there is nothing to say of it.
FORMS = """
-: f32[rows=1024,columns=512] iota(), iota_dimension=0
-: f32[1024,512] opt-barrier(f32[rows=1024,columns=512])
-: f32[1024,512] add-dependency(f32[rows=1024,columns=512], token[])
-: f32[1024,512] domain(f32[rows=1024,columns=512]),
   domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}
to smaller elements: s8[1024,512,4] bitcast-convert(f32[rows=1024,columns=512])
to larger elements: f64[1024,512] bitcast-convert(u8[rows=1024,columns=512,bytes=8])
same dimensions: f32[1024,512] bitcast(f32[rows=1024,columns=512])
other dimensions: f32[512,1024] bitcast(f32[rows=1024,columns=512])
-: f32[1024,512] broadcast(f32[columns=512]), dimensions={1}
-: f32[512,1024] transpose(f32[rows=1024,columns=512]), dimensions={1,0}
-: f32[1024,512] reverse(f32[reversed=1024,others=512]), dimensions={0}
-: f32[1536,512] concatenate(f32[rows=1024,others=512], f32[rows=512,others=512]), dimensions={0}
-: s32[] get-dimension-size(f32[asked=1024,others=512]), dimensions={0}
-: f32[<=1024,512] set-dimension-size(f32[set=1024,others=512], s32[]), dimensions={0}
split: f32[512,16,64] reshape(f32[rows=512,columns=1024])
merge: f32[524288] reshape(f32[rows=1024,columns=512])
regroup: f32[768,1024] reshape(f32[rows=1024,columns=768])
-: f32[<=1024,<=512] dynamic-reshape(f32[elements=524288], s32[], s32[])
half of the rows: f32[512,512] slice(f32[cut=1024,others=512]), slice={[256:768], [0:512]}
every second row: f32[512,512] slice(f32[cut=1024,others=512]), slice={[0:1024:2], [0:512]}
one row: f32[1,512] slice(f32[cut=1024,others=512]), slice={[1023:1024], [0:512]}
-: f32[16,512] dynamic-slice(f32[cut=1024,others=512], s32[], s32[]=0), dynamic_slice_sizes={16,512}
at a variable index {rows updated}: f32[1024,512] dynamic-update-slice(f32[rows=1024,others=512],
   f32[updated=16,others=512], s32[], s32[]=0)
at a constant index {rows placed}: f32[1024,512] dynamic-update-slice(f32[rows=1024,others=512],
   f32[placed=16,others=512], s32[]=8, s32[]=0)
at the edges: f32[1040,512] pad(f32[padded=1024,others=512], f32[]=0), padding=8_8x0_0
between elements: f32[2047,512] pad(f32[padded=1024,others=512], f32[]=0), padding=0_0_1x0_0
sum: f32[512] reduce(f32[reduced=1024,kept=512], f32[]=0), dimensions={0}, to_apply=f_add
argmax: (f32[512], s32[512]) reduce(f32[reduced=1024,kept=512], s32[reduced=1024,kept=512],
   f32[]=-inf, s32[]=0), dimensions={0}, to_apply=f_argmax
another computation: f32[512] reduce(f32[reduced=1024,kept=512], f32[]=0), dimensions={0},
   to_apply=f_norm
another, of a line: f32[] reduce(f32[line=65536], f32[]=0), dimensions={0}, to_apply=f_norm
-: f32[1024,512] map(f32[rows=1024,columns=512], f32[rows=1024,columns=512]), dimensions={0,1},
   to_apply=f_add
pooling: f32[1024,512] reduce-window(f32[windowed=1024,others=512], f32[]=-inf),
   window={size=3x1 pad=1_1x0_0}, to_apply=f_max
cumulative sum: f32[1024,512] reduce-window(f32[windowed=1024,others=512], f32[]=0),
   window={size=1024x1 pad=1023_0x0_0}, to_apply=f_add
cumulative, another computation: f32[1024,512] reduce-window(f32[windowed=1024,others=512],
   f32[]=0), window={size=1024x1 pad=1023_0x0_0}, to_apply=f_norm
the same, of a line: f32[65536] reduce-window(f32[line=65536], f32[]=0),
   window={size=65536 pad=65535_0}, to_apply=f_norm
-: f32[1024,64] select-and-scatter(f32[windowed=1024,others=64], f32[windowed=512,others=64],
   f32[]=0), window={size=3x1 stride=2x1 pad=0_1x0_0}, select=f_ge, scatter=f_add
lines: f32[1024,512] sort(f32[sorted=1024,others=512]), dimensions={0}, to_apply=f_lt
one line: f32[1048576] sort(f32[line=1048576]), dimensions={0}, to_apply=f_lt
lines: (f32[64,16], s32[64,16]) topk(f32[others=64,line=4096]), k=16, largest=true
one line: (f32[16], s32[16]) topk(f32[line=65536]), k=16, largest=true
associative: (f32[1024,512], f32[512]) scan(f32[scanned=1024,others=512], f32[others=512]),
   dimensions={0}, num_carries=1, is_associative=true, to_apply=f_step
not associative: (f32[1024,512], f32[512]) scan(f32[scanned=1024,others=512], f32[others=512]),
   dimensions={0}, num_carries=1, is_associative=false, to_apply=f_step
of matrices: (f32[1024,16,16], f32[16,16]) scan(f32[scanned=1024,outer=16,inner=16], f32[16,16]),
   dimensions={0}, num_carries=1, is_associative=true, to_apply=f_product
-: f32[512,512] dot(f32[m=512,k=4096], f32[k=4096,n=512]), lhs_contracting_dims={1},
   rhs_contracting_dims={0}
with a short k: f32[1024,1024] dot(f32[m=1024,short=512], f32[short=512,n=1024]),
   lhs_contracting_dims={1}, rhs_contracting_dims={0}
batches: f32[16,128,128] dot(f32[batch=16,m=128,k=1024], f32[batch=16,k=1024,n=128]),
   lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
rows: f32[1024,128] ragged-dot(f32[rows=1024,k=512], f32[groups=8,k=512,n=128],
   s32[groups=8]), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
   rhs_group_dims={0}
contracted: f32[8,128,128] ragged-dot(f32[m=128,contracted=4096],
   f32[contracted=4096,n=128], s32[sizes=8]), lhs_contracting_dims={1}, rhs_contracting_dims={0},
   lhs_ragged_dims={1}
-: f32[512,512] scaled-dot(f8e4m3fn[m=512,k=4096], f8e4m3fn[k=4096,n=512],
   f8e8m0fnu[m=512,blocks=128], f8e8m0fnu[blocks=128,n=512]), lhs_contracting_dims={1},
   rhs_contracting_dims={0}
-: f32[64,64,256] convolution(f32[batch=64,in=512,space=256], f32[out=64,in=512,taps=8]),
   window={size=8 pad=3_4}, dim_labels=bf0_oi0->bf0
by channel: f32[64,64,512] convolution(f32[batch=64,channels=64,space=512],
   f32[channels=64,1,taps=8]), window={size=8 pad=3_4}, dim_labels=bf0_oi0->bf0,
   feature_group_count=64
gradient of a kernel: f32[64,64,3] convolution(f32[batch=16,in=64,space=512],
   f32[batch=16,out=64,space=512]), window={size=512 pad=1_1}, dim_labels=fb0_io0->bf0
of lines: c64[64,1024] fft(c64[others=64,line=1024]), fft_type=FFT, fft_length={1024}
of one line: c64[1048576] fft(c64[one=1048576]), fft_type=FFT, fft_length={1048576}
of one real line: c64[524289] fft(f32[one=1048576]), fft_type=RFFT, fft_length={1048576}
to one real line: f32[1048576] fft(c64[one=524289]), fft_type=IRFFT, fft_length={1048576}
of a plane: c64[1024,512] fft(c64[rows=1024,columns=512]), fft_type=FFT, fft_length={1024,512}
of real lines: c64[64,513] fft(f32[others=64,line=1024]), fft_type=RFFT, fft_length={1024}
matrices: f32[64,256,256] cholesky(f32[batch=64,rows=256,columns=256]), lower=true
one matrix: f32[1024,1024] cholesky(f32[row=1024,column=1024]), lower=true
matrices: f32[64,256,64] triangular-solve(f32[batch=64,rows=256,columns=256],
   f32[batch=64,rows=256,right=64]), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
one matrix: f32[1024,256] triangular-solve(f32[row=1024,column=1024], f32[row=1024,right=256]),
   left_side=true, lower=true, transpose_a=NO_TRANSPOSE
-: (f32[1024,512], f32[512], f32[512]) batch-norm-training(f32[batch=1024,features=512],
   f32[features=512], f32[features=512]), epsilon=0.001, feature_index=1
-: f32[1024,512] batch-norm-inference(f32[batch=1024,features=512], f32[features=512],
   f32[features=512], f32[features=512], f32[features=512]), epsilon=0.001, feature_index=1
-: (f32[1024,512], f32[512], f32[512]) batch-norm-grad(f32[batch=1024,features=512],
   f32[features=512], f32[features=512], f32[features=512], f32[batch=1024,features=512]),
   epsilon=0.001, feature_index=1
rows {rows lookups}: f32[256,128] gather(f32[rows=4096,columns=128], s32[lookups=256]),
   offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
   slice_sizes={1,128}
windows of rows {rows lookups}: f32[256,4,128] gather(f32[rows=4096,columns=128], s32[lookups=256]),
   offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,
   slice_sizes={4,128}
a part of each row: f32[256,64] gather(f32[rows=4096,part=128], s32[lookups=256]),
   offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
   slice_sizes={1,64}
in batches: f32[64,16] gather(f32[batch=64,rows=1024], s32[batch=64,lookups=16]), offset_dims={},
   collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0},
   start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}
adding to rows {rows updates}: f32[256,128] scatter(f32[rows=256,columns=128], s32[updates=1024],
   f32[updates=1024,columns=128]), update_window_dims={1}, inserted_window_dims={0},
   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f_add
a few rows {rows few}: f32[4096,128] scatter(f32[rows=4096,columns=128], s32[few=256],
   f32[few=256,columns=128]), update_window_dims={1}, inserted_window_dims={0},
   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f_add
overwriting rows {rows writes}: f32[256,128] scatter(f32[rows=256,columns=128],
   s32[writes=1024], f32[writes=1024,columns=128]), update_window_dims={1},
   inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1,
   to_apply=f_second
windows of rows {rows updates}: f32[256,128] scatter(f32[rows=256,columns=128], s32[updates=256],
   f32[updates=256,window=8,columns=128]), update_window_dims={1,2}, inserted_window_dims={},
   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f_add
a part of each row: f32[256,128] scatter(f32[rows=256,part=128], s32[updates=1024],
   f32[updates=1024,of=64]), update_window_dims={1}, inserted_window_dims={0},
   scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f_add
in batches: f32[64,64] scatter(f32[batch=64,rows=64], s32[batch=64,updates=1024],
   f32[batch=64,updates=1024]), update_window_dims={}, inserted_window_dims={1},
   scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0},
   index_vector_dim=2, to_apply=f_add
-: f32[rows=1024,columns=512] rng(f32[]=0, f32[]=1), distribution=rng_uniform
-: (u64[2], u32[rows=1024,columns=512]) rng-bit-generator(u64[2]), algorithm=rng_philox
"""


def can_be_cut(size):
    """Into even shards, or so many rows that padding does not count."""
    return size % DEVICES == 0 or size > 1 << 16


def tiled(dims, dim):
    """The sharding of an array whose dimension `dim` is cut over all devices; whole, if it has none
    that can be."""
    if dim is None or dim >= len(dims) or not can_be_cut(dims[dim]):
        return '{replicated}'
    return '{devices=[%s]<=[%d]}' % (
        ','.join(str(DEVICES if d == dim else 1) for d in range(len(dims))), DEVICES)


class Array:
    """Of a form: its text without names, and the name of each dimension."""

    def __init__(self, text):
        inside = text[text.index('[') + 1:text.index(']')].split(',')
        self.names = [d.partition('=')[0] if '=' in d and '<' not in d else None
                      for d in inside if d]
        self.text = re.sub(r'[a-z]+=(?=\d)', '', text)
        self.signature = text[text.index('['):text.index(']') + 1]
        self.dims = [int(d) for d in re.findall(r'\d+', self.text[self.text.index('['):])]


class Form:
    def __init__(self, label, text):
        self.label, _, both = label.rstrip('}').removeprefix('-').partition(' {')
        self.both = both.split()
        at = closing(text, 0) + 1 if text[0] == '(' else text.index(' ')
        self.results = [Array(r) for r in (split(text[1:at - 1]) if text[0] == '(' else
                                           [text[:at]])]
        self.opcode, _, rest = text[at:].strip().partition('(')
        end = closing('(' + rest, 0) - 1
        self.inside, self.attributes = split(rest[:end]), rest[end + 1:]
        self.operands = {k: Array(o) for k, o in enumerate(self.inside) if ']=' not in o}
        self.named = {k: a for k, a in self.operands.items() if any(a.names)}

    def dimensions(self):
        """What is sharded: [({operand: dimension's name}, {operand: dimension})], each alone, and
        those together that are to be. The results are operand -1."""
        places = self.named or {-1: self.results[-1]}
        alone = [({k: n}, {k: d}) for k, a in places.items() for d, n in enumerate(a.names) if n]
        together = {}
        for names, where in alone:
            for name in names.values():
                for key in (name, *(['+'.join(self.both)] if name in self.both else [])):
                    together.setdefault(key, []).append((names, where))
        return alone + [({k: n for names, _ in each for k, n in names.items()},
                         {k: d for _, where in each for k, d in where.items()})
                        for each in together.values() if len(each) > 1]

    def program(self, where):
        """With those dimensions sharded. `where[-1]`: that of the results, else they are open."""
        lines, names, number = [], [], 0
        for k, text in enumerate(self.inside):
            names.append(f'o{k}')
            if k not in self.operands:
                kind, _, value = text.partition('=')
                lines.append(f'o{k} = {kind} constant({value})')
            elif text == 'token[]':
                lines.append(f'o{k} = token[] after-all()')
            else:
                array = self.operands[k]
                lines.append(f'o{k} = {array.text} parameter({number}), sharding='
                             + tiled(array.dims, where.get(k)))
                number += 1
        shapes = ', '.join(r.text for r in self.results)
        shardings = ', '.join(tiled(r.dims, where.get(-1)) for r in self.results)
        if len(self.results) > 1:
            shapes, shardings = f'({shapes})', '{' + shardings + '}'
        line = f'ROOT out = {shapes} {self.opcode}({", ".join(names)}){self.attributes}'
        lines.append(line + (f', sharding={shardings}' if -1 in where else ''))
        open_results = '' if -1 in where else ', allow_spmd_sharding_propagation_to_output={true}'
        called = re.findall(r'\bf_(\w+)', self.attributes)
        return (f'HloModule m, num_partitions={DEVICES}{open_results}\n\n'
                + ''.join(map(computation, dict.fromkeys(called)))
                + 'ENTRY main {\n  ' + '\n  '.join(lines) + '\n}\n')


def computation(name):
    types, body = COMPUTATIONS[name]
    lines = [f'p{k} = {t} parameter({k})' for k, t in enumerate(types.split())]
    return 'f_%s {\n  %s\n}\n\n' % (name, '\n  '.join(lines + body.split('; ')))


def elementwise(opcode, shape):
    """The form of an elementwise op with that shape function; None: it is not in the table."""
    types = OTHER_TYPES.get(opcode) or ELEMENTWISE.get(shape)
    if types is None:
        return None
    result, inside, attributes = re.match(r'(\w+)\((.*)\)(.*)', types).groups()
    operands = ', '.join(t + '[rows=1024,columns=512]' for t in inside.split(','))
    return Form('-', f'{result}[1024,512] {opcode}({operands}){attributes}')


def forms():
    """{opcode: its forms}."""
    found = {}
    for text in re.sub(r'\n +', ' ', FORMS).strip().split('\n'):
        form = Form(*text.split(': ', 1))
        found.setdefault(form.opcode, []).append(form)
    return found
