// SPDX-License-Identifier: Apache-2.0
// Collectives of values that a loop does not change run once, before the loop:
//
//   before:  body: w = get-tuple-element(p), 1; g = all-gather(w); ..; ROOT t = tuple(.., w, ..)
//   after:   g = all-gather(w), while(tuple(.., w, .., g)); the body reads and passes on g
//
// What they are computed from, such as slices and conversions, goes with them. Their results are
// held while the loop runs, so they are taken out only as far as there is room for them.
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/pass/invariant_collectives.h"
#include "shardcall/partitioner/pass/pass.h"
#include "shardcall/partitioner/pass/rewrite.h"

namespace shardcall {
namespace {

// The attributes of localize/stated_shardings.h.
constexpr absl::string_view kStatedShape = "shardcall.global_shape";
constexpr absl::string_view kStatedShards = "shardcall.shards";

class Mover {
 public:
  Mover(const Module& m, const std::vector<InvariantCollectives>& loops, PassResult* out)
      : m_(m), out_(*out), cloner_(m, &out->module), monoids_(&out->module) {
    for (const InvariantCollectives& loop : loops) {
      const auto& attrs = m.instr(loop.loop).as<WhileAttrs>();
      loops_[loop.loop] = &loop;
      bodies_[attrs.body] = &loop;
      conditions_[attrs.condition] = &loop;
    }
  }

  void Run() {
    cloner_.CopyHeader();
    for (int c = 0; c < m_.num_computations(); ++c) cloner_.AddComputation(CompId(c));
    for (const CompId c : ComputationPostOrder(m_)) Copy(c);
    out_.module.set_entry(cloner_.now(m_.entry()));
    out_.moved_to = cloner_.TakeInstructions();
    for (const auto& [old, now] : moved_to_) out_.moved_to[old.value] = now;
    out_.comp_moved_to = cloner_.TakeComputations();
    out_.changed = true;
  }

 private:
  static const InvariantCollectives* Find(
      const absl::flat_hash_map<CompId, const InvariantCollectives*>& loops, CompId c) {
    const auto it = loops.find(c);
    return it == loops.end() ? nullptr : it->second;
  }

  void Copy(CompId c) {
    const Computation& comp = m_.comp(c);
    const InvariantCollectives* const body = Find(bodies_, c);
    const InvariantCollectives* const tested = Find(conditions_, c);
    GraphBuilder b(&out_.module, cloner_.now(c), &monoids_);
    for (const InstrId id : comp.instructions) {
      const auto loop = loops_.find(id);
      if (loop != loops_.end()) {
        MakeLoop(*loop->second, b);
      } else if ((body != nullptr || tested != nullptr) && id == comp.parameters[0]) {
        MakeExtended(id, body != nullptr ? *body : *tested, {}, b);
        if (body != nullptr) ReadCarried(*body, b);
      } else if (body != nullptr && id == comp.root) {
        auto operands = cloner_.OperandsOf(id);
        for (const InstrId x : body->carried) operands.push_back(cloner_.now(x));
        MakeExtended(id, *body, operands, b);
      } else if (body == nullptr || !body->dropped.contains(id)) {
        cloner_.Clone(id);
      }
    }
    cloner_.SetRoot(c);
  }

  // The copy of an instruction whose result is the loop's tuple, with the carried values after it.
  InstrId MakeExtended(InstrId id, const InvariantCollectives& loop,
                       absl::Span<const InstrId> operands, GraphBuilder& b) {
    Instruction copy = cloner_.CopyOf(id);
    std::vector<const Shape*> shapes(copy.shape->tuple().begin(), copy.shape->tuple().end());
    for (const InstrId x : loop.carried) shapes.push_back(m_.instr(x).shape);
    copy.shape = b.context().MakeTuple(shapes);
    copy.sharding = nullptr;
    copy.frontend = WithCarried(copy.frontend, loop);
    const InstrId now = cloner_.Add(id, copy, operands, b.computation());
    cloner_.CopyOrder(id, now);
    return now;
  }

  // What the program says of how the loop's values are cut (stated_shardings.h), with the carried
  // ones, of which it says that each device holds its own.
  const FrontendAttributes* WithCarried(const FrontendAttributes* given,
                                        const InvariantCollectives& loop) const {
    if (given == nullptr) return nullptr;
    std::string shapes, shards;
    for (const InstrId x : loop.carried) {
      absl::StrAppend(&shapes, ", ", m_.instr(x).shape->ToString(/*with_layout=*/false));
      absl::StrAppend(&shards, ", {manual}");
    }
    std::vector<std::pair<absl::string_view, absl::string_view>> entries(given->entries.begin(),
                                                                         given->entries.end());
    for (auto& [key, value] : entries) {
      std::string& more = key == kStatedShape ? shapes : shards;
      if (key != kStatedShape && key != kStatedShards) continue;
      // Before the bracket at the end of the tuple.
      more = absl::StrCat(value.substr(0, value.size() - 1), more, value.substr(value.size() - 1));
      value = more;
    }
    return InternFrontendAttributes(m_.context(), entries);
  }

