// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/run_order.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

namespace shardcall {
inline namespace internal {
namespace {

class BreadthFirst {
 public:
  BreadthFirst(const Module& m, CompId c, const std::vector<bool>& fused)
      : m_(m), fused_(fused), order_(m.comp(c).instructions) {
    for (size_t at = 0; at < order_.size(); ++at) place_[order_[at]] = at;
    waits_.resize(order_.size());
    users_.resize(order_.size());
    for (size_t at = 0; at < order_.size(); ++at) {
      for (const InstrId o : m.operands(order_[at])) {
        ++waits_[at];
        users_[place_.at(o)].push_back(at);
      }
    }
  }

  std::vector<InstrId> Run() {
    for (size_t at = 0; at < order_.size(); ++at) {
      if (!m_.operands(order_[at]).empty()) continue;
      Ready(at);
      RunWaiting();
    }
    for (size_t next = 0; next < queue_.size(); ++next) {
      Finish(queue_[next]);
      RunWaiting();
    }
    return std::move(out_);
  }

 private:
  bool RunsAtOnce(size_t at) const {
    const InstrId id = order_[at];
    const Opcode opcode = m_.instr(id).opcode;
    return fused_[id.value] || opcode == Opcode::kReshape || opcode == Opcode::kBitcast;
  }

  void Ready(size_t at) { (RunsAtOnce(at) ? at_once_ : queue_).push_back(at); }

  void RunWaiting() {
    while (!at_once_.empty()) {
      const size_t at = at_once_.back();
      at_once_.pop_back();
      Finish(at);
    }
  }

  void Finish(size_t at) {
    out_.push_back(order_[at]);
    for (const size_t user : users_[at]) {
      if (--waits_[user] == 0) Ready(user);
    }
  }

  const Module& m_;
  const std::vector<bool>& fused_;
  const absl::Span<const InstrId> order_;
  // By place in the computation: how many operands are not there yet, and who waits for it.
  absl::flat_hash_map<InstrId, size_t> place_;
  std::vector<int> waits_;
  std::vector<absl::InlinedVector<size_t, 2>> users_;
  std::vector<size_t> queue_, at_once_;
  std::vector<InstrId> out_;
};

}  // namespace

std::vector<InstrId> BreadthFirstOrder(const Module& m, CompId c, const std::vector<bool>& fused) {
  return BreadthFirst(m, c, fused).Run();
}

}  // namespace internal
}  // namespace shardcall
