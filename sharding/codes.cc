// SPDX-License-Identifier: Apache-2.0
#include "shardcall/sharding/codes.h"

#include <algorithm>
#include <iterator>

namespace shardcall {
inline namespace internal {
namespace {

constexpr CodeInfo kCodes[] = {
#define SHARDCALL_DIAGNOSTIC(code, about, example, fix) {#code, about, example, fix},
#include "shardcall/sharding/codes.inc"
#undef SHARDCALL_DIAGNOSTIC
};

constexpr bool Ascend() {
  for (size_t i = 1; i < std::size(kCodes); ++i) {
    if (!(kCodes[i - 1].code < kCodes[i].code)) return false;
  }
  return true;
}
static_assert(Ascend(), "the rows of codes.inc stand by code, each code once");

}  // namespace

absl::Span<const CodeInfo> AllCodes() { return kCodes; }

const CodeInfo* FindCode(absl::string_view code) {
  const CodeInfo* found =
      std::lower_bound(std::begin(kCodes), std::end(kCodes), code,
                       [](const CodeInfo& info, absl::string_view c) { return info.code < c; });
  return found != std::end(kCodes) && found->code == code ? found : nullptr;
}

}  // namespace internal
}  // namespace shardcall
