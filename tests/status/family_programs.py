# SPDX-License-Identifier: Apache-2.0
"""Small HLO programs for 8 devices, by family of ops: each op with its operands and its result sharded
in every way, in sizes that the shards divide and in sizes that they do not.

A sharding is a word: `r` replicated; `0` dimension 0 over all 8 devices; `01` dimension 0 over 4 and
dimension 1 over 2; `0p` dimension 0 over 4, `0q` over 2, the rest replicated."""

SIZES = {'p': 4, 'q': 2}
COMPUTATIONS = {
    'sum': 'f32[] add(a, b)', 'max': 'f32[] maximum(a, b)', 'ge': 'pred[] compare(a, b), direction=GE',
    'lt': 'pred[] compare(a, b), direction=LT', 'second': 'f32[] copy(b)'}


def axes_of(word, rank):
    """By dimension: the axes that shard it, of p and q."""
    axes = [''] * rank
    if word == 'r':
        return axes
    if len(word) == 1:
        axes[int(word)] = 'pq'
    elif word[1] in SIZES:
        axes[int(word[0])] = word[1]
    else:
        axes[int(word[0])], axes[int(word[1])] = 'p', 'q'
    return axes


def sharding(word, rank):
    axes = axes_of(word, rank)
    used = ''.join(axes)
    if not used:
        return '{replicated}'
    order = used + ''.join(a for a in SIZES if a not in used)
    tiles = [SIZES.get(a, 8 if a else 1) for a in axes]
    rest = [SIZES[a] for a in order[len(used):]]
    devices = '[8]' if order == 'pq' else '[4,2]T(1,0)'
    return '{devices=[%s]<=%s%s}' % (','.join(map(str, tiles + rest)), devices,
                                     ' last_tile_dim_replicate' if rest else '')


def array(dims, kind='f32'):
    return '%s[%s]' % (kind, ','.join(map(str, dims)))


def program(parameters, op, result, body=(), kind='f32'):
    """`parameters`: (dims, sharding[, type]), named x, y, z; `result`: (dims, sharding)."""
    lines = []
    for k, (dims, word, *types) in enumerate(parameters):
        lines.append('  %s = %s parameter(%d), sharding=%s' % (
            'xyz'[k], array(dims, *types or ['f32']), k, sharding(word, len(dims))))
    lines += ['  ' + line for line in body]
    lines.append('  ROOT out = %s %s, sharding=%s' % (array(result[0], kind), op,
                                                      sharding(result[1], len(result[0]))))
    text = ''.join('f_%s {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = %s\n}\n\n'
                   % item for item in COMPUTATIONS.items() if 'f_' + item[0] in ' '.join(lines))
    return 'HloModule m, num_partitions=8\n\n' + text + 'ENTRY main {\n' + '\n'.join(lines) + '\n}\n'


def ways(*texts):
    return [text.split() for text in texts]


ZERO = ['zero = f32[] constant(0)']
ALL = [(a, b) for a in ('r', '0', '1', '01') for b in ('r', '0', '1', '01') if (a, b) != ('r', 'r')]
ROWS = [('0', '0'), ('0p', '0p'), ('01', '01'), ('0', '1')]


def elementwise():
    for dims in ((1024, 512), (1000, 500)):
        for a, b, c in ways('0 0 0', '0 1 0', '0 1 1', '0 r 0', '01 10 01', '0 1 01', '01 0 r'):
            yield f'{dims} {a},{b} to {c}', program([(dims, a), (dims, b)], 'add(x, y)', (dims, c))


def unary(op, dims, result, pairs, body=(), kind='f32', name=''):
    for a, b in pairs:
        yield (f'{name or op} {dims} {a} to {b}',
               program([(dims, a, kind)], op, (result, b), body, kind))


def broadcasts():
    for n in (1024, 1000):
        for k in (0, 1):
            yield from unary('broadcast(x), dimensions={%d}' % k, (n,), (n, n),
                             (('0', '01'), ('0', '0'), ('0', '1'), ('0p', '01'), ('r', '0')))


