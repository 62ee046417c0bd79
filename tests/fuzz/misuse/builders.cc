// SPDX-License-Identifier: Apache-2.0
// ProgramBuilder and CheckedBuilder, and what is derived of calls with them.
#include "shardcall/partitioner/api/derived_calls.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/sharding/base/status.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

class Building {
 public:
  explicit Building(Caller& c) : c_(c), p_(c.Name()) {
    SHARDCALL_CHECK(targets_.RegisterRule("t", {.rule = "... a -> ... a"}).ok());
    VjpSpec vjp{.target = "t_vjp",
                .arguments = {VjpArgument::Cotangent(0), VjpArgument::Operand(0)},
                .gradients = {0}};
    SHARDCALL_CHECK(targets_.RegisterVjp("t", vjp).ok());
  }

  void Run() {
    const int64_t steps = c_.Int(5, 60);
    for (int64_t k = 0; k < steps; ++k) Step(p_.builder(), &ids_);
    if (c_.Chance(30)) {  // another computation of the module, finished or not
      const CompId other = p_.module().AddComputation(c_.Chance(80) ? "other" : "main");
      CheckedBuilder b(&p_.module(), c_.Chance(95) ? other : CompId(77), &p_.monoids());
      std::vector<InstrId> ids;
      for (int k = 0; k < 6; ++k) Step(b, &ids);
      if (c_.Chance(80)) c_.Ok(b.SetRoot(c_.Instr(ids)));
      for (int k = 0; k < 6; ++k) Step(p_.builder(), &ids_);
    }
    const absl::StatusOr<Module> module =
        std::move(p_).Build(c_.Instr(ids_), c_.Chance(50) ? &targets_ : nullptr);
    if (c_.Ok(module)) DemandRoundTrip(*module);
    if (!c_.Chance(20)) return;
    // The builder is spent, and is used all the same.
    for (int k = 0; k < 6; ++k) Step(p_.builder(), &ids_);
    c_.Ok(std::move(p_).Build(c_.Instr(ids_), nullptr));  // NOLINT: what was moved from
  }

 private:
  InstrId Id() { return c_.Instr(ids_); }
  const Shape* Shaped() {
    if (c_.Chance(5)) return nullptr;
    if (!ids_.empty() && c_.Chance(50)) return p_.builder().shape(Id());
    const auto made = c_.Chance(80) ? p_.Array(c_.Type(), c_.Dims())
                                    : p_.Array(c_.Type(), c_.Dims(), c_.Numbers(3));
    if (c_.Ok(made)) return *made;
    Context& context = p_.module().context();
    return c_.Chance(50) ? context.MakeToken() : context.MakeTuple({});
  }
  ReplicaGroups Groups() {
    ReplicaGroups g;
    g.form = static_cast<ReplicaGroups::Form>(c_.Int(0, 3));
    g.num_groups = c_.Number();
    g.group_size = c_.Number();
    numbers_ = c_.Numbers(3);
    g.reshape = numbers_;
    return g;
  }
  CustomCallAttrs Call() {
    CustomCallAttrs a;
    text_ = c_.Name();
    a.target = text_;
    if (c_.Chance(20)) a.api_version = c_.Number();
    a.has_side_effect = c_.Chance(10);
    if (c_.Chance(5)) a.output_to_operand_aliasing = "{{}: (0, {})}";
    if (c_.Chance(3)) a.output_to_operand_aliasing = "{{9}: (77, {1})}";
    if (c_.Chance(5)) {
      a.has_layout_constraints = true;
      layouts_ = {Shaped()};
      a.operand_layouts = layouts_;
    }
    if (c_.Chance(5)) {
      comps_ = {c_.Computation(p_.module())};
      a.called_computations = comps_;
    }
    return a;
  }

  void Keep(const absl::StatusOr<InstrId>& made, std::vector<InstrId>* ids) {
    if (c_.Ok(made)) ids->push_back(*made);
  }

