// SPDX-License-Identifier: Apache-2.0
// How the stand-in moves data: every collective is messages between all pairs, and
// a fold from the last rank to the first, since NCCL's order is not the group's.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/collectives/stand_in/communicator.h"
#include "tests/collectives/stand_in/record.h"
#include "tests/collectives/stand_in/stand_in.h"

namespace stand_in {
namespace {

std::atomic<int> failure_of_next{ncclSuccess};

template <typename T>
void CombineAs(ncclRedOp_t reduction, const char* a, const char* b, char* out, int64_t count) {
  const T* const x = reinterpret_cast<const T*>(a);
  const T* const y = reinterpret_cast<const T*>(b);
  T* const to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) {
    switch (reduction) {
      case ncclSum: to[i] = static_cast<T>(x[i] + y[i]); break;
      case ncclProd: to[i] = static_cast<T>(x[i] * y[i]); break;
      case ncclMax: to[i] = std::max(x[i], y[i]); break;
      default: to[i] = std::min(x[i], y[i]); break;
    }
  }
}

// One operation under way: what it sends and receives, and what then becomes of it.
struct Running {
  Operation operation;
  std::vector<Transfer> transfers;
  std::vector<std::vector<char>> received;  // by rank, of a reduction

  explicit Running(Operation o) : operation(std::move(o)) {
    const Comm& comm = *operation.comm;
    const size_t bytes = operation.count * TypeBytes(operation.type);
    const int me = comm.rank, n = comm.count, root = operation.root;
    if (bytes == 0) return;
    switch (operation.op) {
      case Op::kAllReduce:
      case Op::kReduceScatter:
        received.resize(n);
        for (int r = 0; r < n; ++r) {
          if (r == me) continue;
          const bool scatters = operation.op == Op::kReduceScatter;
          Send(r, operation.in.data + (scatters ? r * bytes : 0), bytes);
          received[r].resize(bytes);
          Receive(r, received[r].data(), bytes);
        }
        break;
      case Op::kAllGather:
        for (int r = 0; r < n; ++r) {
          if (r == me) continue;
          Send(r, operation.in.data, bytes);
          Receive(r, operation.out.data + r * bytes, bytes);
        }
        break;
      case Op::kBroadcast:
        for (int r = 0; r < n && me == root; ++r) {
          if (r != me) Send(r, operation.in.data, bytes);
        }
        if (me != root) Receive(root, operation.out.data, bytes);
        break;
      case Op::kSend: Send(root, operation.in.data, bytes); break;
      case Op::kRecv: Receive(root, operation.out.data, bytes); break;
    }
  }

  Header header() const {
    const bool pair = operation.op == Op::kSend || operation.op == Op::kRecv;
    return {static_cast<int32_t>(pair ? Op::kSend : operation.op), operation.type,
            operation.reduction, pair ? 0 : operation.root, operation.count};
  }
  void Send(int to, char* data, size_t bytes) {
    transfers.emplace_back(operation.comm->segment->ring(operation.comm->rank, to), true, header(),
                           data, bytes);
  }
  void Receive(int from, char* data, size_t bytes) {
    transfers.emplace_back(operation.comm->segment->ring(from, operation.comm->rank), false,
                           header(), data, bytes);
  }

  void Finish() {
    const Comm& comm = *operation.comm;
    const size_t bytes = operation.count * TypeBytes(operation.type);
    const int me = comm.rank, n = comm.count;
    char* const out = operation.out.data;
    if (bytes == 0) return;
    if (operation.op == Op::kAllGather) {
      std::memmove(out + me * bytes, operation.in.data, bytes);
    } else if (operation.op == Op::kBroadcast) {
      if (me == operation.root) std::memmove(out, operation.in.data, bytes);
    } else if (operation.op == Op::kAllReduce || operation.op == Op::kReduceScatter) {
      const char* const own =
          operation.in.data + (operation.op == Op::kReduceScatter ? me * bytes : 0);
      received[me].assign(own, own + bytes);
      std::vector<char> fold = std::move(received[n - 1]);
      for (int r = n - 2; r >= 0; --r) {
        Combine(operation.type, operation.reduction, fold.data(), received[r].data(), fold.data(),
                operation.count);
      }
      std::memcpy(out, fold.data(), bytes);
    }
  }
};

struct Group {
  std::vector<Running> running;
  bool failed = false;

  explicit Group(std::vector<Operation> operations) {
    for (Operation& o : operations) running.emplace_back(std::move(o));
    for (Running& r : running) ++r.operation.comm->running;
  }
  ~Group() {
    for (Running& r : running) --r.operation.comm->running;
  }

  bool Step() {
    if (!failed) {
      const int code = failure_of_next.exchange(ncclSuccess);
      failed = code != ncclSuccess;
      if (failed) SetLastError("a test wants it so");
      if (failed) running.front().operation.comm->failure = code;
    }
    for (const Running& r : running) {
      if (r.operation.comm->aborted) return true;
    }
    if (failed) return false;
    // By earlier messages, which the ring takes or gives first.
    std::vector<std::pair<const Ring*, bool>> taken;
    bool done = true;
    for (Running& r : running) {
      for (Transfer& t : r.transfers) {
        if (t.done()) continue;
        const std::pair<const Ring*, bool> end(t.ring(), t.sends());
        if (std::count(taken.begin(), taken.end(), end) == 0) t.Step();
        if (!t.done()) {
          done = false;
          taken.push_back(end);
        }
      }
    }
    if (!done) return false;
    for (Running& r : running) r.Finish();
    return true;
  }
};

}  // namespace

void FailNextOperation(int nccl_result) { failure_of_next = nccl_result; }

size_t TypeBytes(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    default: Misuse("type " + std::to_string(type) + ", which the stand-in has not");
  }
}

void Combine(ncclDataType_t type, ncclRedOp_t reduction, const char* a, const char* b, char* out,
             int64_t count) {
  switch (type) {
    case ncclInt8: return CombineAs<int8_t>(reduction, a, b, out, count);
    case ncclUint8: return CombineAs<uint8_t>(reduction, a, b, out, count);
    case ncclInt32:
    case ncclUint32:
      // Sums and products wrap, as they do without a sign.
      if (type == ncclUint32 || reduction == ncclSum || reduction == ncclProd) {
        return CombineAs<uint32_t>(reduction, a, b, out, count);
      }
      return CombineAs<int32_t>(reduction, a, b, out, count);
    case ncclInt64:
    case ncclUint64:
      if (type == ncclUint64 || reduction == ncclSum || reduction == ncclProd) {
        return CombineAs<uint64_t>(reduction, a, b, out, count);
      }
      return CombineAs<int64_t>(reduction, a, b, out, count);
    case ncclFloat32: return CombineAs<float>(reduction, a, b, out, count);
    default: return CombineAs<double>(reduction, a, b, out, count);
  }
}

std::function<bool()> RunTogether(std::vector<Operation> operations) {
  auto group = std::make_shared<Group>(std::move(operations));
  return [group] { return group->Step(); };
}

}  // namespace stand_in
