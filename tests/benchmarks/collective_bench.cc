// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmarks/collective_bench.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Small integers, so that sums are exact in any order.
constexpr int64_t kPeriod = 17;
int64_t Residue(int64_t i) { return (i * 13 + (i >> 10)) % kPeriod; }
float ValueOf(int rank, int64_t residue) {
  return static_cast<float>((rank * 7 + residue) % kPeriod - 8);
}
float Value(int rank, int64_t i) { return ValueOf(rank, Residue(i)); }

std::vector<int> Everyone(int devices) {
  std::vector<int> all(devices);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

const char* OpName(Op op) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                    "all-to-all", "broadcast",  "permute"};
  return kNames[static_cast<int>(op)];
}

double BusFactor(Op op, int devices) {
  const double others = static_cast<double>(devices - 1) / devices;
  switch (op) {
    case Op::kAllReduce: return 2 * others;
    case Op::kAllGather:
    case Op::kReduceScatter:
    case Op::kAllToAll: return others;
    case Op::kBroadcast:
    case Op::kPermute: return 1;
  }
  return 1;
}

Buffers::Buffers(Op the_op, int64_t size, int the_rank, int the_devices, const Memory* the_memory)
    : op(the_op), rank(the_rank), devices(the_devices), memory(the_memory) {
  const int64_t whole = size / static_cast<int64_t>(sizeof(float));
  const bool split = op == Op::kAllGather || op == Op::kReduceScatter || op == Op::kAllToAll;
  block = split ? std::max<int64_t>(1, whole / devices) : whole;
  in_count = op == Op::kReduceScatter || op == Op::kAllToAll ? block * devices : block;
  out_count = op == Op::kAllGather || op == Op::kAllToAll ? block * devices : block;
  in.resize(in_count);
  out.resize(out_count);
  for (int64_t i = 0; i < in_count; ++i) in[i] = Value(rank, i);
  from = memory == nullptr ? in.data() : memory->allocate(in_count);
  to = memory == nullptr ? out.data() : memory->allocate(out_count);
}

Buffers::~Buffers() {
  if (memory == nullptr) return;
  memory->free(from);
  memory->free(to);
}

int64_t Buffers::bytes() const {
  return std::max(in_count, out_count) * static_cast<int64_t>(sizeof(float));
}

absl::Status Buffers::ClearResult() {
  if (op == Op::kBroadcast) {
    out = in;
  } else {
    std::fill(out.begin(), out.end(), -1000.0f);
  }
  if (memory == nullptr) return absl::OkStatus();
  if (from == nullptr || to == nullptr) return absl::ResourceExhaustedError("no device memory");
  SHARDCALL_RETURN_IF_ERROR(memory->copy(from, in.data(), in_count));
  return memory->copy(to, out.data(), out_count);
}

absl::StatusOr<int64_t> Buffers::CountWrong() {
  if (memory != nullptr) SHARDCALL_RETURN_IF_ERROR(memory->copy(out.data(), to, out_count));
  // By what a value depends on of i, so that many devices are no work.
  std::array<float, kPeriod> sums{};
  for (int r = 0; r < devices; ++r) {
    for (int64_t m = 0; m < kPeriod; ++m) sums[m] += ValueOf(r, m);
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < out_count; ++i) {
    float expected = 0;
    switch (op) {
      case Op::kAllReduce: expected = sums[Residue(i)]; break;
      case Op::kReduceScatter: expected = sums[Residue(rank * block + i)]; break;
      case Op::kAllGather: expected = Value(static_cast<int>(i / block), i % block); break;
      case Op::kAllToAll:
        expected = Value(static_cast<int>(i / block), rank * block + i % block);
        break;
      case Op::kBroadcast: expected = Value(0, i); break;
      case Op::kPermute: expected = Value((rank + devices - 1) % devices, i); break;
    }
    if (out[i] != expected) ++wrong;
  }
  return wrong;
}

Side LibrarySide(Communicator& c, Op op) {
  const std::vector<int> all = Everyone(c.size());
  std::vector<std::pair<int, int>> ring;
  for (int r = 0; r < c.size(); ++r) ring.push_back({r, (r + 1) % c.size()});
  const auto run = [&c, op, all, ring](Buffers& b) {
    const int64_t bytes = b.block * static_cast<int64_t>(sizeof(float));
    switch (op) {
      case Op::kAllReduce:
        return c.AllReduce(all, ReduceKind::kSum, ElementType::kF32, b.from, b.to, b.block,
                           {"%ar"});
      case Op::kAllGather: return c.AllGather(all, b.from, b.to, bytes, {"%ag"});
      case Op::kReduceScatter:
        return c.ReduceScatter(all, ReduceKind::kSum, ElementType::kF32, b.from, b.to, b.block,
                               {"%rs"});
      case Op::kAllToAll: return c.AllToAll(all, b.from, b.to, bytes, {"%a2a"});
      case Op::kBroadcast: return c.Broadcast(all, 0, b.to, bytes, {"%cb"});
      case Op::kPermute: return c.Permute(ring, b.from, b.to, bytes, {"%cp"});
    }
    return absl::OkStatus();
  };
  return {"shardcall", run};
}

