// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/latency_hiding.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

namespace shardcall {
inline namespace internal {
namespace {

class LatencyHider {
 public:
  LatencyHider(const Module& m, const RunSteps& steps, absl::Span<const int> order,
               const StepSeconds& seconds)
      : m_(m), steps_(steps), seconds_(seconds), rank_(steps.size()), unplaced_(steps.size()) {
    for (size_t k = 0; k < order.size(); ++k) {
      rank_[order[k]] = static_cast<int>(IsKernel(order[k]) ? order.size() + k : k);
    }
    for (const int place : order) {
      unplaced_[place] = static_cast<int>(steps.Users(place).size());
      if (unplaced_[place] == 0) Ready(place);
    }
  }

  std::vector<int> Run(std::vector<bool>* started) {
    while (!collectives_.empty() || !others_.empty()) {
      if (collectives_.empty()) {
        Place(TakeLast(&others_));
        continue;
      }
      const int collective = TakeLast(&collectives_);
      double left = SecondsOf(collective);
      while (left > 0 && !others_.empty()) {
        const int other = TakeLast(&others_);
        if (IsKernel(other)) (*started)[steps_.At(collective).value] = true;
        left -= SecondsOf(other);
        Place(other);
      }
      Place(collective);
    }
    std::reverse(backwards_.begin(), backwards_.end());
    return std::move(backwards_);
  }

 private:
  using Ranked = std::set<std::pair<int, int>>;  // rank, place

  static int TakeLast(Ranked* steps) {
    const auto last = std::prev(steps->end());
    const int place = last->second;
    steps->erase(last);
    return place;
  }

  // Parameters are no kernels, and stand at the beginning.
  bool IsKernel(int place) const {
    return steps_.HasMemory(place) && m_.instr(steps_.At(place)).opcode != Opcode::kParameter;
  }

  void Ready(int place) {
    const bool collective = HasTrait(m_.instr(steps_.At(place)).opcode, kCollectiveOp);
    (collective ? collectives_ : others_).insert({rank_[place], place});
  }

  void Place(int place) {
    backwards_.push_back(place);
    for (const int from : steps_.Reads(place)) {
      if (--unplaced_[from] == 0) Ready(from);
    }
  }

  double SecondsOf(int place) const {
    const Instruction& i = m_.instr(steps_.At(place));
    if (!IsKernel(place)) return 0;
    auto bytes = static_cast<double>(i.shape->byte_size());
    for (const int from : steps_.Reads(place)) {
      bytes += static_cast<double>(m_.instr(steps_.At(from)).shape->byte_size());
    }
    if (HasTrait(i.opcode, kCollectiveOp)) {
      return seconds_.of_collective + bytes * seconds_.per_sent_byte;
    }
    return seconds_.of_kernel + std::max(bytes * seconds_.per_byte,
                                         MultiplicationsOf(place) * seconds_.per_multiplication);
  }

  double MultiplicationsOf(int place) const {
    const InstrId id = steps_.At(place);
    const Instruction& i = m_.instr(id);
    if (i.opcode != Opcode::kDot) return 0;
    auto out = static_cast<double>(i.shape->num_elements());
    for (const int64_t d : i.as<DotAttrs>().lhs_contracting) {
      out *= static_cast<double>(m_.instr(m_.operand(id, 0)).shape->dims()[d]);
    }
    return out;
  }

  const Module& m_;
  const RunSteps& steps_;
  const StepSeconds& seconds_;
  // By place: where it stands in the given order, and how many of its users are not placed.
  std::vector<int> rank_, unplaced_;
  Ranked others_, collectives_;  // whose users are all placed
  std::vector<int> backwards_;
};

}  // namespace

std::vector<int> HideLatencies(const Module& m, const RunSteps& steps, absl::Span<const int> order,
                               const StepSeconds& seconds, std::vector<bool>* started) {
  return LatencyHider(m, steps, order, seconds).Run(started);
}

}  // namespace internal
}  // namespace shardcall
