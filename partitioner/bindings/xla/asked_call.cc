// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/asked_call.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/build/program_builder.h"
#include "shardcall/partitioner/ir/proto/hlo_proto.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

int64_t DevicesOf(const HloSharding& s) {
  switch (s.kind) {
    case HloSharding::Kind::kTiled: return s.num_devices();
    case HloSharding::Kind::kNamed:
      return s.named.mesh != nullptr ? s.named.mesh->num_devices() : 1;
    case HloSharding::Kind::kTuple: {
      int64_t n = 1;
      for (const HloSharding& part : s.tuple) n = std::max(n, DevicesOf(part));
      return n;
    }
    default: return 1;
  }
}

absl::Status Wrong(const PjrtTarget& target, std::string message, std::string expected,
                   std::string found, std::string fix) {
  return ToStatus({.code = "E147",
                   .message = std::move(message),
                   .where = absl::StrCat("target \"", target.name, "\""),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)});
}

// Arrays in descending layout, and tuples of them and of tokens.
absl::StatusOr<const Shape*> Plain(const PjrtTarget& target, Context& context, const Shape* shape) {
  if (shape->IsToken()) return shape;
  if (shape->IsTuple()) {
    std::vector<const Shape*> parts;
    for (const Shape* part : shape->tuple()) {
      SHARDCALL_ASSIGN_OR_RETURN(parts.emplace_back(), Plain(target, context, part));
    }
    return context.MakeTuple(parts);
  }
  if (!shape->IsArray() || shape->IsDynamic()) {
    return Wrong(target, "a call is asked about with a value of a kind that is not sharded here",
                 "an array of fixed size", shape->ToString(false), "give its operands fixed sizes");
  }
  return context.WithDefaultLayout(context.MakeArray(shape->element_type(), shape->dims()));
}

// An array in the layout that `like` has, and tuples of them; null where it is of another form.
const Shape* LaidAs(Context& context, const Shape* shape, const Shape* like) {
  if (shape->IsTuple() != like->IsTuple() || shape->IsArray() != like->IsArray()) return nullptr;
  if (shape->IsTuple()) {
    if (shape->tuple().size() != like->tuple().size()) return nullptr;
    std::vector<const Shape*> parts;
    for (size_t k = 0; k < shape->tuple().size(); ++k) {
      parts.push_back(LaidAs(context, shape->tuple()[k], like->tuple()[k]));
      if (parts.back() == nullptr) return nullptr;
    }
    return context.MakeTuple(parts);
  }
  if (!shape->IsArray() || !like->has_layout()) return shape;
  if (shape->rank() != like->rank()) return nullptr;
  return context.MakeArray(shape->element_type(), shape->dims(), like->minor_to_major());
}

// Gives the call what `like` says of it, its operands and result layouts, and returns the result.
// The attributes point into `operands`.
absl::StatusOr<const Shape*> TakeForm(const PjrtTarget& target, Context& context,
                                      absl::Span<const Shape*> operands, const Shape* result,
                                      CustomCallAttrs* attrs) {
  const Module& like = *target.like;
  const InstrId id = CallIn(like, target.name);
  SHARDCALL_CHECK(id.valid());  // NewPjrtCallbacks looked
  const auto& from = like.instr(id).as<CustomCallAttrs>();
  attrs->api_version = from.api_version;
  attrs->has_side_effect = from.has_side_effect;
  attrs->output_to_operand_aliasing = from.output_to_operand_aliasing;
  attrs->has_layout_constraints = from.has_layout_constraints;
  if (!from.has_layout_constraints) return result;
  bool fits = from.operand_layouts.size() == operands.size();
  for (size_t k = 0; fits && k < operands.size(); ++k) {
    operands[k] = LaidAs(context, operands[k], from.operand_layouts[k]);
    fits = operands[k] != nullptr;
  }
  const Shape* const laid = fits ? LaidAs(context, result, like.instr(id).shape) : nullptr;
  if (laid == nullptr) {
    return Wrong(target, "a call is asked about that has other operands or results than its like",
                 absl::StrCat(from.operand_layouts.size(), " operands, and as result ",
                              like.instr(id).shape->ToString(false), ", or others of their ranks"),
                 absl::StrCat(operands.size(), " operands, and ", result->ToString(false)),
                 "register such calls under a name of their own");
  }
  attrs->operand_layouts = operands;
  return laid;
}

}  // namespace

