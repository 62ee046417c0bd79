# SPDX-License-Identifier: Apache-2.0
"""Looked at before all else of shardcall.jax: whether JAX is one that it knows."""
import jax

OLDEST = (0, 10, 2)

if jax.__version_info__ < OLDEST:
    oldest = '.'.join(str(n) for n in OLDEST)
    raise ImportError(f'shardcall.jax needs JAX {oldest} or newer, and this is JAX '
                      f'{jax.__version__}. Fix: pip install "jax>={oldest}", for which Python '
                      'must be 3.11 or newer; the package shardcall itself runs without JAX')
