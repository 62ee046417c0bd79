// SPDX-License-Identifier: Apache-2.0
// NCCL's own calls over a communicator of their own, awaited by the stream, and
// device memory for the benchmark.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"
#include "tests/benchmarks/collective_bench.h"

namespace shardcall::bench {
namespace {

absl::Status Cuda(cudaError_t code) {
  return code == cudaSuccess ? absl::OkStatus() : absl::InternalError(cudaGetErrorString(code));
}
absl::Status Nccl(ncclResult_t code) {
  return code == ncclSuccess
             ? absl::OkStatus()
             : absl::InternalError(absl::StrCat("raw NCCL: ", ncclGetErrorString(code)));
}

struct Raw {
  ~Raw() {
    if (comm != nullptr) ncclCommDestroy(comm);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

absl::StatusOr<std::shared_ptr<Raw>> Connect(Communicator& c) {
  auto raw = std::make_shared<Raw>();
  ncclUniqueId id;
  if (c.rank() == 0) SHARDCALL_RETURN_IF_ERROR(Nccl(ncclGetUniqueId(&id)));
  std::vector<int> all(c.size());
  std::iota(all.begin(), all.end(), 0);
  SHARDCALL_RETURN_IF_ERROR(c.Broadcast(all, 0, &id, sizeof(id), {"%id"}));
  SHARDCALL_RETURN_IF_ERROR(Cuda(cudaStreamCreateWithFlags(&raw->stream, cudaStreamNonBlocking)));
  SHARDCALL_RETURN_IF_ERROR(Nccl(ncclCommInitRank(&raw->comm, c.size(), id, c.rank())));
  return raw;
}

ncclResult_t Enqueue(const Raw& raw, Op op, Buffers& b) {
  const int next = (b.rank + 1) % b.devices, previous = (b.rank + b.devices - 1) % b.devices;
  const size_t n = b.block;
  switch (op) {
    case Op::kAllReduce:
      return ncclAllReduce(b.from, b.to, n, ncclFloat32, ncclSum, raw.comm, raw.stream);
    case Op::kAllGather: return ncclAllGather(b.from, b.to, n, ncclFloat32, raw.comm, raw.stream);
    case Op::kReduceScatter:
      return ncclReduceScatter(b.from, b.to, n, ncclFloat32, ncclSum, raw.comm, raw.stream);
    case Op::kBroadcast: return ncclBroadcast(b.to, b.to, n, ncclFloat32, 0, raw.comm, raw.stream);
    case Op::kAllToAll:
    case Op::kPermute: {
      ncclGroupStart();
      for (int j = 0; j < b.devices; ++j) {
        if (op == Op::kAllToAll) {
          ncclSend(b.from + j * n, n, ncclFloat32, j, raw.comm, raw.stream);
          ncclRecv(b.to + j * n, n, ncclFloat32, j, raw.comm, raw.stream);
        } else if (j == b.rank) {
          ncclSend(b.from, n, ncclFloat32, next, raw.comm, raw.stream);
          ncclRecv(b.to, n, ncclFloat32, previous, raw.comm, raw.stream);
        }
      }
      return ncclGroupEnd();
    }
  }
  return ncclInvalidArgument;
}

}  // namespace

absl::StatusOr<std::function<std::vector<Side>(Op)>> RawNcclSides(Communicator& c) {
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<Raw> raw, Connect(c));
  return [raw](Op op) {
    return std::vector<Side>{{"NCCL", [raw, op](Buffers& b) -> absl::Status {
                                SHARDCALL_RETURN_IF_ERROR(Nccl(Enqueue(*raw, op, b)));
                                return Cuda(cudaStreamSynchronize(raw->stream));
                              }}};
  };
}

const Memory* DeviceMemory() {
  static const Memory* const kMemory = new Memory{
      [](int64_t count) -> float* {
        void* made = nullptr;
        return cudaMalloc(&made, count * sizeof(float)) == cudaSuccess ? static_cast<float*>(made)
                                                                       : nullptr;
      },
      [](float* memory) { cudaFree(memory); },
      [](float* to, const float* from, int64_t count) {
        return Cuda(cudaMemcpy(to, from, count * sizeof(float), cudaMemcpyDefault));
      }};
  return kMemory;
}

}  // namespace shardcall::bench
