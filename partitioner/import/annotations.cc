// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/import/annotations.h"

#include <utility>
#include <vector>

#include "shardcall/partitioner/import/import_internal.h"

namespace shardcall {
inline namespace internal {
namespace import_internal {

using Entry = std::pair<absl::string_view, absl::string_view>;

const FrontendAttributes* WithAttribute(Context& context, const FrontendAttributes* attributes,
                                        absl::string_view key, absl::string_view value) {
  std::vector<Entry> entries = {{key, value}};
  if (attributes != nullptr) {
    for (const Entry& e : attributes->entries) {
      if (e.first != key) entries.push_back(e);
    }
  }
  return InternFrontendAttributes(context, entries);
}

const FrontendAttributes* WithoutAttributes(Context& context, const FrontendAttributes* attributes,
                                            absl::FunctionRef<bool(absl::string_view key)> drop) {
  if (attributes == nullptr) return nullptr;
  std::vector<Entry> kept;
  for (const Entry& e : attributes->entries) {
    if (!drop(e.first)) kept.push_back(e);
  }
  if (kept.empty()) return nullptr;
  if (kept.size() == attributes->entries.size()) return attributes;
  return InternFrontendAttributes(context, kept);
}

const FrontendAttributes* WithBoundary(Context& context, const FrontendAttributes* attributes,
                                       bool enters, const ManualBoundaryText& text) {
  if (text.shardings.empty()) return attributes;
  attributes = WithAttribute(context, attributes, enters ? kSdyInShardings : kSdyOutShardings,
                             text.shardings);
  return text.manual_axes.empty()
             ? attributes
             : WithAttribute(context, attributes, kSdyManualAxes, text.manual_axes);
}

Instruction ShardingCall(Context& context, const Shape* shape) {
  CustomCallAttrs attrs;
  attrs.target = KnownTargetText(KnownTarget::kSharding);
  Instruction call;
  call.opcode = Opcode::kCustomCall;
  call.shape = shape;
  call.attrs = InternAttributes(context, attrs);
  return call;
}

Instruction ShardingCallLike(Context& context, const Instruction& from) {
  Instruction call = ShardingCall(context, from.shape);
  call.sharding = from.sharding;
  call.metadata = from.metadata;
  if (const absl::string_view sdy = Attribute(from, kSdySharding); !sdy.empty()) {
    call.frontend = WithAttribute(context, nullptr, kSdySharding, sdy);
  }
  return call;
}

}  // namespace import_internal
}  // namespace internal
}  // namespace shardcall
