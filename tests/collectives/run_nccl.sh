#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU, in one call: builds with CUDA; calls handlers for CUDA in
# each of the four ABIs; runs the conformance suite over NCCL on one rank, then on
# several ranks that share GPU 0; runs the examples' programs over NCCL; measures
# the collectives beside raw NCCL with a rank per GPU (build-cuda/nccl.json).
#   bash tests/collectives/run_nccl.sh [BUILD=build-cuda]
# Several ranks on one GPU test results, not speed: NCCL counts hosts by
# NCCL_HOSTID, and takes sockets between them.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-cuda}
nvidia-smi -L || { echo 'there is no GPU here' >&2; exit 4; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSHARDCALL_CUDA=ON
ninja -C "$build" nccl_conformance shardcall run_program own_collective bench_collectives \
  kernels_cuda_handlers_test kernels_cuda_targets_test
program=$build/bin/nccl_conformance

echo '== handlers for CUDA'
"$build/bin/kernels_cuda_handlers_test"
"$build/bin/kernels_cuda_targets_test"

echo '== one rank'
"$program"
shared='NCCL_HOSTID=vhost$OMPI_COMM_WORLD_RANK NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
  NCCL_IB_DISABLE=1 NCCL_NET=Socket NCCL_NET_PLUGIN=none NCCL_SOCKET_IFNAME=lo
  NCCL_SOCKET_FAMILY=AF_INET NCCL_MNNVL_ENABLE=0 NCCL_NVLS_ENABLE=0 NCCL_RAS_ENABLE=0
  NCCL_MAX_CTAS=2 NCCL_ALGO=Ring NCCL_PROTO=Simple CUDA_MODULE_LOADING=EAGER CUDA_VISIBLE_DEVICES=0'
for ranks in 2 4; do
  echo "== $ranks ranks on GPU 0"
  mpirun -np "$ranks" bash -c "env $(echo $shared) $program"
done
echo '== programs on 4 ranks on GPU 0, against the numbers they were made with'
for name in data_parallel_step tensor_parallel_block ring_attention expert_parallel; do
  mpirun -np 4 bash -c "env $(echo $shared) $build/bin/shardcall verify \
    examples/programs/$name.hlo --inputs=examples/programs/$name.inputs.npz --backend=nccl" |
    grep '"status"'
  mpirun -np 4 bash -c "env $(echo $shared) $build/bin/run_program \
    examples/programs/$name --backend=nccl"
done
mpirun -np 4 bash -c "env $(echo $shared) $build/bin/own_collective --backend=nccl"
mpirun -np 4 bash -c "env $(echo $shared) $build/bin/shardcall verify \
  tests/gpu/library_targets.hlo --backend=nccl" | grep '"status"'
gpus=$(nvidia-smi -L | wc -l)
echo "== $gpus ranks, one a GPU, beside raw NCCL"
mpirun -np "$gpus" "$build/bin/bench_collectives" --backend=nccl --json="$build/nccl.json"
