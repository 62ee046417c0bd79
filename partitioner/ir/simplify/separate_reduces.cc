// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/simplify/separate_reduces.h"

#include <utility>
#include <vector>

#include "shardcall/partitioner/ir/monoid.h"

namespace shardcall {
inline namespace internal {
namespace {

// The op by which result k of a reducer of `n` values combines the two of its kind; empty if it
// looks at others, or is no monoid of that type.
std::optional<Opcode> MonoidOfResult(const Module& m, const Computation& reducer, size_t n,
                                     size_t k) {
  const InstrId result = m.operand(reducer.root, static_cast<int>(k));
  const std::optional<Opcode> monoid =
      MonoidOfPair(m, result, reducer.parameters[k], reducer.parameters[n + k]);
  const Shape& shape = *m.instr(result).shape;
  const bool has_identity = monoid.has_value() && shape.IsArray() &&
                            HasIdentity(*PartialOpOf(*monoid), shape.element_type());
  return has_identity ? monoid : std::nullopt;
}

}  // namespace

std::optional<CallExpansion> ReadSeparateReduces(const Module& m, InstrId id) {
  const Instruction& i = m.instr(id);
  const size_t n = m.operands(id).size() / 2;
  const ReduceAttrs& attrs = i.as<ReduceAttrs>();
  const Computation& reducer = m.comp(attrs.to_apply);
  const bool of_several = n > 1 && i.shape->IsTuple() && reducer.parameters.size() == 2 * n &&
                          m.instr(reducer.root).opcode == Opcode::kTuple &&
                          m.operands(reducer.root).size() == n;
  if (!of_several) return std::nullopt;
  std::vector<Opcode> monoids;
  std::vector<const Shape*> results;
  for (size_t k = 0; k < n; ++k) {
    const std::optional<Opcode> monoid = MonoidOfResult(m, reducer, n, k);
    const ElementType type = i.shape->leaf(static_cast<int>(k))->element_type();
    if (!monoid || m.instr(reducer.parameters[k]).shape->element_type() != type ||
        m.instr(m.operand(id, static_cast<int>(k))).shape->element_type() != type) {
      return std::nullopt;
    }
    monoids.push_back(*monoid);
    results.push_back(i.shape->leaf(static_cast<int>(k)));
  }
  return CallExpansion{
      results, [n, monoids, &attrs](GraphBuilder& b, absl::Span<const InstrId> given) {
        std::vector<InstrId> out;
        for (size_t k = 0; k < n; ++k) {
          out.push_back(b.Reduce(given[k], given[n + k], attrs.dimensions, monoids[k]));
        }
        return out;
      }};
}

}  // namespace internal
}  // namespace shardcall