InstrId CallIn(const Module& module, absl::string_view target) {
  for (InstrId id : module.comp(module.entry()).instructions) {
    const Instruction& i = module.instr(id);
    if (i.opcode == Opcode::kCustomCall && i.as<CustomCallAttrs>().target == target) return id;
  }
  return InstrId();
}

absl::StatusOr<AskedCall> MakeAskedCall(const PjrtTarget& target, const PjrtQuestion& q) {
  ProgramBuilder p("local");
  Context& context = p.module().context();
  std::vector<InstrId> parameters;
  std::vector<const Shape*> operands;
  std::vector<std::pair<InstrId, HloSharding>> marks;
  int64_t devices = 1;
  const auto mark = [&](InstrId id, absl::string_view bytes, absl::string_view what) {
    if (bytes.empty()) return absl::OkStatus();
    SHARDCALL_ASSIGN_OR_RETURN(HloSharding s, ReadShardingProto(bytes, what));
    devices = std::max(devices, DevicesOf(s));
    if (s.kind != HloSharding::Kind::kUnknown) marks.emplace_back(id, std::move(s));
    return absl::OkStatus();
  };
  const auto shape_of = [&](absl::string_view bytes,
                            absl::string_view what) -> absl::StatusOr<const Shape*> {
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* read,
                               ReadShapeProto(bytes, p.module().shared_context(), what));
    return Plain(target, context, read);
  };
  for (size_t k = 0; k < q.shapes.size(); ++k) {
    const std::string what = absl::StrCat("operand ", k);
    SHARDCALL_ASSIGN_OR_RETURN(const Shape* shape, shape_of(q.shapes[k], what));
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId x, p.Parameter(shape));
    SHARDCALL_RETURN_IF_ERROR(mark(x, q.shardings[k], what));
    parameters.push_back(x);
    operands.push_back(shape);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Shape* result, shape_of(q.result_shape, "the result"));
  CustomCallAttrs attrs;
  attrs.target = target.name;
  attrs.api_version = target.api_version;
  if (target.like != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(result,
                               TakeForm(target, context, absl::MakeSpan(operands), result, &attrs));
  }
  if (attrs.api_version == 0) {
    if (q.config.empty() || q.config[0] != '{') {
      return Wrong(target, "it is not known which ABI a call has that is not of the typed FFI",
                   "an API version of 1 to 3 with its registration", "none",
                   "register its function with the API version that its calls have");
    }
    attrs.api_version = kTypedFfiCall;
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId call,
                             p.builder().CustomCall(attrs, parameters, result, q.config));
  SHARDCALL_RETURN_IF_ERROR(mark(call, q.result_sharding, "the result"));
  for (auto& [id, sharding] : marks) {
    // XLA's sharding may be a tuple of one element for an array; take the element.
    if (sharding.kind == HloSharding::Kind::kTuple && !p.module().instr(id).shape->IsTuple() &&
        sharding.tuple.size() == 1) {
      HloSharding element = sharding.tuple[0];
      sharding = std::move(element);
    }
    p.module().mutable_instr(id).sharding = InternHloSharding(context, std::move(sharding));
  }
  p.module().header.num_partitions = devices;
  p.module().header.has_num_partitions = true;
  SHARDCALL_ASSIGN_OR_RETURN(Module module, std::move(p).Build(call));
  AskedCall out(std::move(module));
  out.num_partitions = devices;
  return out;
}

}  // namespace internal
}  // namespace shardcall
