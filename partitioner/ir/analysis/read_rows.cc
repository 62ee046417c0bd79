// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/read_rows.h"

#include <algorithm>

namespace shardcall {
inline namespace internal {
namespace {

class Readers {
 public:
  Readers(const Module& module, absl::Span<const InstrId> equal) : m_(module) {
    for (int i = 0; i < m_.num_instructions(); ++i) {
      const InstrId id(i);
      if (m_.instr(id).opcode != Opcode::kSort || m_.instr(id).shape->leaf(0)->IsDynamic())
        continue;
      // Of equal ops the first one stands for all.
      first_[id] = equal[i].valid() && first_.contains(equal[i]) ? first_[equal[i]] : id;
      rows_.try_emplace(first_[id], ReadRows{Size(id), 0});
    }
  }

  absl::flat_hash_map<InstrId, ReadRows> Find() {
    absl::flat_hash_map<InstrId, ReadRows> out;
    if (first_.empty()) return out;
    for (int i = 0; i < m_.num_instructions(); ++i) {
      const InstrId id(i);
      for (InstrId o : m_.operands(id)) {
        const InstrId sort = SortOf(o);
        // The elements of a sort's tuple are read by their users.
        if (!sort.valid() || (o == sort && m_.instr(id).opcode == Opcode::kGetTupleElement)) {
          continue;
        }
        Read(sort, m_.instr(id));
      }
    }
    for (int c = 0; c < m_.num_computations(); ++c) {
      const InstrId sort = SortOf(m_.comp(CompId(c)).root);
      if (sort.valid()) ReadAll(sort);
    }
    for (const auto& [sort, first] : first_) {
      const ReadRows& rows = rows_.at(first);
      const int64_t size = Size(sort);
      const bool at_an_end = rows.begin == 0 || rows.end == size;
      if (rows.begin < rows.end && at_an_end && 2 * (rows.end - rows.begin) < size) {
        out[sort] = rows;
      }
    }
    return out;
  }

 private:
  int64_t Size(InstrId sort) const {
    const Instruction& i = m_.instr(sort);
    return i.shape->leaf(0)->dim(static_cast<int>(i.as<SortAttrs>().dimension));
  }
  // The sort that gives the value, or an element of it; invalid if none does.
  InstrId SortOf(InstrId value) const {
    if (m_.instr(value).opcode == Opcode::kGetTupleElement) value = m_.operand(value, 0);
    return first_.contains(value) ? value : InstrId();
  }
  void ReadAll(InstrId sort) { rows_.at(first_.at(sort)) = {0, Size(sort)}; }
  void Read(InstrId sort, const Instruction& reader) {
    if (reader.opcode != Opcode::kSlice) return ReadAll(sort);
    const auto& a = reader.as<SliceAttrs>();
    const auto d = static_cast<size_t>(m_.instr(sort).as<SortAttrs>().dimension);
    if (a.limits[d] == a.starts[d]) return;
    ReadRows& rows = rows_.at(first_.at(sort));
    rows.begin = std::min(rows.begin, a.starts[d]);
    const int64_t taken = (a.limits[d] - 1 - a.starts[d]) / a.strides[d];
    rows.end = std::max(rows.end, a.starts[d] + taken * a.strides[d] + 1);
  }

  const Module& m_;
  absl::flat_hash_map<InstrId, InstrId> first_;  // of each sort
  absl::flat_hash_map<InstrId, ReadRows> rows_;  // by the first of equal sorts
};

// The dimension along which the value is an iota, maybe of one line that is broadcast; -1: none.
int64_t IotaDimension(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  if (i.opcode == Opcode::kIota) return i.as<IotaAttrs>().dimension;
  if (i.opcode != Opcode::kBroadcast) return -1;
  const Instruction& line = m.instr(m.operand(id, 0));
  if (line.opcode != Opcode::kIota) return -1;
  return i.as<DimensionsAttrs>().dimensions[line.as<IotaAttrs>().dimension];
}

}  // namespace

int PlacesOperand(const Module& module, InstrId sort) {
  const int64_t d = module.instr(sort).as<SortAttrs>().dimension;
  const auto operands = module.operands(sort);
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape* const shape = module.instr(operands[k]).shape;
    if (IotaDimension(module, operands[k]) == d &&
        shape->element_type() == PlaceType(shape->dim(static_cast<int>(d)))) {
      return static_cast<int>(k);
    }
  }
  return -1;
}

absl::flat_hash_map<InstrId, ReadRows> ReadRowsOfSorts(const Module& module,
                                                       absl::Span<const InstrId> equal) {
  return Readers(module, equal).Find();
}

}  // namespace internal
}  // namespace shardcall
