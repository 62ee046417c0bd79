// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL that we call to move data, and groups of them.
#include <nccl.h>

#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/collectives/stand_in/communicator.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stream.h"

namespace stand_in {
namespace {

// A non-blocking communicator puts every other call on its stream only when its
// state has been looked at so often; the real one does so where it first connects.
constexpr int kLooks = 3;

struct Enqueued {
  std::vector<Operation> operations;
  std::shared_ptr<Stream> stream;
};
thread_local int depth = 0;  // of groups
thread_local std::vector<Enqueued> grouped;

const char* TypeName(ncclDataType_t type) {
  static const char* const kNames[] = {"int8",   "uint8", "int32", "uint32", "int64",
                                       "uint64", "f16",   "f32",   "f64"};
  return static_cast<size_t>(type) < std::size(kNames) ? kNames[type] : "?";
}

bool Overlap(const char* a, size_t a_bytes, const char* b, size_t b_bytes) {
  return a_bytes > 0 && b_bytes > 0 && a < b + b_bytes && b < a + a_bytes;
}

ncclResult_t Launch(Enqueued enqueued) {
  Comm& comm = *enqueued.operations.front().comm;
  for (const Operation& o : enqueued.operations) {
    if (o.comm.get() != &comm) Misuse("a group of calls of several communicators");
  }
  for (const Operation& to : enqueued.operations) {
    for (const Operation& from : enqueued.operations) {
      if (to.op == Op::kRecv && from.op == Op::kSend &&
          Overlap(to.out.data, to.count * TypeBytes(to.type), from.in.data,
                  from.count * TypeBytes(from.type))) {
        Misuse("ncclRecv into memory that a send of the same group reads");
      }
    }
  }
  auto push = [stream = enqueued.stream, operations = std::move(enqueued.operations)]() mutable {
    stream->Push(RunTogether(std::move(operations)));
  };
  if (comm.blocking || ++comm.launches % 2 == 0) {
    push();
    return ncclSuccess;
  }
  comm.state = ncclInProgress;
  comm.move_on = [push = std::move(push), looks = 0]() mutable {
    if (++looks < kLooks) return ncclInProgress;
    push();
    return ncclSuccess;
  };
  return ncclInProgress;
}

ncclResult_t Enqueue(Operation operation, cudaStream_t stream, const char* function) {
  std::shared_ptr<Stream> on = FindStream(stream, function);
  if (on->device() != operation.comm->device) {
    Misuse(std::string(function) + " on a stream of another device");
  }
  const bool peer_or_root = operation.root >= 0 && operation.root < operation.comm->count;
  if (!peer_or_root) return ncclInvalidArgument;
  std::string call = std::string(function) + "(" + std::to_string(operation.count) + " " +
                     TypeName(operation.type);
  if (operation.op == Op::kSend) call += " to " + std::to_string(operation.root);
  if (operation.op == Op::kRecv) call += " from " + std::to_string(operation.root);
  Record(call + ", " + CommText(*operation.comm) + ")");
  if (depth > 0) {
    if (!grouped.empty() && grouped.front().stream != on) {
      Misuse("a group of calls on several streams");
    }
    if (grouped.empty()) grouped.push_back({{}, on});
    grouped.front().operations.push_back(std::move(operation));
    return ncclSuccess;
  }
  Enqueued alone{{}, on};
  alone.operations.push_back(std::move(operation));
  return Launch(std::move(alone));
}

Operation Begin(Op op, size_t count, ncclDataType_t type, ncclComm_t comm, const char* function) {
  Operation o;
  o.op = op;
  o.comm = FindReady(comm, function);
  o.count = count;
  o.type = type;
  return o;
}

// In and out are one and the same where `same` is, or apart.
void CheckPlace(const View& in, size_t in_bytes, const View& out, size_t out_bytes,
                const char* same_in, const char* same_out, const char* function) {
  if (same_in != same_out && Overlap(in.data, in_bytes, out.data, out_bytes)) {
    Misuse(std::string(function) + " of buffers that overlap");
  }
}

}  // namespace

int GroupDepth() { return depth; }

}  // namespace stand_in

using namespace stand_in;  // NOLINT

extern "C" {

ncclResult_t ncclGroupStart() {
  Record("ncclGroupStart");
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  Record("ncclGroupEnd");
  if (depth == 0) Misuse("ncclGroupEnd without ncclGroupStart");
  if (--depth > 0 || grouped.empty()) return ncclSuccess;
  Enqueued enqueued = std::move(grouped.front());
  grouped.clear();
  return Launch(std::move(enqueued));
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Operation o = Begin(Op::kAllReduce, count, type, comm, "ncclAllReduce");
  const size_t bytes = count * TypeBytes(type);
  o.in = LookAtDevice(in, bytes, "ncclAllReduce");
  o.out = LookAtDevice(out, bytes, "ncclAllReduce");
  CheckPlace(o.in, bytes, o.out, bytes, o.in.data, o.out.data, "ncclAllReduce");
  o.reduction = op;
  return Enqueue(std::move(o), stream, "ncclAllReduce");
}

ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  Operation o = Begin(Op::kReduceScatter, count, type, comm, "ncclReduceScatter");
  const size_t bytes = count * TypeBytes(type), n = o.comm->count;
  o.in = LookAtDevice(in, n * bytes, "ncclReduceScatter");
  o.out = LookAtDevice(out, bytes, "ncclReduceScatter");
  CheckPlace(o.in, n * bytes, o.out, bytes, o.in.data + o.comm->rank * bytes, o.out.data,
             "ncclReduceScatter");
  o.reduction = op;
  return Enqueue(std::move(o), stream, "ncclReduceScatter");
}

ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  Operation o = Begin(Op::kAllGather, count, type, comm, "ncclAllGather");
  const size_t bytes = count * TypeBytes(type), n = o.comm->count;
  o.in = LookAtDevice(in, bytes, "ncclAllGather");
  o.out = LookAtDevice(out, n * bytes, "ncclAllGather");
  CheckPlace(o.in, bytes, o.out, n * bytes, o.in.data, o.out.data + o.comm->rank * bytes,
             "ncclAllGather");
  return Enqueue(std::move(o), stream, "ncclAllGather");
}

ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  Operation o = Begin(Op::kBroadcast, count, type, comm, "ncclBroadcast");
  const size_t bytes = count * TypeBytes(type);
  o.in = LookAtDevice(in, bytes, "ncclBroadcast");
  o.out = LookAtDevice(out, bytes, "ncclBroadcast");
  CheckPlace(o.in, bytes, o.out, bytes, o.in.data, o.out.data, "ncclBroadcast");
  o.root = root;
  return Enqueue(std::move(o), stream, "ncclBroadcast");
}

ncclResult_t ncclSend(const void* in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Operation o = Begin(Op::kSend, count, type, comm, "ncclSend");
  o.in = LookAtDevice(in, count * TypeBytes(type), "ncclSend");
  o.root = peer;
  return Enqueue(std::move(o), stream, "ncclSend");
}

ncclResult_t ncclRecv(void* out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  Operation o = Begin(Op::kRecv, count, type, comm, "ncclRecv");
  o.out = LookAtDevice(out, count * TypeBytes(type), "ncclRecv");
  o.root = peer;
  return Enqueue(std::move(o), stream, "ncclRecv");
}

}  // extern "C"