  void ReadCarried(const InvariantCollectives& loop, GraphBuilder& b) {
    const CompId body = m_.instr(loop.loop).as<WhileAttrs>().body;
    const InstrId parameter = m_.comp(body).parameters[0];
    int64_t index = static_cast<int64_t>(m_.instr(parameter).shape->tuple().size());
    for (const InstrId x : loop.carried) {
      cloner_.Set(x, b.GetTupleElement(cloner_.now(parameter), index++));
    }
  }

  // The moved instructions, and the loop after them.
  void MakeLoop(const InvariantCollectives& loop, GraphBuilder& b) {
    const CompId body = m_.instr(loop.loop).as<WhileAttrs>().body;
    const InstrId parameter = m_.comp(body).parameters[0];
    const InstrId init = m_.operand(loop.loop, 0);
    const size_t size = m_.instr(init).shape->tuple().size();
    std::vector<InstrId> values;  // of the loop's tuple
    for (size_t k = 0; k < size; ++k) {
      values.push_back(m_.instr(init).opcode == Opcode::kTuple
                           ? cloner_.now(m_.operand(init, static_cast<int>(k)))
                           : b.GetTupleElement(cloner_.now(init), static_cast<int64_t>(k)));
    }
    absl::flat_hash_map<InstrId, InstrId> outside;
    const auto moved = [&](InstrId x) {
      const Instruction& i = m_.instr(x);
      if (i.opcode == Opcode::kGetTupleElement && m_.operand(x, 0) == parameter) {
        return values[i.as<TupleIndexAttrs>().index];
      }
      return outside.at(x);
    };
    for (const InstrId x : loop.moved) {
      std::vector<InstrId> operands;
      for (const InstrId o : m_.operands(x)) operands.push_back(moved(o));
      const InstrId now = out_.module.Add(b.computation(), cloner_.CopyOf(x), operands);
      outside[x] = now;
      if (HasTrait(m_.instr(x).opcode, kCollectiveOp)) moved_to_[x] = now;
    }
    for (const InstrId x : loop.carried) values.push_back(outside.at(x));
    const InstrId now = MakeExtended(loop.loop, loop, {b.Tuple(values)}, b);
    if (loop.only_elements) return;
    std::vector<InstrId> elements;
    for (size_t k = 0; k < size; ++k) {
      elements.push_back(b.GetTupleElement(now, static_cast<int64_t>(k)));
    }
    cloner_.Set(loop.loop, b.Tuple(elements));
  }

  const Module& m_;
  PassResult& out_;
  ModuleCloner cloner_;
  MonoidTable monoids_;
  absl::flat_hash_map<InstrId, const InvariantCollectives*> loops_;
  absl::flat_hash_map<CompId, const InvariantCollectives*> bodies_, conditions_;
  absl::flat_hash_map<InstrId, InstrId> moved_to_;  // where collectives are now
};

class LoopInvariants : public Pass {
 public:
  explicit LoopInvariants(std::function<int64_t(const Module&)> room) : room_(std::move(room)) {}
  absl::string_view name() const override { return "loop-invariants"; }

  absl::StatusOr<PassResult> Run(const Module& m) override {
    PassResult all((Module(m.shared_context())));
    int64_t room = std::numeric_limits<int64_t>::max();
    if (FindInvariantCollectives(m, &room).empty()) return all;
    room = room_(m);
    std::vector<InvariantCollectives> loops = FindInvariantCollectives(m, &room);
    if (loops.empty()) return all;
    Mover(m, loops, &all).Run();
    // A collective leaves one loop at a time.
    for (;;) {
      loops = FindInvariantCollectives(all.module, &room);
      if (loops.empty()) return all;
      PassResult next((Module(m.shared_context())));
      Mover(all.module, loops, &next).Run();
      Follow(std::move(next), &all);
    }
  }

 private:
  const std::function<int64_t(const Module&)> room_;
};

}  // namespace

std::unique_ptr<Pass> MakeLoopInvariants(std::function<int64_t(const Module&)> room) {
  return std::make_unique<LoopInvariants>(std::move(room));
}

}  // namespace shardcall