def reshapes():
    flat, both = ('r', '0', '0p'), ('r', '0', '1', '01')
    for a, b in ((64, 512), (60, 500), (12, 1000)):
        yield from unary('reshape(x)', (a, b), (a * b,), [(s, t) for s in both for t in flat][1:])
        yield from unary('reshape(x)', (a * b,), (a, b), [(s, t) for s in flat for t in both][1:])
    yield from unary('reshape(x)', (512, 768), (512, 12, 64), (('0', '0'), ('1', '1'), ('0', '1')))
    yield from unary('reshape(x)', (512, 12, 64), (512, 768), (('0', '0'), ('1', '1'), ('0', '1')))
    yield from unary('reshape(x)', (128, 96), (96, 128), (('0', '0'), ('0', '1'), ('01', '01')))


def transposes():
    for dims in ((1024, 512), (1000, 500)):
        yield from unary('transpose(x), dimensions={1,0}', dims, dims[::-1], ALL)


def slices():
    for n in (1024, 1000):
        for low, high, stride in ((0, n // 2, 1), (n // 2, n, 1), (1, n, 1), (100, 900, 1), (0, n, 2),
                                  (3, n - 1, 3), (n - 1, n, 1), (128, 256, 1)):
            rows = -(-(high - low) // stride)
            yield from unary('slice(x), slice={[%d:%d:%d], [0:64]}' % (low, high, stride), (n, 64),
                             (rows, 64), (*ROWS, ('0', 'r')))


def pads():
    for n in (1024, 1000):
        for low, high, inside in ((0, n, 0), (1, -1, 0), (16, 16, 0), (8, 0, 0), (0, 0, 1), (1, 2, 1),
                                  (-8, -8, 0), (0, 0, 3), (5, -100, 2)):
            rows = n + low + high + (n - 1) * inside
            yield from unary('pad(x, zero), padding=%d_%d_%dx0_0' % (low, high, inside), (n, 64),
                             (rows, 64), ROWS, ZERO)


def concatenates():
    for n, m in ((512, 512), (1024, 256), (500, 300)):
        for a, b, c in ways('0 0 0', '0 0 r', '0 0 1', '0 r 0', '01 01 01', '1 1 0', '1 0 0'):
            yield f'{n} {m} {a},{b} to {c}', program(
                [((n, 64), a), ((m, 64), b)], 'concatenate(x, y), dimensions={0}', ((n + m, 64), c))


def reverses():
    for dims in ((1024, 64), (1000, 64)):
        yield from unary('reverse(x), dimensions={0}', dims, dims, ALL)
        shape = array(dims)
        yield from unary('reverse(b), dimensions={0}', dims, dims, ALL,
                         [f'a = {shape} reverse(x), dimensions={{0}}', f'b = {shape} exponential(a)'],
                         name='between reverses')


def reduces():
    for dims in ((1024, 512), (1000, 500)):
        for k in (0, 1):
            yield from unary('reduce(x, zero), dimensions={%d}, to_apply=f_sum' % k, dims,
                             (dims[1 - k],), [(a, b) for a in ('0', '1', '01') for b in 'r0'], ZERO)


def batch_norms():
    for n in (1024, 1000):
        yield from unary('get-tuple-element(t), index=0', (n, 64), (n, 64), ALL,
                         ['one = f32[] constant(1)', 'y = f32[64] broadcast(one), dimensions={}',
                          f't = (f32[{n},64], f32[64], f32[64]) batch-norm-training(x, y, y), epsilon=1, '
                          'feature_index=1'], name='batch-norm-training')


def windows():
    for n in (1024, 1000):
        for size, stride, low, high, base, window in (
                (2, 2, 0, 0, 1, 1), (3, 1, 1, 1, 1, 1), (3, 2, 0, 1, 1, 1), (4, 4, 0, 0, 1, 1),
                (3, 1, 2, 2, 1, 2), (3, 1, 0, 0, 2, 1), (2, 1, 1, 0, 2, 1), (3, 1, 1, 1, 3, 1)):
            rows = ((n - 1) * base + 1 + low + high - (size - 1) * window - 1) // stride + 1
            yield from unary(
                'reduce-window(x, zero), window={size=%dx1 stride=%dx1 pad=%d_%dx0_0 lhs_dilate=%dx1 '
                'rhs_dilate=%dx1}, to_apply=f_max' % (size, stride, low, high, base, window),
                (n, 64), (rows, 64), ROWS, ZERO)


def scattered_windows():
    for n in (1024, 1000):
        for size, stride, low, high in ((2, 2, 0, 0), (3, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1)):
            rows = (n + low + high - size) // stride + 1
            for a, b, c in ways('0 0 0', '01 01 01', '0 0 r', '0p 0p 0p'):
                window = f'size={size}x1 stride={stride}x1 pad={low}_{high}x0_0'
                yield f'{n} {window} {a},{b} to {c}', program(
                    [((n, 32), a), ((rows, 32), b)], 'select-and-scatter(x, y, zero), window={%s}, '
                    'select=f_ge, scatter=f_sum' % window, ((n, 32), c), ZERO)


def convolution(rows, channels, window, groups, triples):
    size, stride, low, high, base, kernel = window
    places = ((rows - 1) * base + 1 + low + high - (size - 1) * kernel - 1) // stride + 1
    text = 'size=%d stride=%d pad=%d_%d lhs_dilate=%d rhs_dilate=%d' % window
    for a, b, c in triples:
        yield f'{rows} {text} groups={groups} {a},{b} to {c}', program(
            [((8, channels, rows), a), ((channels, channels // groups, size), b)],
            'convolution(x, y), window={%s}, dim_labels=bf0_oi0->bf0, feature_group_count=%d'
            % (text, groups), ((8, channels, places), c))


def convolutions():
    for rows in (512, 500):
        for window in ((3, 1, 1, 1, 1, 1), (5, 1, 0, 0, 1, 1), (3, 2, 1, 1, 1, 1), (4, 4, 0, 0, 1, 1),
                       (4, 1, 3, 0, 1, 1), (3, 1, 4, 4, 1, 4), (3, 1, 1, 2, 2, 1), (3, 1, 2, 2, 3, 1)):
            yield from convolution(rows, 16, window, 1, ways('2 r 2', '02 r 02', '2 0 1', '0 r 0'))
        for groups in (8, 64):
            yield from convolution(rows, 64, (4, 1, 3, 0, 1, 1), groups,
                                   ways('2 r 2', '1 0 1', '12 r 12'))


def kernel_gradients():
    for rows in (512, 500):
        for a, b, c in ways('0 0 r', '0 0 0', '1 1 r', '2 2 r', '02 02 r'):
            yield f'{rows} {a},{b} to {c}', program(
                [((16, 16, rows), a), ((16, 32, rows), b)], 'convolution(x, y), window={size=%d pad=1_1}, '
                'dim_labels=fb0_io0->bf0' % rows, ((16, 32, 3), c))


def dots():
    words = ('r', '0', '1', '01')
    for m, k, n in ((1024, 512, 768), (1000, 500, 300)):
        for a, b, c in ((a, b, c) for a in words for b in words for c in words):
            if (a + b + c).count('r') < 2:
                yield f'{m} {a},{b} to {c}', program(
                    [((m, k), a), ((k, n), b)], 'dot(x, y), lhs_contracting_dims={1}, '
                    'rhs_contracting_dims={0}', ((m, n), c))


def dynamic_slices():
    for n in (1024, 1000):
        for k in (1, 16, 512):
            for a, b in (('0', '0'), ('0', 'r'), ('1', '1'), ('01', '01'), ('1', '0')):
                yield f'slice {n} {k} {a} to {b}', program(
                    [((n, 64), a), ((), 'r', 's32')], 'dynamic-slice(x, y, z0), dynamic_slice_sizes='
                    '{%d,64}' % k, ((k, 64), b), ['z0 = s32[] constant(0)'])
            for a, b, c in ways('0 r 0', '0 0 0', '01 01 01', '1 1 1', '0 1 0'):
                yield f'update {n} {k} {a},{b} to {c}', program(
                    [((n, 64), a), ((k, 64), b), ((), 'r', 's32')], 'dynamic-update-slice(x, y, z, z0)',
                    ((n, 64), c), ['z0 = s32[] constant(0)'])


def gathers():
    for n in (1024, 1000):
        for a, b, c in ways('0 r r', '0 0 0', '1 r 1', '1 0 0', '01 0p 01', '0 r 0', '01 r r'):
            yield f'gather {n} {a},{b} to {c}', program(
                [((n, 128), a), ((256,), b, 's32')], 'gather(x, y), offset_dims={1}, '
                'collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,128}',
                ((256, 128), c))
        for a, b, u, c in ways('0 0 0 0', '0 r r 0', '1 r 1 1', '1 0 0 1', '0 0 0 r', '01 0p 01 01'):
            yield f'scatter {n} {a},{b},{u} to {c}', program(
                [((n, 128), a), ((256,), b, 's32'), ((256, 128), u)], 'scatter(x, y, z), '
                'update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, '
                'index_vector_dim=1, to_apply=f_sum', ((n, 128), c))


def sorts():
    for dims in ((1024, 64), (1000, 60)):
        yield from unary('sort(x), dimensions={0}, to_apply=f_lt', dims, dims,
                         (*ROWS, ('1', '1'), ('0', 'r')))
        n = dims[0]
        yield from unary('reduce-window(x, zero), window={size=%dx1 pad=%d_0x0_0}, to_apply=f_sum'
                         % (n, n - 1), dims, dims, (*ROWS, ('1', '1')), ZERO)


def transforms():
    for dims in ((64, 256), (60, 250)):
        yield from unary('fft(x), fft_type=FFT, fft_length={%d}' % dims[1], dims, dims,
                         (('0', '0'), ('1', '1'), ('01', '01'), ('1', 'r'), ('1', '0')), (), 'c64')
    for batch in (16, 12):
        dims = (batch, 64, 64)
        yield from unary('cholesky(x), lower=true', dims, dims, (('0', '0'), ('1', '1'), ('01', '01')))


def shifts():
    for n in (1024, 1000):
        for k in (1, 5, 100, 512, n - 1):
            rolled = ['p = f32[%d,64] slice(x), slice={[%d:%d], [0:64]}' % (k, n - k, n),
                      'q = f32[%d,64] slice(x), slice={[0:%d], [0:64]}' % (n - k, n - k)]
            down = [*ZERO, 'p = f32[%d,64] pad(x, zero), padding=%d_0x0_0' % (n + k, k)]
            up = [*ZERO, 'p = f32[%d,64] slice(x), slice={[%d:%d], [0:64]}' % (n - k, k, n)]
            for name, op, body in (('roll', 'concatenate(p, q), dimensions={0}', rolled),
                                   ('shift down', 'slice(p), slice={[0:%d], [0:64]}' % n, down),
                                   ('shift up', 'pad(p, zero), padding=0_%dx0_0' % k, up)):
                yield from unary(op, (n, 64), (n, 64), ROWS, body, name=f'{name} by {k}')


FAMILIES = {
    'elementwise': elementwise, 'broadcast': broadcasts, 'reshape': reshapes, 'transpose': transposes,
    'slice': slices, 'pad': pads, 'concatenate': concatenates, 'reverse': reverses, 'reduce': reduces,
    'batch norm': batch_norms,
    'reduce-window': windows, 'select-and-scatter': scattered_windows, 'convolution': convolutions,
    'kernel gradient': kernel_gradients, 'dot': dots, 'dynamic slice, update': dynamic_slices,
    'gather, scatter': gathers, 'sort, cumulative sum': sorts, 'FFT, Cholesky': transforms,
    'roll, shift': shifts}


def programs():
    """{family: {name: text}}."""
    return {family: dict(make()) for family, make in FAMILIES.items()}
