// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/called_computations.h"

#include "absl/container/flat_hash_map.h"
#include "shardcall/partitioner/ir/attribute_records.h"

namespace shardcall {
namespace {

// Collects the fields that name computations and skips other fields.
struct Collect {
  template <typename T>
  void operator()(const T&) const {}
  void operator()(CompId id) const {
    if (id.valid()) out->push_back(id);
  }
  void operator()(const Field<CompId>& ids) const {
    for (CompId id : ids) (*this)(id);
  }
  absl::InlinedVector<CompId, 2>* out;
};

struct Replace {
  template <typename T>
  void operator()(T&) const {}
  void operator()(CompId& id) {
    if (id.valid()) id = now[at++];
  }
  void operator()(Field<CompId>& ids) {
    ids = now.subspan(at, ids.size());
    at += ids.size();
  }
  absl::Span<const CompId> now;
  size_t at = 0;
};

}  // namespace

absl::InlinedVector<CompId, 2> CalledComputations(const Module&, const Instruction& i) {
  absl::InlinedVector<CompId, 2> out;
  ForRecord(*i.attrs, [&](const auto& record) {
    record.Fields([&](const auto&... fields) { (Collect{&out}(fields), ...); });
  });
  return out;
}

const Attributes* internal::WithComputations(Context& context, const Instruction& i,
                                             absl::Span<const CompId> now) {
  return ForRecord(*i.attrs, [&](auto record) -> const Attributes* {
    Replace replace{now};
    record.Fields([&](auto&... fields) { (replace(fields), ...); });
    return replace.at == 0 ? i.attrs : InternAttributes(context, record);
  });
}

std::vector<InstrId> internal::LoopsWithOwnBody(const Module& m) {
  std::vector<InstrId> loops;
  absl::flat_hash_map<CompId, int> loops_of;
  for (int i = 0; i < m.num_instructions(); ++i) {
    const InstrId id(i);
    if (m.instr(id).opcode != Opcode::kWhile) continue;
    loops.push_back(id);
    ++loops_of[m.instr(id).as<WhileAttrs>().body];
  }
  std::erase_if(loops, [&](InstrId id) { return loops_of[m.instr(id).as<WhileAttrs>().body] > 1; });
  return loops;
}

}  // namespace shardcall
