// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/list_order.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>

namespace shardcall {
inline namespace internal {
namespace {

class ListScheduler {
 public:
  ListScheduler(const Module& m, const RunSteps& steps)
      : m_(m), steps_(steps), states_(steps.size()) {
    for (int place = 0; place < steps.size(); ++place) {
      states_[place].waits = static_cast<int>(steps.Reads(place).size());
      states_[place].unread = static_cast<int>(steps.Users(place).size());
      states_[place].bytes = BytesMade(place);
    }
  }

  std::vector<int> Run() {
    for (int place = 0; place < steps_.size(); ++place) {
      if (steps_.Runs(place) && states_[place].waits == 0) List(place);
    }
    std::vector<int> out;
    while (!list_.empty()) {
      const auto best = std::prev(list_.end());
      out.push_back(std::get<int>(*best));
      states_[out.back()].entry.reset();
      list_.erase(best);
      Finish(out.back());
    }
    return out;
  }

 private:
  // Bytes freed less bytes made, users, turn, place.
  using Entry = std::tuple<int64_t, size_t, int64_t, int>;
  struct State {
    int waits = 0;   // for so many values
    int unread = 0;  // so many of its users have not run
    int64_t bytes = 0;
    std::optional<Entry> entry;  // while it is in the list
  };

  // Parameters are the caller's, and a loop has the memory of what it begins with.
  int64_t BytesMade(int place) const {
    const Instruction& i = m_.instr(steps_.At(place));
    const bool makes =
        steps_.HasMemory(place) && i.opcode != Opcode::kParameter && i.opcode != Opcode::kWhile;
    return makes ? i.shape->byte_size() : 0;
  }

  // Puts a step into the list, or where it belongs now.
  void List(int place) {
    State& state = states_[place];
    int64_t freed = -state.bytes;
    for (const int from : steps_.Reads(place)) {
      if (states_[from].unread == 1) freed += states_[from].bytes;
    }
    if (state.entry.has_value()) {
      if (std::get<0>(*state.entry) == freed) return;
      list_.erase(*state.entry);
    }
    state.entry = Entry(freed, steps_.Users(place).size(), turn_++, place);
    list_.insert(*state.entry);
  }

  void Finish(int place) {
    for (const int user : steps_.Users(place)) {
      if (--states_[user].waits == 0) List(user);
    }
    for (const int from : steps_.Reads(place)) {
      if (--states_[from].unread != 1) continue;
      for (const int user : steps_.Users(from)) {
        if (states_[user].entry.has_value()) List(user);
      }
    }
  }

  const Module& m_;
  const RunSteps& steps_;
  std::vector<State> states_;  // by place
  std::set<Entry> list_;
  int64_t turn_ = 0;
};

}  // namespace

std::vector<int> ListOrder(const Module& m, const RunSteps& steps) {
  return ListScheduler(m, steps).Run();
}

}  // namespace internal
}  // namespace shardcall
