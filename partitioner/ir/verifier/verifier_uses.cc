// SPDX-License-Identifier: Apache-2.0
// Checks that involve several instructions: each asynchronous start ends once, sends and receives
// agree with their ends, and fused and asynchronous computations have the required form.
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"

namespace shardcall {
inline namespace internal {
namespace verifier {
namespace {

class Uses {
 public:
  Uses(const Module& m, Fault* error) : m_(m), error_(error) {}

  bool Check() {
    if (!Interesting()) return true;
    Count();
    fused_by_.assign(m_.num_computations(), InstrId());
    for (int c = 0; c < m_.num_computations(); ++c) {
      for (InstrId id : m_.comp(CompId(c)).instructions) {
        if (CheckInstruction(id)) continue;
        if (!error_->at.valid()) error_->at = id;
        error_->where = Where(m_, error_->at);
        return false;
      }
    }
    return true;
  }

 private:
  bool Interesting() const {
    for (int k = 0; k < m_.num_instructions(); ++k) {
      const Opcode op = m_.instr(InstrId(k)).opcode;
      if (HasTrait(op, kAsyncForm) || FormsStartedBy(op) != nullptr || op == Opcode::kFusion ||
          op == Opcode::kAllReduce) {
        return true;
      }
    }
    return false;
  }

  // Finds the first user of each instruction and counts distinct users.
  void Count() {
    users_.assign(m_.num_instructions(), {});
    for (int c = 0; c < m_.num_computations(); ++c) {
      for (InstrId id : m_.comp(CompId(c)).instructions) {
        if (HasTrait(KnownTargetOf(m_.instr(id)), kOrders)) continue;  // names values, uses none
        for (InstrId x : m_.operands(id)) {
          User& u = users_[x.value];
          if (u.last == id) continue;
          if (u.count++ == 0) u.first = id;
          u.last = id;
        }
      }
    }
  }

  bool CheckInstruction(InstrId id) {
    const Instruction& i = m_.instr(id);
    if (const AsyncForms* const forms = FormsStartedBy(i.opcode); forms != nullptr) {
      if (forms->start == forms->whole) return CheckTransfer(id, forms->done);
      return OneUser(id, forms->done, forms->done) &&
             (forms->whole != Opcode::kAllReduce || CheckConstrained(id));
    }
    if (i.opcode == Opcode::kAsyncStart || i.opcode == Opcode::kAsyncUpdate) {
      return OneUser(id, Opcode::kAsyncUpdate, Opcode::kAsyncDone) &&
             (i.opcode == Opcode::kAsyncUpdate || CheckAsyncComputation(i));
    }
    if (i.opcode == Opcode::kAllReduce) return CheckConstrained(id);
    return i.opcode != Opcode::kFusion || CheckFusion(id);
  }

  bool OneUser(InstrId id, Opcode a, Opcode b) {
    const User& u = users_[id.value];
    const std::string want =
        a == b ? std::string(OpcodeText(a)) : absl::StrCat(OpcodeText(a), " or ", OpcodeText(b));
    if (u.count != 1) {
      return Fail(error_, "E028",
                  absl::StrCat(OpcodeText(m_.instr(id).opcode), ": it must be used once"), "",
                  absl::StrCat("one ", want), absl::StrCat(u.count, " users"), "end it once");
    }
    const Opcode found = m_.instr(u.first).opcode;
    if (found == a || found == b) return true;
    return Fail(error_, "E028",
                absl::StrCat(OpcodeText(m_.instr(id).opcode), ": its user does not end it"), "",
                want, std::string(OpcodeText(found)), "use what its end gives");
  }

  // A send or receive may be put into a tuple, which a loop carries. As the root of an asynchronous
  // computation it has no end there.
  bool CheckTransfer(InstrId id, Opcode done) {
    const Instruction& i = m_.instr(id);
    if (users_[id.value].count == 0 && m_.comp(i.computation).root == id &&
        i.computation != m_.entry()) {
      return true;
    }
    if (!OneUser(id, done, Opcode::kTuple)) return false;
    const Instruction& end = m_.instr(users_[id.value].first);
    if (end.opcode != done) return true;
    const auto& a = i.as<SendRecvAttrs>();
    const auto& b = end.as<SendRecvAttrs>();
    error_->at = users_[id.value].first;
    if (a.channel_id != b.channel_id) {
      return Fail(error_, "E022", absl::StrCat(OpcodeText(done), ": the channel is another one"),
                  "", absl::StrCat("channel_id=", a.channel_id),
                  b.channel_id < 0 ? "none" : absl::StrCat("channel_id=", b.channel_id),
                  "repeat the channel of the start");
    }
    if (a.is_host_transfer != b.is_host_transfer) {
      return Fail(error_, "E022",
                  absl::StrCat(OpcodeText(done), ": is_host_transfer differs from the start's"), "",
                  a.is_host_transfer ? "true" : "false", b.is_host_transfer ? "true" : "false");
    }
    error_->at = InstrId();
    return true;
  }

  bool CheckConstrained(InstrId id) {
    const bool now = m_.instr(id).as<CollectiveAttrs>().constrain_layout;
    if (!reduce_.valid()) reduce_ = id;
    const bool first = m_.instr(reduce_).as<CollectiveAttrs>().constrain_layout;
    return now == first ||
           Fail(error_, "E022", "all-reduce: constrain_layout must be the same in the whole module",
                "", absl::StrCat(first ? "true" : "false", " as at ", Where(m_, reduce_)),
                now ? "true" : "false");
  }

  bool CheckAsyncComputation(const Instruction& i) {
    const Computation& c = m_.comp(i.as<AsyncAttrs>().calls);
    for (InstrId id : c.instructions) {
      const Opcode op = m_.instr(id).opcode;
      if (id == c.root || op == Opcode::kParameter || op == Opcode::kSend || op == Opcode::kRecv) {
        continue;
      }
      return Fail(error_, "E024",
                  absl::StrCat("async-start: calls=", c.name, " is more than one op"), "",
                  "parameters and a root", Where(m_, id), "put the rest before the start");
    }
    return true;
  }

  bool CheckFusion(InstrId id) {
    const CompId called = m_.instr(id).as<FusionAttrs>().calls;
    const Computation& c = m_.comp(called);
    const Computation& own = m_.comp(m_.instr(id).computation);
    if (fused_by_[called.value].valid()) {
      return Fail(error_, "E024",
                  absl::StrCat("fusion: calls=", c.name, " belongs to another fusion"), "",
                  "a computation of its own", Where(m_, fused_by_[called.value]),
                  "give each fusion its own copy");
    }
    fused_by_[called.value] = id;
    if (c.execution_thread != own.execution_thread) {
      return Fail(error_, "E024", absl::StrCat("fusion: calls=", c.name, " is of another thread"),
                  "", own.execution_thread.empty() ? "main" : own.execution_thread,
                  c.execution_thread.empty() ? "main" : c.execution_thread);
    }
    for (InstrId x : c.instructions) {
      if ((users_[x.value].count == 0) == (x == c.root)) continue;
      return Fail(error_, "E024",
                  absl::StrCat("fusion: ", x == c.root ? "the root of" : "an instruction in",
                               " calls=", c.name, x == c.root ? " is used" : " is not used"),
                  "", x == c.root ? "a root without users" : "no dead instructions", Where(m_, x),
                  x == c.root ? "" : "remove it");
    }
    return true;
  }

  struct User {
    uint32_t count = 0;
    InstrId first, last;
  };
  const Module& m_;
  Fault* error_;
  std::vector<User> users_;
  std::vector<InstrId> fused_by_;  // by computation
  InstrId reduce_;
};

}  // namespace

bool CheckUses(const Module& m, Fault* error) { return Uses(m, error).Check(); }

}  // namespace verifier
}  // namespace internal
}  // namespace shardcall
