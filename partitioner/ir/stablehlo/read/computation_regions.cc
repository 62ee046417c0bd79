// SPDX-License-Identifier: Apache-2.0
// Regions of operations as computations.
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/stablehlo/read/computation_reader.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

absl::StatusOr<CompId> ComputationReader::RegionOf(const Operation& op, size_t region,
                                                   absl::string_view name) {
  if (region >= op.regions.size() || op.regions[region].blocks.size() != 1) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " without its region"));
  }
  SHARDCALL_RETURN_IF_ERROR(r_.Enter());
  const Block& block = op.regions[region].blocks[0];
  ComputationReader inner(&r_, r_.AddComputation(name));
  for (size_t k = 0; k < block.arguments.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, r_.ShapeOfValue(block.arguments[k]));
    ParameterAttrs attrs;
    attrs.number = static_cast<int64_t>(k);
    r_.SetInstr(block.arguments[k],
                inner.Emit(op, Opcode::kParameter, shape, {}, InternAttributes(context(), attrs)));
  }
  SHARDCALL_ASSIGN_OR_RETURN(const std::vector<InstrId> values, inner.Read(block));
  r_.module().SetRoot(inner.comp(), inner.Root(op, values));
  r_.Leave();
  return inner.comp();
}

absl::StatusOr<CompId> ComputationReader::OverTuple(const Operation& op, size_t region,
                                                    absl::Span<const uint32_t> captured,
                                                    bool pass_on) {
  if (region >= op.regions.size() || op.regions[region].blocks.size() != 1) {
    return ModuleReader::Cannot(absl::StrCat(op.name, " without its region"));
  }
  SHARDCALL_RETURN_IF_ERROR(r_.Enter());
  const Block& block = op.regions[region].blocks[0];
  ComputationReader inner(&r_, r_.AddComputation("region"));
  std::vector<uint32_t> values = block.arguments;
  values.insert(values.end(), captured.begin(), captured.end());
  std::vector<const Shape*> shapes;
  for (uint32_t value : values) {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, r_.ShapeOfValue(value));
    shapes.push_back(shape);
  }
  const InstrId tuple = inner.Emit(op, Opcode::kParameter, context().MakeTuple(shapes), {},
                                   InternAttributes(context(), ParameterAttrs()));
  std::vector<InstrId> outer;  // of the captured values, restored below
  for (size_t k = 0; k < values.size(); ++k) {
    outer.push_back(r_.InstrOf(values[k]));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId element,
                               inner.Element(op, tuple, static_cast<int64_t>(k)));
    r_.SetInstr(values[k], element);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::vector<InstrId> results, inner.Read(block));
  if (pass_on) {
    for (uint32_t value : captured) results.push_back(r_.InstrOf(value));
  }
  for (size_t k = 0; k < values.size(); ++k) r_.SetInstr(values[k], outer[k]);
  // The results of loops and branches are a tuple even if there is one; a condition is not.
  const bool condition = op.name == "stablehlo.while" && region == 0;
  if (condition && results.empty()) return ModuleReader::Cannot("a loop without a condition");
  r_.module().SetRoot(inner.comp(), condition ? results[0] : inner.Tuple(op, results));
  r_.Leave();
  return inner.comp();
}

std::vector<uint32_t> ComputationReader::Captured(absl::Span<const Region> regions) const {
  std::vector<uint32_t> out;
  absl::flat_hash_set<uint32_t> inside, seen;
  std::vector<const Region*> work;
  for (size_t k = regions.size(); k-- > 0;) work.push_back(&regions[k]);  // taken from the back
  std::vector<const Operation*> operations;
  while (!work.empty()) {
    const Region* r = work.back();
    work.pop_back();
    for (const Block& b : r->blocks) {
      inside.insert(b.arguments.begin(), b.arguments.end());
      for (const Operation& op : b.operations) {
        operations.push_back(&op);
        inside.insert(op.results.begin(), op.results.end());
        for (const Region& inner : op.regions) work.push_back(&inner);
      }
    }
  }
  for (const Operation* op : operations) {
    for (uint32_t value : op->operands) {
      const Operation* giver = r_.Giver(value);
      if (inside.contains(value) || (giver != nullptr && giver->name == "stablehlo.constant")) {
        continue;
      }
      if (seen.insert(value).second) out.push_back(value);
    }
  }
  return out;
}

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall
