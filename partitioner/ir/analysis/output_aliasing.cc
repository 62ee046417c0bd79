// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "shardcall/sharding/tuple_leaves.h"

namespace shardcall {
inline namespace internal {
namespace {

// Reads `{1,0}` from `*text`, which has the parser's canonical form.
bool ReadIndex(absl::string_view* text, std::vector<int64_t>* index) {
  const size_t open = text->find('{'), close = text->find('}');
  if (open == absl::string_view::npos || close == absl::string_view::npos) return false;
  absl::string_view inner = text->substr(open + 1, close - open - 1);
  text->remove_prefix(close + 1);
  index->clear();
  while (!inner.empty()) {
    const size_t comma = inner.find(',');
    if (!absl::SimpleAtoi(inner.substr(0, comma), &index->emplace_back())) return false;
    inner = comma == absl::string_view::npos ? "" : inner.substr(comma + 1);
  }
  return true;
}

}  // namespace

bool ParseOutputAliasing(absl::string_view text, std::vector<OutputAlias>* out) {
  out->clear();
  if (text.size() < 2) return true;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    OutputAlias alias;
    if (!ReadIndex(&text, &alias.output)) return false;
    const size_t open = text.find('('), comma = text.find(',');
    if (open > comma || comma == absl::string_view::npos ||
        !absl::SimpleAtoi(text.substr(open + 1, comma - open - 1), &alias.operand)) {
      return false;
    }
    text.remove_prefix(comma);
    if (!ReadIndex(&text, &alias.inner)) return false;
    text.remove_prefix(std::min(text.size(), text.find('{')));
    out->push_back(std::move(alias));
  }
  return true;
}

const Shape* PartAt(const Shape* shape, absl::Span<const int64_t> index) {
  for (int64_t k : index) {
    if (!shape->IsTuple() || k < 0 || k >= static_cast<int64_t>(shape->tuple().size())) {
      return nullptr;
    }
    shape = shape->tuple()[k];
  }
  return shape;
}

int FirstLeafAt(const Shape* shape, absl::Span<const int64_t> index) {
  int first = 0;
  for (int64_t k : index) {
    if (!shape->IsTuple() || k < 0 || k >= static_cast<int64_t>(shape->tuple().size())) return -1;
    first += FirstLeafOf(*shape, static_cast<int>(k));
    shape = shape->tuple()[k];
  }
  return first;
}

}  // namespace internal
}  // namespace shardcall
