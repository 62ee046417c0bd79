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
  BreadthFirst(const Module& m, CompId c, const FusedOps& fusion)
      : m_(m), fusion_(fusion), order_(m.comp(c).instructions) {
    for (size_t at = 0; at < order_.size(); ++at) place_[order_[at]] = at;
    waits_.resize(order_.size());
    users_.resize(order_.size());
    for (size_t at = 0; at < order_.size(); ++at) {
      WaitForOperands(at, order_[at]);
    }
  }

  std::vector<InstrId> Run() {
    std::vector<size_t> first;
    for (size_t at = 0; at < order_.size(); ++at) {
      if (waits_[at] == 0) first.push_back(at);
    }
    for (const size_t at : first) {
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
  // What is computed on the way to an op, though it is stored for others, is not waited for, but
  // what that reads; of so many ops.
  void WaitForOperands(size_t at, InstrId id) {
    constexpr int kMostOnTheWay = 64;
    absl::InlinedVector<InstrId, 8> readers = {id};
    for (int on_the_way = 0; !readers.empty();) {
      const InstrId reader = readers.back();
      readers.pop_back();
      for (const InstrId o : m_.operands(reader)) {
        if (fusion_.recomputed[o.value] && fusion_.takes[reader.value] &&
            on_the_way < kMostOnTheWay) {
          ++on_the_way;
          readers.push_back(o);
          continue;
        }
        ++waits_[at];
        users_[place_.at(o)].push_back(at);
      }
    }
  }

  bool RunsAtOnce(size_t at) const {
    const InstrId id = order_[at];
    const Opcode opcode = m_.instr(id).opcode;
    return fusion_.fused[id.value] || opcode == Opcode::kReshape || opcode == Opcode::kBitcast;
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
  const FusedOps& fusion_;
  const absl::Span<const InstrId> order_;
  // By place in the computation: how many operands are not there yet, and who waits for it.
  absl::flat_hash_map<InstrId, size_t> place_;
  std::vector<int> waits_;
  std::vector<absl::InlinedVector<size_t, 2>> users_;
  std::vector<size_t> queue_, at_once_;
  std::vector<InstrId> out_;
};

}  // namespace

std::vector<InstrId> BreadthFirstOrder(const Module& m, CompId c, const FusedOps& fusion) {
  return BreadthFirst(m, c, fusion).Run();
}

}  // namespace internal
}  // namespace shardcall
