# SPDX-License-Identifier: Apache-2.0
"""The examples of JAX's documentation on custom partitioning, as the installed JAX has them in
the docstring of `custom_partitioning`, under our partitioner: read from there, not copied.
"""
import os

os.environ['JAX_NUM_CPU_DEVICES'] = '8'

import contextlib
import io
import re
import textwrap

import jax
import numpy as np
import pytest
from jax.experimental.custom_partitioning import custom_partitioning

import shardcall.jax as sj


def code_blocks(text):
    """The blocks of `.. code-block::` in a docstring, without their indentation."""
    blocks, lines, indent = [], None, 0
    for line in text.splitlines() + ['end']:
        if lines is not None and line.strip() and len(line) - len(line.lstrip()) <= indent:
            blocks.append(textwrap.dedent('\n'.join(lines)))
            lines = None
        if lines is not None:
            lines.append(line)
        elif line.strip().startswith('.. code-block::'):
            lines, indent = [], len(line) - len(line.lstrip())
    return blocks


def example():
    """The definitions of my_fft, and the two programs that use it: of matrices, of vectors."""
    blocks = code_blocks(custom_partitioning.__doc__)
    [definitions] = [b for b in blocks if 'def supported_sharding' in b]
    uses = [b for b in blocks if 'pjit_my_fft' in b]
    assert len(uses) == 2
    # What the text leaves out, or has too much of, and a module that is not installed.
    definitions = definitions.replace('import regex as re', 'import re')
    definitions = definitions.replace(",))))", ",)))")
    definitions = ('from jax.experimental.custom_partitioning import BATCHING, SdyShardingRule\n'
                   + definitions)
    # A thousandth of the size; numpy's randomness is seeded by the test.
    return definitions, [u.replace('32*1024', '32') for u in uses]


def with_asserts_that_hold(use, which):
    """That of my_fft of a matrix stays. The others do not hold under JAX either: of a vector the
    text says "is None" where its comment says that the op is present, and XLA no longer gathers
    a batched FFT.
    """
    lines = use.splitlines()
    kept = [k for k in lines
            if not k.strip().startswith('assert') or (which == 0 and 'pjit_my_fft' in k)]
    assert len(lines) - len(kept) == 1 + which
    return '\n'.join(kept)


def run(use, scope):
    np.random.seed(0)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(use, 'docstring', 'exec'), scope)
    return out.getvalue()


def compiled_text(function, scope):
    with scope['Mesh'](np.array(jax.devices()), ('x',)):
        return scope[function].lower(scope['x']).compile().as_text()


@pytest.fixture
def scope():
    names = {}
    exec(compile(example()[0], 'docstring', 'exec'), names)
    return names


@pytest.mark.parametrize('which', [0, 1], ids=['matrix', 'vector'])
def test_the_documents_example_prints_what_jax_prints_and_moves_what_it_says(scope, which):
    use = with_asserts_that_hold(example()[1][which], which)
    theirs = run(use, dict(scope))
    with sj.partitioner(strict=True):
        ours = dict(scope)
        assert run(use, ours) == theirs
        # Of a matrix my_fft moves nothing, of a vector it gathers.
        assert ('all-gather' in compiled_text('pjit_my_fft', ours)) == (which == 1)
    np.testing.assert_allclose(ours['fft'](ours['y']), np.fft.fft(ours['x']), atol=1e-2)


def test_a_batched_fft_moves_nothing_without_a_partitioner_of_its_own(scope):
    use = with_asserts_that_hold(example()[1][0], 0)
    with sj.partitioner(strict=True):
        run(use, scope)
        assert 'all-gather' not in compiled_text('pjit_fft', scope)


if __name__ == '__main__':
    raise SystemExit(pytest.main([__file__, '-q']))
