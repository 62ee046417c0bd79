// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/module.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/attributes_intern.h"
#include "shardcall/sharding/base/intern_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

struct FrontendTable {
  InternTable<FrontendAttributes> table;
};
struct MetadataTable {
  InternTable<Metadata> table;
};

struct HloShardingTable {
  absl::flat_hash_map<std::string, std::unique_ptr<const HloSharding>> by_text;
};

using Entry = std::pair<absl::string_view, absl::string_view>;

uint64_t HashOf(const Metadata& m) {
  using ir_internal::HashText;
  uint64_t h = HashText(1, m.op_name);
  h = MixHash(h, static_cast<uint64_t>(m.stack_frame_id));
  // Rare fields: hashing their lengths and the line numbers is enough.
  h = MixHash(h, m.op_type.size() + (m.source_file.size() << 10) +
                     (m.deduplicated_name.size() << 20) + (m.scheduling_name.size() << 30) +
                     (m.metadata_payload.size() << 40));
  h = MixHash(h, static_cast<uint64_t>(m.source_line) << 32 ^ m.source_column);
  return FinishHash(h);
}

bool Equal(const Metadata& a, const Metadata& b) {
  return a.stack_frame_id == b.stack_frame_id && a.op_name == b.op_name &&
         a.source_line == b.source_line && a.source_end_line == b.source_end_line &&
         a.source_column == b.source_column && a.source_end_column == b.source_end_column &&
         a.op_type == b.op_type && a.source_file == b.source_file &&
         a.deduplicated_name == b.deduplicated_name && a.scheduling_name == b.scheduling_name &&
         a.metadata_payload == b.metadata_payload && a.profile_type == b.profile_type;
}

}  // namespace

absl::string_view FrontendAttributes::Find(absl::string_view key) const {
  for (const Entry& e : entries) {
    if (e.first == key) {
      return e.second.data() == nullptr ? absl::string_view("", 0) : e.second;
    }
  }
  return {};
}

const FrontendAttributes* InternFrontendAttributes(Context& context,
                                                   absl::Span<const Entry> entries) {
  absl::InlinedVector<Entry, 8> sorted(entries.begin(), entries.end());
  const auto by_key = [](const Entry& a, const Entry& b) { return a.first < b.first; };
  if (!std::is_sorted(sorted.begin(), sorted.end(), by_key)) {
    std::stable_sort(sorted.begin(), sorted.end(), by_key);
  }
  uint64_t h = 7;
  for (const Entry& e : sorted) {
    h = ir_internal::HashText(ir_internal::HashText(h, e.first), e.second);
  }
  h = FinishHash(h);
  InternTable<FrontendAttributes>& table = context.Get<FrontendTable>().table;
  const FrontendAttributes* found = table.Find(
      h, [&](const FrontendAttributes& f) { return f.entries == absl::MakeConstSpan(sorted); });
  if (found != nullptr) return found;
  for (Entry& e : sorted) e = {context.Intern(e.first), context.Intern(e.second)};
  auto* made = context.arena().New<FrontendAttributes>();
  auto* out =
      static_cast<Entry*>(context.arena().Allocate(sizeof(Entry) * sorted.size(), alignof(Entry)));
  std::uninitialized_copy(sorted.begin(), sorted.end(), out);
  made->entries = absl::MakeConstSpan(out, sorted.size());
  table.Insert(h, made);
  return made;
}

const Metadata* InternMetadata(Context& context, const Metadata& value) {
  InternTable<Metadata>& table = context.Get<MetadataTable>().table;
  const uint64_t h = HashOf(value);
  const Metadata* found = table.Find(h, [&](const Metadata& m) { return Equal(m, value); });
  if (found != nullptr) return found;
  Metadata* made = context.arena().New<Metadata>(value);
  for (absl::string_view* s :
       {&made->op_type, &made->op_name, &made->source_file, &made->deduplicated_name,
        &made->scheduling_name, &made->metadata_payload}) {
    *s = context.arena().Copy(*s);
  }
  made->profile_type = context.arena().Copy(value.profile_type);
  table.Insert(h, made);
  return made;
}

