// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/called_computations.h"

namespace shardcall {
namespace {

template <typename T>
void Remap(absl::Span<const CompId> now, CompId T::* field, size_t at, T* attrs) {
  if (attrs->*field == CompId()) return;
  attrs->*field = now[at];
}

}  // namespace

const Attributes* WithComputations(Context& context, const Instruction& i,
                                   absl::Span<const CompId> now) {
  const auto one = [&](auto attrs, auto field) -> const Attributes* {
    Remap(now, field, 0, &attrs);
    return InternAttributes(context, attrs);
  };
  switch (i.attrs->kind) {
    case AttrKind::kReduce: return one(i.as<ReduceAttrs>(), &ReduceAttrs::to_apply);
    case AttrKind::kReduceWindow:
      return one(i.as<ReduceWindowAttrs>(), &ReduceWindowAttrs::to_apply);
    case AttrKind::kSort: return one(i.as<SortAttrs>(), &SortAttrs::to_apply);
    case AttrKind::kScan: return one(i.as<ScanAttrs>(), &ScanAttrs::to_apply);
    case AttrKind::kScatter: return one(i.as<ScatterAttrs>(), &ScatterAttrs::to_apply);
    case AttrKind::kCall: return one(i.as<CallAttrs>(), &CallAttrs::to_apply);
    case AttrKind::kFusion: return one(i.as<FusionAttrs>(), &FusionAttrs::calls);
    case AttrKind::kCollective: return one(i.as<CollectiveAttrs>(), &CollectiveAttrs::to_apply);
    case AttrKind::kAsync: return one(i.as<AsyncAttrs>(), &AsyncAttrs::calls);
    case AttrKind::kSelectAndScatter: {
      SelectAndScatterAttrs attrs = i.as<SelectAndScatterAttrs>();
      attrs.select = now[0];
      attrs.scatter = now[1];
      return InternAttributes(context, attrs);
    }
    case AttrKind::kWhile: {
      WhileAttrs attrs = i.as<WhileAttrs>();
      attrs.body = now[0];
      attrs.condition = now[1];
      return InternAttributes(context, attrs);
    }
    case AttrKind::kConditional: {
      ConditionalAttrs attrs = i.as<ConditionalAttrs>();
      attrs.branches = now;
      return InternAttributes(context, attrs);
    }
    case AttrKind::kCustomCall: {
      CustomCallAttrs attrs = i.as<CustomCallAttrs>();
      attrs.called_computations = now;
      return InternAttributes(context, attrs);
    }
    default: return i.attrs;
  }
}

}  // namespace shardcall
