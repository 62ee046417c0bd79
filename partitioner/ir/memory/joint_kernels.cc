// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/joint_kernels.h"

#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "shardcall/partitioner/ir/memory/fused_ops.h"

namespace shardcall {
inline namespace internal {
namespace {

class KernelJoiner {
 public:
  KernelJoiner(const Module& m, const RunSteps& steps)
      : m_(m), steps_(steps), parent_(steps.size()), members_(steps.size()) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (int place = 0; place < steps.size(); ++place) members_[place] = {place};
  }

  std::vector<std::vector<int>> Run() {
    for (int place = 0; place < steps_.size(); ++place) JoinReaders(place);
    for (int place = steps_.size(); place-- > 0;) JoinToReaders(place);
    std::vector<std::vector<int>> out;
    for (std::vector<int>& members : members_) {
      if (members.size() > 1) out.push_back(std::move(members));
    }
    return out;
  }

 private:
  const Instruction& At(int place) const { return m_.instr(steps_.At(place)); }

  // A reduction of few elements each is computed by its result's, which is not joined.
  bool Reduces(int place) const {
    constexpr int64_t kFew = 32;
    const Instruction& i = At(place);
    if (i.opcode != Opcode::kReduce || i.operand_count != 2) return false;
    return ElementsRead(place) > kFew * std::max<int64_t>(1, i.shape->num_elements());
  }
  int64_t ElementsRead(int place) const {
    return m_.instr(m_.operand(steps_.At(place), 0)).shape->num_elements();
  }

  bool IsJoinable(int place) const {
    if (!steps_.Runs(place) || !steps_.HasMemory(place)) return false;
    const Opcode opcode = At(place).opcode;
    return Reduces(place) ||
           (opcode != Opcode::kCopy && opcode != Opcode::kDot && IsByElement(m_, steps_.At(place)));
  }
  int64_t ElementsOf(int place) const {
    return Reduces(place) ? ElementsRead(place) : At(place).shape->num_elements();
  }

  int Group(int place) const {
    while (parent_[place] != place) place = parent_[place];
    return place;
  }

  void JoinReaders(int place) {
    const Instruction& i = At(place);
    if (i.shape->IsArray() ? i.shape->num_elements() <= 1 : i.opcode != Opcode::kParameter) return;
    const absl::Span<const int> users = steps_.Users(place);
    for (size_t k = 0; k < users.size(); ++k) {
      if (!IsJoinable(users[k])) continue;
      for (size_t n = k + 1; n < users.size(); ++n) {
        const int a = Group(users[k]), b = Group(users[n]);
        if (a == b || !IsJoinable(users[n]) || ElementsOf(users[k]) != ElementsOf(users[n]) ||
            !ReduceAlike(a, b) || Reaches(a, b, /*directly=*/true)) {
          continue;
        }
        Join(a, b);
      }
    }
  }

  void JoinToReaders(int place) {
    if (!IsJoinable(place)) return;
    for (const int user : steps_.Users(place)) {
      const int a = Group(place), b = Group(user);
      const auto reduces = [&](int member) { return Reduces(member); };
      if (a == b || !IsJoinable(user) || ElementsOf(place) != ElementsOf(user) ||
          absl::c_any_of(members_[a], reduces) || Reaches(a, b, /*directly=*/false)) {
        continue;
      }
      Join(a, b);
    }
  }

  // Whether all that is reduced in the two groups is reduced along the same dimensions.
  bool ReduceAlike(int a, int b) const {
    absl::Span<const int64_t> dimensions;
    for (const int group : {a, b}) {
      for (const int member : members_[group]) {
        if (!Reduces(member)) continue;
        const absl::Span<const int64_t> own = At(member).as<ReduceAttrs>().dimensions;
        if (!dimensions.empty() && dimensions != own) return false;
        dimensions = own;
      }
    }
    return true;
  }

  // Whether one of the groups needs the other one: by what stands between them, or `directly`, too.
  bool Reaches(int a, int b, bool directly) {
    return ReachesFrom(a, b, directly) || ReachesFrom(b, a, directly);
  }
  bool ReachesFrom(int from, int to, bool directly) {
    ++search_;
    seen_.resize(members_.size());
    std::vector<int> stack = {from};
    while (!stack.empty()) {
      const int group = stack.back();
      stack.pop_back();
      for (const int member : members_[group]) {
        for (const int user : steps_.Users(member)) {
          const int next = Group(user);
          if (next == from || seen_[next] == search_) continue;
          if (next == to) {
            if (group == from && !directly) continue;
            return true;
          }
          seen_[next] = search_;
          stack.push_back(next);
        }
      }
    }
    return false;
  }

  void Join(int a, int b) {
    parent_[b] = a;
    members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
    members_[b].clear();
  }

  const Module& m_;
  const RunSteps& steps_;
  std::vector<int> parent_;  // by place: itself, or one of its group
  std::vector<std::vector<int>> members_;
  std::vector<int> seen_;  // by group: the last search that came to it
  int search_ = 0;
};

}  // namespace

std::vector<std::vector<int>> FindJointKernels(const Module& m, const RunSteps& steps) {
  if (steps.size() > kMostJoinedSteps) return {};
  return KernelJoiner(m, steps).Run();
}

}  // namespace internal
}  // namespace shardcall
