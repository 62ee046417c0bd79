#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds in Release, and runs the examples:
#   bash examples/run.sh
# First a whole training step of a Llama model with custom calls over 8 devices,
# checked against JAX's own numbers; then targets of one's own, at three levels;
# then programs over four devices, as threads and, where there is MPI, as processes.
# Fails if any result is wrong.
source "$(dirname "$0")/../cmake/setup.sh"

build_shardcall shardcall shardcall_pjrt_plugin examples
step=llama_4layer_train_tiny_calls_d4m2
newest=$SHARDCALL_ROOT/tests/data/hlo_jax_0_12
echo
echo "== a training step with 26 custom calls"
"$SHARDCALL_BUILD/bin/train_step" "$newest/$step.jax12.hlo" \
  "$SHARDCALL_ROOT/tests/data/hlo/$step.inputs.npz" "$newest/$step.outputs.npz"
for program in register_target register_batch_dims register_callbacks build_program subtract; do
  echo
  echo "== $program"
  "$SHARDCALL_BUILD/bin/$program"
done

# NAME PROGRAM ARGUMENT...
on_each_backend() {
  echo
  echo "== $1"
  shift
  "$@" --backend=inprocess
  if command -v mpirun >/dev/null; then
    mpirun -np 4 "$@" --backend=mpi
  fi
}
for name in data_parallel_step tensor_parallel_block ring_attention expert_parallel; do
  on_each_backend "$name" "$SHARDCALL_BUILD/bin/run_program" "$SHARDCALL_ROOT/examples/programs/$name"
done
on_each_backend own_collective "$SHARDCALL_BUILD/bin/own_collective"