  void Step(CheckedBuilder& b, std::vector<InstrId>* ids) {
    const InstrId x = c_.Instr(*ids), y = c_.Instr(*ids);
    const auto operands = [&](int64_t most) {
      std::vector<InstrId> out(c_.Chance(1) ? 10000 : c_.Int(0, most));
      for (InstrId& id : out) id = c_.Instr(*ids);
      return out;
    };
    switch (c_.Int(0, 36)) {
      case 0:
      case 1:
      case 2: return Keep(b.Parameter(c_.Chance(90) ? ids->size() : c_.Number(), Shaped()), ids);
      case 3:
        return Keep(b.Add(static_cast<Opcode>(c_.Int(0, 255)), operands(4), nullptr,
                          c_.Chance(50) ? Shaped() : nullptr),
                    ids);
      case 4: return Keep(b.Compare(static_cast<Direction>(c_.Int(0, 5)), x, y), ids);
      case 5: return Keep(b.Convert(x, c_.Type()), ids);
      case 6: return Keep(b.BitcastConvert(x, c_.Type()), ids);
      case 7: return Keep(b.Broadcast(x, c_.Dims(), c_.Numbers(3)), ids);
      case 8: return Keep(b.BroadcastScalar(x, Shaped()), ids);
      case 9: return Keep(b.Reshape(x, c_.Dims()), ids);
      case 10: return Keep(b.Transpose(x, c_.Numbers(3)), ids);
      case 11: return Keep(b.Reverse(x, c_.Numbers(3)), ids);
      case 12: return Keep(b.Slice(x, c_.Numbers(3), c_.Numbers(3), c_.Numbers(3)), ids);
      case 13: return Keep(b.Pad(x, y, c_.Numbers(3), c_.Numbers(3), c_.Numbers(3)), ids);
      case 14: return Keep(b.Concatenate(operands(3), c_.Number()), ids);
      case 15: return Keep(b.DynamicSlice(x, operands(3), c_.Numbers(3)), ids);
      case 16: return Keep(b.DynamicUpdateSlice(x, y, operands(3)), ids);
      case 17: return Keep(b.Iota(c_.Type(), c_.Dims(), c_.Number()), ids);
      case 18: return Keep(b.ConstantInt(c_.Type(), c_.Number()), ids);
      case 19: return Keep(b.ConstantDouble(c_.Type(), 1e300 * c_.Number()), ids);
      case 20: return Keep(b.ConstantBits(c_.Type(), c_.Number()), ids);
      case 21: return Keep(b.Identity(static_cast<Opcode>(c_.Int(0, 120)), c_.Type()), ids);
      case 22: return Keep(b.GetTupleElement(x, c_.Number()), ids);
      case 23: return Keep(b.Reduce(x, y, c_.Numbers(3), static_cast<Opcode>(c_.Int(0, 120))), ids);
      case 24: {
        DotAttrs a;
        const std::vector<int64_t> l = c_.Numbers(2), r = c_.Numbers(2);
        a.lhs_contracting = l;
        a.rhs_contracting = r;
        if (c_.Chance(30)) {
          DotDimensions d{.lhs_contracting = {c_.Number()}, .rhs_contracting = {c_.Number()}};
          d.lhs_batch.assign(l.begin(), l.end());
          d.rhs_batch.assign(r.begin(), r.end());
          return Keep(b.Dot(x, y, d), ids);
        }
        return Keep(b.Dot(x, y, a, c_.Chance(70) ? ElementType::kInvalid : c_.Type()), ids);
      }
      case 25: return Keep(b.Call(c_.Computation(b.module()), operands(3)), ids);
      case 26: return Keep(b.While(c_.Computation(b.module()), c_.Computation(b.module()), x), ids);
      case 27: return Keep(b.CustomCall(Call(), operands(3), Shaped(), c_.Name()), ids);
      case 28: return Keep(b.CustomCall(Call(), operands(3), targets_, c_.Name()), ids);
      case 29: return Keep(b.AllReduce(x, Groups(), c_.Number(), Opcode::kAdd), ids);
      case 30: return Keep(b.AllGather(x, c_.Number(), Groups(), c_.Number()), ids);
      case 31:
        return Keep(b.ReduceScatter(x, c_.Number(), Groups(), c_.Number(), Opcode::kAdd), ids);
      case 32: return Keep(b.AllToAll(x, c_.Number(), Groups(), c_.Number()), ids);
      case 33: return Keep(b.CollectivePermute(x, c_.Numbers(3), c_.Numbers(3), c_.Number()), ids);
      case 34: {
        const auto made = Vjp(b, targets_, x, operands(2));
        if (c_.Ok(made)) ids->insert(ids->end(), made->begin(), made->end());
        return;
      }
      case 35: {
        std::vector<bool> batched(c_.Int(0, 2));
        for (size_t k = 0; k < batched.size(); ++k) batched[k] = c_.Chance(70);
        const auto made = Vmap(b, targets_, x, operands(2), batched);
        if (c_.Ok(made)) ids->insert(ids->end(), made->begin(), made->end());
        return;
      }
      default: c_.Ok(b.SetRoot(x)); return;
    }
  }

  Caller& c_;
  ProgramBuilder p_;
  TargetRegistry targets_;
  std::vector<InstrId> ids_;
  // What attributes at hand point to.
  std::string text_;
  std::vector<int64_t> numbers_;
  std::vector<const Shape*> layouts_;
  std::vector<CompId> comps_;
};

}  // namespace

void MisuseBuilders(Caller& c) { Building(c).Run(); }

}  // namespace shardcall::misuse