Side MemcpySide() {
  const auto run = [](Buffers& b) -> absl::Status {
    const int64_t count = std::min(b.in_count, b.out_count);
    for (int64_t at = 0; at < std::max(b.in_count, b.out_count); at += count) {
      float* const to = b.to + at % b.out_count;
      const float* const from = b.from + at % b.in_count;
      if (b.memory != nullptr) {
        SHARDCALL_RETURN_IF_ERROR(b.memory->copy(to, from, count));
      } else {
        std::memcpy(to, from, count * sizeof(float));
      }
    }
    return absl::OkStatus();
  };
  return {"memcpy", run, /*checked=*/false, /*first_only=*/true};
}

absl::Status Measure(Communicator& c, const Options& options,
                     const std::function<std::vector<Side>(Op)>& baselines,
                     std::vector<Point>* points) {
  const std::vector<int> all = Everyone(c.size());
  // Seconds of one call, the slowest device's; checks the last result.
  const auto timed = [&](const Side& side, Buffers& b, int64_t calls) -> absl::StatusOr<double> {
    SHARDCALL_RETURN_IF_ERROR(c.Barrier(all, {"%start"}));
    const auto start = Clock::now();
    if (!side.first_only || c.rank() == 0) {
      for (int64_t i = 0; i < calls; ++i) SHARDCALL_RETURN_IF_ERROR(side.run(b));
    }
    double seconds = std::chrono::duration<double>(Clock::now() - start).count() / calls;
    SHARDCALL_RETURN_IF_ERROR(
        c.AllReduce(all, ReduceKind::kMax, ElementType::kF64, &seconds, &seconds, 1, {"%seconds"}));
    return seconds;
  };
  for (Op op : options.ops) {
    std::vector<Side> sides = {LibrarySide(c, op)};
    for (Side& side : baselines(op)) sides.push_back(std::move(side));
    sides.push_back(MemcpySide());
    for (int64_t size = options.min_bytes; size <= options.max_bytes; size *= options.factor) {
      Buffers buffers(op, size, c.rank(), c.size(), options.memory);
      std::vector<int64_t> calls(sides.size());
      std::vector<int64_t> wrong(sides.size(), 0);
      std::vector<std::vector<double>> seconds(sides.size());
      for (size_t s = 0; s < sides.size(); ++s) {
        SHARDCALL_RETURN_IF_ERROR(buffers.ClearResult());
        for (int warm : {1, 2}) {
          SHARDCALL_ASSIGN_OR_RETURN(const double once, timed(sides[s], buffers, warm));
          calls[s] =
              std::clamp<int64_t>(static_cast<int64_t>(options.round_seconds / once), 1, 100000);
        }
        if (sides[s].checked) {
          SHARDCALL_ASSIGN_OR_RETURN(wrong[s], buffers.CountWrong());
        }
      }
      // While device 0 copies memory the others fall asleep, which would tell on
      // the side that comes next; so memcpy, the last, has rounds of its own.
      const size_t last = sides.size() - 1;
      for (int round = 0; round < options.rounds; ++round) {
        for (size_t turn = 0; turn < last; ++turn) {
          const size_t s = (turn + round) % last;
          SHARDCALL_ASSIGN_OR_RETURN(const double once, timed(sides[s], buffers, calls[s]));
          seconds[s].push_back(once);
        }
      }
      for (int round = 0; round < options.rounds; ++round) {
        SHARDCALL_ASSIGN_OR_RETURN(const double once, timed(sides[last], buffers, calls[last]));
        seconds[last].push_back(once);
      }
      for (size_t s = 0; s < sides.size(); ++s) {
        if (sides[s].checked) {
          SHARDCALL_RETURN_IF_ERROR(buffers.ClearResult());
          SHARDCALL_RETURN_IF_ERROR(timed(sides[s], buffers, 1).status());
          SHARDCALL_ASSIGN_OR_RETURN(const int64_t more, buffers.CountWrong());
          wrong[s] += more;
        }
        SHARDCALL_RETURN_IF_ERROR(c.AllReduce(all, ReduceKind::kSum, ElementType::kS64, &wrong[s],
                                              &wrong[s], 1, {"%wrong"}));
        std::vector<double> ratios;
        for (int round = 0; round < options.rounds; ++round) {
          ratios.push_back(seconds[s][round] / seconds[0][round]);
        }
        Point point;
        point.op = OpName(op);
        point.side = sides[s].name;
        point.bytes = buffers.bytes();
        point.best_us = *std::min_element(seconds[s].begin(), seconds[s].end()) * 1e6;
        point.median_us = Median(seconds[s]) * 1e6;
        point.median_ratio = Median(ratios);
        point.algbw = static_cast<double>(point.bytes) / point.best_us / 1e3;
        point.busbw = sides[s].checked ? point.algbw * BusFactor(op, c.size()) : point.algbw;
        point.wrong = wrong[s];
        if (c.rank() == 0) points->push_back(point);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace shardcall::bench