const HloSharding* InternHloSharding(Context& context, HloSharding value) {
  auto& slot = context.Get<HloShardingTable>().by_text[value.Print()];
  if (slot == nullptr) slot = std::make_unique<const HloSharding>(std::move(value));
  return slot.get();
}

RareAttributes& Module::mutable_rare(InstrId id) {
  Instruction& i = instructions_[id.value];
  if (i.extra < 0) {
    i.extra = static_cast<int32_t>(rare_.size());
    rare_.emplace_back();
  }
  return rare_[i.extra];
}

void Module::Reserve(size_t instructions, size_t operands) {
  instructions_.reserve(instructions_.size() + instructions);
  operand_pool_.reserve(operand_pool_.size() + operands);
}

CompId Module::AddComputation(absl::string_view name) {
  const CompId id(static_cast<uint32_t>(computations_.size()));
  computations_.emplace_back();
  computations_.back().name = name;
  return id;
}

InstrId Module::Add(CompId comp, const Instruction& proto, absl::Span<const InstrId> operands) {
  // `operands` may be the operands of another instruction of this module, which growth of the pool
  // would invalidate.
  if (!operand_pool_.empty() && operands.data() >= operand_pool_.data() &&
      operands.data() < operand_pool_.data() + operand_pool_.size()) {
    const absl::InlinedVector<InstrId, 8> copy(operands.begin(), operands.end());
    return Add(comp, proto, copy);
  }
  const InstrId id(static_cast<uint32_t>(instructions_.size()));
  instructions_.push_back(proto);
  Instruction& i = instructions_.back();
  i.computation = comp;
  i.extra = -1;
  if (i.attrs == nullptr) i.attrs = NoAttributes();
  i.operand_begin = static_cast<uint32_t>(operand_pool_.size());
  i.operand_count = static_cast<uint32_t>(operands.size());
  operand_pool_.insert(operand_pool_.end(), operands.begin(), operands.end());
  Computation& c = computations_[comp.value];
  c.instructions.push_back(id);
  if (i.opcode == Opcode::kParameter) {
    SHARDCALL_CHECK(i.attrs->kind == AttrKind::kParameter);
    const int64_t number = i.as<ParameterAttrs>().number;
    SHARDCALL_CHECK(number >= 0);
    if (number >= static_cast<int64_t>(c.parameters.size())) c.parameters.resize(number + 1);
    c.parameters[number] = id;
  }
  return id;
}

InstrId Module::Add(CompId comp, Opcode opcode, const Shape* shape,
                    absl::Span<const InstrId> operands, const Attributes* attrs) {
  Instruction proto;
  proto.opcode = opcode;
  proto.shape = shape;
  proto.attrs = attrs;
  return Add(comp, proto, operands);
}

std::vector<CompId> ComputationPostOrder(const Module& m) {
  // The calls of each computation, gathered once; then a depth-first walk with
  // an explicit stack of (computation, next call).
  const int n = m.num_computations();
  std::vector<std::vector<CompId>> calls(n);
  for (int c = 0; c < n; ++c) {
    for (InstrId id : m.comp(CompId(c)).instructions) {
      const Instruction& i = m.instr(id);
      if (!HasTrait(i.opcode, kCallsComputation)) continue;
      for (CompId callee : CalledComputations(m, i)) calls[c].push_back(callee);
    }
  }
  std::vector<CompId> order;
  order.reserve(n);
  std::vector<bool> seen(n, false);
  std::vector<std::pair<uint32_t, size_t>> stack;
  for (int c = 0; c < n; ++c) {
    if (seen[c]) continue;
    seen[c] = true;
    stack.push_back({static_cast<uint32_t>(c), 0});
    while (!stack.empty()) {
      auto& [comp, next] = stack.back();
      if (next == calls[comp].size()) {
        order.push_back(CompId(comp));
        stack.pop_back();
        continue;
      }
      const CompId callee = calls[comp][next++];
      if (!seen[callee.value]) {
        seen[callee.value] = true;
        stack.push_back({callee.value, 0});
      }
    }
  }
  return order;
}

}  // namespace shardcall
