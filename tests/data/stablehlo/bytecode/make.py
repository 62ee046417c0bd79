#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes each .mlir of this folder as MLIR bytecode of version 4, by jaxlib: 0.10.2 wrote these,
but 0.12.0.1 wrote mesh_groups, whose replica groups name axes of a mesh, and top_k, which says
whether it is stable.

    make.py [NAME...]
"""
import io
import pathlib
import sys

from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

for path in sorted(pathlib.Path(__file__).parent.glob('*.mlir')):
    if len(sys.argv) > 1 and path.stem not in sys.argv:
        continue
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(path.read_text())
        module.operation.verify()
        out = io.BytesIO()
        module.operation.write_bytecode(out, desired_version=4)
    path.with_suffix('.mlirbc').write_bytes(out.getvalue())
    print(path.stem, len(out.getvalue()))
