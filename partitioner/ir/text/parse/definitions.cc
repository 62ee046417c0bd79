// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/text/parse/definitions.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool IsReservedName(absl::string_view name) {
  if (name.size() >= 2 && name[0] == '_' && name[1] == '_') {
    return !absl::StartsWith(name, "__xla_");
  }
  if (name.size() > 13 || name.find('.') != absl::string_view::npos) return false;
  const ElementType type = ElementTypeFromName(name);
  return type != ElementType::kInvalid && type != ElementType::kTuple &&
         type != ElementType::kBuffer;
}

bool Definitions::FailUnknown(CompId comp, absl::string_view name, const char* at) {
  std::vector<absl::string_view> names;
  const auto& instructions = module_.comp(comp).instructions;
  if (instructions.size() < 100000) {
    for (InstrId id : instructions) names.push_back(module_.instr(id).name);
  }
  const std::string meant = DidYouMean(name, names);
  return lex_.Fail(at, "E008", "Unknown instruction", "one that stands before its use",
                   lex_.TokenAt(at),
                   meant.empty() ? "define the instruction before this one" : meant);
}

bool Definitions::FindComputation(absl::string_view name, const char* at, CompId* out) {
  const auto it = computations_.find(name);
  if (it != computations_.end()) return *out = it->second, true;
  std::vector<absl::string_view> names;
  for (int c = 0; c < module_.num_computations(); ++c) {
    if (computations_.contains(module_.comp(CompId(c)).name)) {
      names.push_back(module_.comp(CompId(c)).name);
    }
  }
  const std::string meant = DidYouMean(name, names);
  return lex_.Fail(at, "E008", "Unknown computation", "one that stands before its use",
                   lex_.TokenAt(at),
                   meant.empty() ? "define the computation before this one" : meant);
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
