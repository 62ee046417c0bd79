#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds in Release, and runs the examples:
#   bash examples/run.sh
# First a whole training step of a Llama model with custom calls over 8 devices,
# checked against JAX's own numbers; then targets of one's own, at three levels.
# Fails if any result is wrong.
source "$(dirname "$0")/../cmake/setup.sh"

build_shardcall shardcall examples
step=$SHARDCALL_ROOT/tests/data/hlo/llama_4layer_train_tiny_calls_d4m2
echo
echo "== a training step with 26 custom calls"
"$SHARDCALL_BUILD/bin/train_step" "$step.sdy.hlo" "$step.inputs.npz" "$step.outputs.npz"
for level in target batch_dims callbacks; do
  echo
  echo "== register_$level"
  "$SHARDCALL_BUILD/bin/register_$level"
done
echo
echo "== subtract"
"$SHARDCALL_BUILD/bin/subtract"
