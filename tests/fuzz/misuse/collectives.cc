// SPDX-License-Identifier: Apache-2.0
// Collectives by one of two devices, of which the other never comes: what cannot be is
// refused before anybody is met, and what can ends with the deadline.
#include "absl/time/time.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/sharding/base/status.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

class Alone {
 public:
  explicit Alone(Caller& c) : c_(c), world_(c.Chance(80) ? 1 : 2, absl::Milliseconds(3)) {
    comm_ = world_.Rank(0);
  }
  void Run() {
    const int64_t steps = c_.Int(1, 20);
    for (int64_t k = 0; k < steps; ++k) Step();
    if (c_.Chance(20)) comm_->Abort(absl::UnknownError(c_.Name()));
    if (c_.Chance(20)) Step();
  }

 private:
  static constexpr int64_t kBytes = 4096;

  std::vector<int> Group() {
    if (c_.Chance(85)) return {0};
    std::vector<int> out(c_.Chance(95) ? c_.Int(0, 3) : 10000);
    for (int& r : out) r = static_cast<int>(c_.Chance(70) ? c_.Int(0, 1) : c_.Number());
    return out;
  }
  // What a call takes for its count fits in the buffers, or is refused by itself.
  int64_t Count() { return c_.Chance(80) ? c_.Int(0, 8) : c_.Chance(50) ? -1 : INT64_MIN; }
  void* Buffer(char* data) { return c_.Chance(97) ? data : nullptr; }
  std::vector<int64_t> Sizes() {
    std::vector<int64_t> out(c_.Chance(80) ? 1 : c_.Int(0, 3));
    for (int64_t& n : out) n = c_.Chance(80) ? c_.Int(0, 64) : c_.Chance(50) ? -1 : INT64_MIN;
    return out;
  }
  void Step() {
    const std::vector<int> group = Group();
    const CollectiveTag tag = {c_.Chance(80) ? "%ar" : ""};
    const auto kind = static_cast<ReduceKind>(c_.Chance(90) ? c_.Int(0, 6) : c_.Int(0, 255));
    const auto type = c_.Chance(90) ? c_.Type() : static_cast<ElementType>(c_.Int(0, 255));
    const int64_t n = Count();
    void* const in = Buffer(in_);
    void* const out = Buffer(out_);
    const int other = static_cast<int>(c_.Chance(80) ? c_.Int(0, 1) : c_.Number());
    switch (c_.Int(0, 9)) {
      case 0: c_.Ok(comm_->Barrier(group, tag)); return;
      case 1: c_.Ok(comm_->AllReduce(group, kind, type, in, out, n, tag)); return;
      case 2: c_.Ok(comm_->ReduceScatter(group, kind, type, in, out, n, tag)); return;
      case 3: c_.Ok(comm_->AllGather(group, in, out, n, tag)); return;
      case 4: c_.Ok(comm_->AllToAll(group, in, out, n, tag)); return;
      case 5:
        c_.Ok(comm_->AllToAllV(group, in, Sizes(), Sizes(), out, Sizes(), Sizes(), tag));
        return;
      case 6: {
        std::vector<std::pair<int, int>> pairs;
        while (c_.Chance(50)) pairs.push_back({other, static_cast<int>(c_.Int(0, 1))});
        c_.Ok(comm_->Permute(pairs, in, out, n, tag));
        return;
      }
      case 7: c_.Ok(comm_->Broadcast(group, other, in, n, tag)); return;
      case 8:
        c_.Ok(c_.Chance(50) ? comm_->Send(other, in, n, tag) : comm_->Recv(other, out, n, tag));
        return;
      default: c_.Ok(comm_->PrepareGroups({group, {0}})); return;
    }
  }

  Caller& c_;
  InProcessWorld world_;
  std::unique_ptr<Communicator> comm_;
  alignas(64) char in_[kBytes] = {}, out_[kBytes] = {};
};

}  // namespace

void MisuseCollectives(Caller& c) { Alone(c).Run(); }

}  // namespace shardcall::misuse
