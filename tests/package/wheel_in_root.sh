#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a wheel of the Python package beside the newest JAX for its Python in a bare system, and
# runs it there:
#
#   debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm ROOT
#   python3 partitioner/bindings/python/build_wheel.py --out=dist
#   sudo bash tests/package/wheel_in_root.sh ROOT dist/shardcall-*.whl [PYTHON]
#
# PYTHON is a path within ROOT, by default /usr/bin/python3: one of the wheel's version. Needs
# the network, for pip.
set -euo pipefail
root=$1 wheel=$2 python=${3:-/usr/bin/python3}
mkdir -p "$root/proc" "$root/tmp/wheel"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
cp "$wheel" "$root/tmp/wheel/"
cat > "$root/tmp/wheel/run.py" <<'PY'
import os
os.environ.update(JAX_NUM_CPU_DEVICES='8', NPROC='16')
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
import shardcall
import shardcall.jax as sj

mesh = jax.make_mesh((4, 2), ('data', 'model'))
x = (np.arange(128, dtype=np.float32) % 7 - 3).reshape(8, 16)


def f(x):
    relu = jax.ffi.ffi_call('custom_relu', jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
    return jnp.linalg.cholesky(relu @ relu.T + 100 * jnp.eye(8))


placed = jax.device_put(x, NamedSharding(mesh, P('data')))
found = sj.jit(f, strict=True)(placed)
positive = np.maximum(x, 0)
np.testing.assert_allclose(found, np.linalg.cholesky(positive @ positive.T + 100 * np.eye(8)),
                           rtol=1e-5)
assert shardcall.check_rule('custom_relu')
print('ran:', sj.explain(f, placed).count(), 'collectives')
PY
chroot "$root" bash -euc "cd /tmp/wheel; rm -rf e; $python -m venv e
  e/bin/pip install -q jax ml_dtypes ./$(basename "$wheel")
  e/bin/python run.py; e/bin/shardcall --version"
