// SPDX-License-Identifier: Apache-2.0
// The calls of MPI itself, blocking, and non-blocking polled as the backend
// polls its messages.
#include <mpi.h>

#include <chrono>
#include <thread>

#include "shardcall/collectives/mpi/mpi_session.h"
#include "shardcall/sharding/base/status.h"
#include "tests/benchmarks/collective_bench.h"

namespace shardcall::bench {
namespace {

constexpr int kLooksBeforeSleep = 2000;

int Blocking(Op op, Buffers& b) {
  const int count = static_cast<int>(b.block);
  const int next = (b.rank + 1) % b.devices, previous = (b.rank + b.devices - 1) % b.devices;
  float *in = b.from, *out = b.to;
  switch (op) {
    case Op::kAllReduce: return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Op::kAllGather:
      return MPI_Allgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
    case Op::kReduceScatter:
      return MPI_Reduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    case Op::kAllToAll:
      return MPI_Alltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD);
    case Op::kBroadcast: return MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    case Op::kPermute:
      return MPI_Sendrecv(in, count, MPI_FLOAT, next, 0, out, count, MPI_FLOAT, previous, 0,
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return MPI_ERR_OTHER;
}

int Start(Op op, Buffers& b, MPI_Request* requests) {
  const int count = static_cast<int>(b.block);
  const int next = (b.rank + 1) % b.devices, previous = (b.rank + b.devices - 1) % b.devices;
  float *in = b.from, *out = b.to;
  requests[1] = MPI_REQUEST_NULL;
  switch (op) {
    case Op::kAllReduce:
      return MPI_Iallreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, requests);
    case Op::kAllGather:
      return MPI_Iallgather(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD, requests);
    case Op::kReduceScatter:
      return MPI_Ireduce_scatter_block(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                       requests);
    case Op::kAllToAll:
      return MPI_Ialltoall(in, count, MPI_FLOAT, out, count, MPI_FLOAT, MPI_COMM_WORLD, requests);
    case Op::kBroadcast: return MPI_Ibcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD, requests);
    case Op::kPermute:
      MPI_Irecv(out, count, MPI_FLOAT, previous, 0, MPI_COMM_WORLD, &requests[1]);
      return MPI_Isend(in, count, MPI_FLOAT, next, 0, MPI_COMM_WORLD, requests);
  }
  return MPI_ERR_OTHER;
}

absl::Status Polled(Op op, Buffers& b) {
  MPI_Request requests[2];
  SHARDCALL_RETURN_IF_ERROR(MpiStatus(Start(op, b, requests), "the raw call"));
  for (int idle = 0, done = 0; !done; ++idle) {
    SHARDCALL_RETURN_IF_ERROR(
        MpiStatus(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall"));
    if (done) break;
    if (idle < kLooksBeforeSleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Side> RawMpiSides(Op op) {
  std::vector<Side> sides;
  sides.push_back({"MPI", [op](Buffers& b) { return MpiStatus(Blocking(op, b), "the raw call"); }});
  sides.push_back({"MPI polled", [op](Buffers& b) { return Polled(op, b); }});
  if (op == Op::kReduceScatter) {
    sides.push_back({"MPI_Reduce_scatter", [](Buffers& b) {
                       const std::vector<int> counts(b.devices, static_cast<int>(b.block));
                       return MpiStatus(MPI_Reduce_scatter(b.from, b.to, counts.data(), MPI_FLOAT,
                                                           MPI_SUM, MPI_COMM_WORLD),
                                        "MPI_Reduce_scatter");
                     }});
  }
  return sides;
}

}  // namespace shardcall::bench
