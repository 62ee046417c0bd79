// SPDX-License-Identifier: Apache-2.0
// Attribute records with fields that have no row in the schema: parameters, constants, ranges,
// conditionals, custom calls, transfers and collectives.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/text/lex/text_reader.h"
#include "shardcall/partitioner/ir/text/parse/record_builder.h"

namespace shardcall {
inline namespace internal {
namespace hlo_text {

bool RecordBuilder::Build(RecordType<ParameterAttrs>, Scratch* s, Opcode, const Attributes** out) {
  ParameterAttrs a;
  a.number = s->parameter_number;
  static_assert(sizeof(bool) == sizeof(char));
  if (s->Has(A::kParameterReplication)) {
    a.replication =
        absl::MakeConstSpan(reinterpret_cast<const bool*>(s->bools.data()), s->bools.size());
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<ConstantAttrs>, Scratch* s, Opcode, const Attributes** out) {
  ConstantAttrs a;
  a.literal = s->literal;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<SliceAttrs>, Scratch* s, Opcode, const Attributes** out) {
  SliceAttrs a;
  a.starts = s->Part(A::kSlice, 0, 3);
  a.limits = s->Part(A::kSlice, 1, 3);
  a.strides = s->Part(A::kSlice, 2, 3);
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<PadAttrs>, Scratch* s, Opcode, const Attributes** out) {
  PadAttrs a;
  a.low = s->Part(A::kPadding, 0, 3);
  a.high = s->Part(A::kPadding, 1, 3);
  a.interior = s->Part(A::kPadding, 2, 3);
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<OutfeedAttrs>, Scratch* s, Opcode, const Attributes** out) {
  OutfeedAttrs a;
  a.config = TextOf(*s, A::kOutfeedConfig);
  if (s->Has(A::kOutfeedShape)) {
    a.shape = s->outfeed_shape;
  } else if (!s->operands.empty()) {
    a.shape = module_.instr(s->operands[0]).shape;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<AsyncAttrs>, Scratch*, Opcode, const Attributes**) {
  return false;  // BuildAsync does it
}

bool RecordBuilder::Build(RecordType<ConditionalAttrs>, Scratch* s, Opcode,
                          const Attributes** out) {
  ConditionalAttrs a;
  absl::InlinedVector<CompId, 4> branches(s->comps.begin(), s->comps.end());
  const bool list = s->Has(A::kBranchComputations);
  if (list == (s->Has(A::kTrueComputation) && s->Has(A::kFalseComputation)) ||
      s->Has(A::kTrueComputation) != s->Has(A::kFalseComputation)) {
    return lex_.Fail(s->opcode_at, "E006", "A conditional needs its branches",
                     "either branch_computations=, or true_computation= and false_computation=");
  }
  // An index selects from branch_computations, a predicate from the other form (true_ and
  // false_computation).
  const bool pred = !s->operands.empty() &&
                    module_.instr(s->operands[0]).shape->element_type() == ElementType::kPred;
  if (!s->operands.empty() && pred == list) {
    return lex_.Fail((*s)[list ? A::kBranchComputations : A::kTrueComputation].at, "E019",
                     "The form of the branches does not fit the first operand",
                     pred ? "true_computation= and false_computation= for a pred"
                          : "branch_computations={..} for an index");
  }
  if (!list) {
    a.is_pred = true;
    branches = {Comp(*s, A::kTrueComputation), Comp(*s, A::kFalseComputation)};
  }
  a.branches = branches;
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<CustomCallAttrs>, Scratch* s, Opcode, const Attributes** out) {
  CustomCallAttrs a;
  a.target = TextOf(*s, A::kCustomCallTarget);
  a.has_side_effect = Flag(*s, A::kCustomCallHasSideEffect);
  a.has_layout_constraints = s->Has(A::kOperandLayoutConstraints);
  if (a.has_layout_constraints) {
    a.operand_layouts = s->shapes;
    if (s->shapes.size() != s->operands.size()) {
      return lex_.Fail((*s)[A::kOperandLayoutConstraints].at, "E019",
                       "Each operand needs one layout constraint", absl::StrCat(s->operands.size()),
                       absl::StrCat(s->shapes.size()),
                       "write the shape of every operand, or leave the attribute out");
    }
  }
  a.output_to_operand_aliasing = TextOf(*s, A::kOutputToOperandAliasing);
  a.dim_labels = TextOf(*s, A::kDimLabels);
  a.operand_precision = TextOf(*s, A::kOperandPrecision);
  a.has_window = s->Has(A::kWindow);
  a.window = WindowOf(*s);
  a.feature_group_count = IntOr(*s, A::kFeatureGroupCount, 1);
  a.batch_group_count = IntOr(*s, A::kBatchGroupCount, 1);
  if (s->Has(A::kLiteral)) a.literal = s->literal;
  int index;
  std::string upper;
  const auto word = [&](Attr attr, const WordList& list) {
    // Lower case is accepted too.
    upper = absl::AsciiStrToUpper((*s)[attr].text);
    (*s)[attr].text = upper;
    return WordIndex(*s, attr, list, &index);
  };
  if (s->Has(A::kSchedule)) {
    if (!word(A::kSchedule, words::kSchedules)) return false;
    a.schedule = words::kSchedules.words[index];
  }
  if (s->Has(A::kPaddingType)) {
    if (!word(A::kPaddingType, words::kPaddings)) return false;
    a.padding_type = words::kPaddings.words[index];
  }
  if (s->Has(A::kApiVersion)) {
    if (!word(A::kApiVersion, words::kApiVersions)) return false;
    a.api_version = index;  // 0 (unspecified) is kept; running the call is E140
  }
  const CompId to_apply = Comp(*s, A::kToApply);
  if (s->Has(A::kToApply) && s->Has(A::kCalledComputations)) {
    return lex_.Fail((*s)[A::kToApply].at, "E007",
                     "to_apply and called_computations exclude each other");
  }
  if (s->Has(A::kToApply)) {
    a.called_computations = absl::MakeConstSpan(&to_apply, 1);
  } else if (s->Has(A::kCalledComputations)) {
    a.called_computations = s->comps;
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<CollectiveAttrs>, Scratch* s, Opcode opcode,
                          const Attributes** out) {
  CollectiveAttrs a;
  a.channel_id = IntOr(*s, A::kChannelId, -1);
  a.constrain_layout = Flag(*s, A::kConstrainLayout);
  a.use_global_device_ids = Flag(*s, A::kUseGlobalDeviceIds);
  if (s->Has(A::kHasDynamicRoot)) a.has_dynamic_root = Flag(*s, A::kHasDynamicRoot);
  a.to_apply = Comp(*s, A::kToApply);
  if (s->Has(A::kDimensions) && opcode != Opcode::kRaggedAllToAll &&
      !OneDimension(*s, &a.dimension)) {
    return false;
  }
  int mode;  // follows from the other attributes, so it is not kept
  if (s->Has(A::kMode) && !WordIndex(*s, A::kMode, words::kModes, &mode)) return false;
  if (HasTrait(opcode, kAppliesToElements) && a.use_global_device_ids && a.channel_id < 0) {
    return lex_.Fail((*s)[A::kUseGlobalDeviceIds].at, "E006",
                     "use_global_device_ids=true needs a channel", "channel_id=", "",
                     "add channel_id=1");
  }
  absl::InlinedVector<Ints, 16> lists;
  if (s->Has(A::kReplicaGroups)) {
    a.groups = s->groups;
    for (const auto& [begin, count] : s->lists) {
      lists.push_back(absl::MakeConstSpan(s->ints).subspan(begin, count));
    }
    if (a.groups.form == ReplicaGroups::Form::kLists) a.groups.lists = lists;
    if (a.groups.form == ReplicaGroups::Form::kIota) {
      a.groups.reshape = lists[0];
      a.groups.perm = lists[1];
    }
  }
  *out = InternAttributes(context_, a);
  return true;
}

bool RecordBuilder::Build(RecordType<PermuteAttrs>, Scratch* s, Opcode, const Attributes** out) {
  PermuteAttrs a;
  a.channel_id = IntOr(*s, A::kChannelId, -1);
  absl::InlinedVector<int64_t, 32> sources, targets;
  absl::InlinedVector<Ints, 8> sizes;
  const Ints pairs = s->IntsOf(A::kSourceTargetPairs);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    sources.push_back(pairs[i]);
    targets.push_back(pairs[i + 1]);
  }
  a.sources = sources;
  a.targets = targets;
  if (s->Has(A::kSliceSizes)) {
    // One list for each sliced operand, all of the same length.
    const Ints all = s->IntsOf(A::kSliceSizes);
    const int64_t n = std::max<int64_t>((*s)[A::kSliceSizes].value, 1);
    const size_t each = all.size() / n;
    for (int64_t i = 0; i < n; ++i) sizes.push_back(all.subspan(i * each, each));
    a.slice_sizes = sizes;
  }
  *out = InternAttributes(context_, a);
  return true;
}

}  // namespace hlo_text
}  // namespace internal
}  // namespace shardcall
