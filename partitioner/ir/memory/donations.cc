// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/memory/donations.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"

namespace shardcall {
inline namespace internal {
namespace {

struct Part {
  int64_t parameter = 0;
  std::vector<int64_t> index;
  int64_t bytes = 0;
};

void ForEachArray(const Shape& shape, std::vector<int64_t>* index,
                  absl::FunctionRef<void(const Shape&)> visit) {
  if (shape.IsArray()) return visit(shape);
  if (!shape.IsTuple()) return;
  for (size_t k = 0; k < shape.tuple().size(); ++k) {
    index->push_back(static_cast<int64_t>(k));
    ForEachArray(*shape.tuple()[k], index, visit);
    index->pop_back();
  }
}

void LargeOnesFirst(std::vector<Part>* parts) {
  absl::c_stable_sort(*parts, [](const Part& a, const Part& b) { return a.bytes > b.bytes; });
}

}  // namespace

std::vector<AliasEntry> ResultsInParameters(const Module& m) {
  std::vector<AliasEntry> aliases = m.header.aliases;
  if (m.header.donors.empty()) return aliases;
  absl::flat_hash_set<std::pair<int64_t, std::vector<int64_t>>> taken_parameters;
  absl::flat_hash_set<std::vector<int64_t>> taken_results;
  for (const AliasEntry& a : aliases) {
    taken_parameters.insert({a.parameter, a.parameter_index});
    taken_results.insert(a.output_index);
  }
  std::vector<Part> donors, results;
  for (const DonorEntry& d : m.header.donors) {
    const InstrId parameter = m.comp(m.entry()).parameters[d.parameter];
    const bool taken = taken_parameters.contains({d.parameter, d.parameter_index});
    const Shape* const part = PartAt(m.instr(parameter).shape, d.parameter_index);
    if (taken || part == nullptr || !part->IsArray()) continue;
    donors.push_back({d.parameter, d.parameter_index, part->byte_size()});
  }
  std::vector<int64_t> index;
  ForEachArray(*m.instr(m.comp(m.entry()).root).shape, &index, [&](const Shape& shape) {
    if (!taken_results.contains(index)) results.push_back({0, index, shape.byte_size()});
  });
  LargeOnesFirst(&donors);
  LargeOnesFirst(&results);
  auto result = results.begin();
  for (const Part& donor : donors) {
    while (result != results.end() && result->bytes > donor.bytes) ++result;
    if (result == results.end()) break;
    if (result->bytes < donor.bytes) continue;
    aliases.push_back({result->index, donor.parameter, donor.index});
    ++result;
  }
  return aliases;
}

}  // namespace internal
}  // namespace shardcall
