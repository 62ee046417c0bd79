// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/derived/lower_calls.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/build/module_cloner.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr absl::string_view kName = "composite.name";
constexpr absl::string_view kAttributes = "composite.attributes";
constexpr absl::string_view kVersion = "composite.version";

absl::string_view Attribute(const Instruction& i, absl::string_view key) {
  return i.frontend == nullptr ? absl::string_view() : i.frontend->Find(key);
}

// "my_gelu" of "my_gelu.5", as XLA numbers computations of one name.
absl::string_view WithoutNumber(absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot + 1 == name.size()) return name;
  for (const char c : name.substr(dot + 1)) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return name;
  }
  return name.substr(0, dot);
}

// The name under which lowerings are asked for an instruction; empty: none are. A plain call is
// marked by composite.name, or by calling a computation for whose name there is a lowering.
absl::string_view MarkedName(const Module& m, const Instruction& i,
                             const LoweringRegistry& lowerings) {
  if (i.opcode == Opcode::kCustomCall) {
    const absl::string_view target = i.as<CustomCallAttrs>().target;
    return lowerings.Knows(target) ? target : absl::string_view();
  }
  if (i.opcode != Opcode::kCall) return "";
  const auto& attrs = i.as<CallAttrs>();
  if (const absl::string_view name = Attribute(i, kName); !name.empty()) return name;
  if (attrs.is_composite) return "";
  const RareAttributes* rare = m.rare(i);
  if (rare != nullptr && !rare->control_predecessors.empty()) return "";
  const absl::string_view full = m.comp(attrs.to_apply).name, plain = WithoutNumber(full);
  return lowerings.Knows(full) ? full : lowerings.Knows(plain) ? plain : absl::string_view();
}

// The attributes without composite.*; null if none are left.
const FrontendAttributes* PlainFrontend(Context& context, const FrontendAttributes* given) {
  if (given == nullptr) return nullptr;
  std::vector<std::pair<absl::string_view, absl::string_view>> left;
  for (const auto& entry : given->entries) {
    if (!absl::StartsWith(entry.first, "composite.")) left.push_back(entry);
  }
  return left.empty() ? nullptr : InternFrontendAttributes(context, left);
}

// Column-major layout for matrices: values with as many dimensions as `matrix_rank`.
const Shape* ColumnMajor(Context& context, const Shape* shape, int matrix_rank) {
  const int rank = shape->rank();
  if (rank < 2 || rank < matrix_rank) return context.WithDefaultLayout(shape->bare());
  std::vector<int64_t> order = {rank - 2, rank - 1};
  for (int d = rank - 3; d >= 0; --d) order.push_back(d);
  return context.MakeArray(shape->element_type(), shape->dims(), order);
}

class Rewriter {
 public:
  Rewriter(const Module& old, const LoweringRegistry& lowerings, absl::string_view platform)
      : old_(old),
        lowerings_(lowerings),
        platform_(platform),
        out_(old.shared_context()),
        cloner_(old, &out_),
        monoids_(&out_) {}

  // Whether any call is lowered, or is a composite.
  static bool AnyMarked(const Module& m, const LoweringRegistry& lowerings) {
    for (int n = 0; n < m.num_instructions(); ++n) {
      const Instruction& i = m.instr(InstrId(n));
      if (i.opcode == Opcode::kCall && i.as<CallAttrs>().is_composite) return true;
      if (!MarkedName(m, i, lowerings).empty()) return true;
    }
    return false;
  }

  absl::StatusOr<Module> Run() {
    cloner_.CopyHeader();
    for (CompId c : ComputationPostOrder(old_)) {
      const CompId to = cloner_.AddComputation(c);
      for (InstrId id : old_.comp(c).instructions) {
        SHARDCALL_ASSIGN_OR_RETURN(const InstrId lowered, TryLower(id, to));
        if (lowered.valid()) {
          cloner_.Set(id, lowered);
          continue;
        }
        Instruction copy = cloner_.CopyOf(id);
        if (copy.opcode == Opcode::kCall && copy.as<CallAttrs>().is_composite) {
          CallAttrs plain = copy.as<CallAttrs>();
          plain.is_composite = false;
          copy.attrs = InternAttributes(out_.context(), plain);
        }
        cloner_.CopyRare(id, cloner_.Add(id, copy, cloner_.OperandsOf(id), to));
      }
      cloner_.SetRoot(c);
    }
    out_.set_entry(cloner_.now(old_.entry()));
    SHARDCALL_RETURN_IF_ERROR(VerifyModule(out_, "lowered"));
    return std::move(out_);
  }

 private:
  // Returns an invalid id where the call stays as it is.
  absl::StatusOr<InstrId> TryLower(InstrId id, CompId to) {
    const Instruction& i = old_.instr(id);
    LoweringRequest request;
    request.context = &out_.context();
    request.platform = platform_;
    request.name = MarkedName(old_, i, lowerings_);
    if (request.name.empty()) return InstrId();
    if (i.opcode == Opcode::kCall) {
      request.composite = true;
      request.version = Attribute(i, kVersion);
      request.attributes = Attribute(i, kAttributes);
    } else {
      request.attributes = i.backend_config;
    }
    std::vector<const Shape*> operands, results;
    for (InstrId o : old_.operands(id)) operands.push_back(old_.instr(o).shape);
    if (i.shape->IsTuple()) {
      results.assign(i.shape->tuple().begin(), i.shape->tuple().end());
    } else {
      results.push_back(i.shape);
    }
    for (const auto* list : {&operands, &results}) {
      for (const Shape* s : *list) {
        if (!s->IsArray()) return InstrId();  // tokens and nested tuples: inline the body
      }
    }
    request.operands = operands;
    request.results = results;
    const LoweringAnswer answer = lowerings_.Ask(request);
    SHARDCALL_RETURN_IF_ERROR(In(answer.status(), absl::StrCat("instruction %", i.name)));
    const std::optional<LoweredCall>& lowered = *answer;
    if (!lowered.has_value()) return InstrId();
    return Emit(id, to, request, *lowered);
  }

  absl::Status Misfit(InstrId id, const LoweringRequest& request, std::string message,
                      std::string expected, std::string found) const {
    return ToStatus({.code = "E119",
                     .message = absl::StrCat("the lowering of \"", request.name, "\" for ",
                                             request.platform, " does not fit: ", message),
                     .where = absl::StrCat("%", old_.instr(id).name),
                     .expected = std::move(expected),
                     .found = std::move(found),
                     .fix = "Correct the lowering, or let it skip this call"});
  }

  // Which result of the target is result k of the call.
  static int Source(const LoweredCall& call, size_t k) {
    return call.take.empty() ? static_cast<int>(k) : call.take[k];
  }

  // Checks a lowering's answer, except the types of its operands. `results` are the target's.
  absl::Status CheckAnswer(InstrId id, const LoweringRequest& request, const LoweredCall& call,
                           const std::vector<const Shape*>& results) const {
    const size_t n = request.operands.size(), m = request.results.size();
    if (call.target.empty()) return Misfit(id, request, "no target", "a name", "none");
    if (call.api_version < 1 || call.api_version > 4) {
      return Misfit(id, request, "no such API version", "1 to 4", absl::StrCat(call.api_version));
    }
    if (!call.operand_types.empty() && call.operand_types.size() != n) {
      return Misfit(id, request, "another number of operand types", absl::StrCat(n),
                    absl::StrCat(call.operand_types.size()));
    }
    if (!call.take.empty() && call.take.size() != m) {
      return Misfit(id, request, "another number of results", absl::StrCat(m),
                    absl::StrCat(call.take.size()));
    }
    for (size_t k = 0; k < m; ++k) {
      const int s = Source(call, k);
      if (s < 0 || s >= static_cast<int>(results.size()) || results[s] == nullptr ||
          !results[s]->IsArray() || results[s]->dims() != request.results[k]->dims()) {
        return Misfit(id, request, absl::StrCat("result ", k, " is not one of the target's"),
                      request.results[k]->ToString(false),
                      s >= 0 && s < static_cast<int>(results.size()) && results[s] != nullptr
                          ? results[s]->ToString(false)
                          : absl::StrCat("result ", s));
      }
    }
    for (size_t s = 0; s < results.size(); ++s) {
      if (results[s] != nullptr && results[s]->IsArray()) continue;
      return Misfit(id, request, absl::StrCat("the target's result ", s, " is no array"),
                    "an array", results[s] == nullptr ? "none" : results[s]->ToString(false));
    }
    return absl::OkStatus();
  }

  // Adds the call of the target, with results of these shapes in the layouts that it has.
  absl::StatusOr<InstrId> AddCall(CheckedBuilder& b, const LoweredCall& call,
                                  absl::Span<const InstrId> operands,
                                  std::vector<const Shape*> results, bool tuple) {
    Context& context = out_.context();
    CustomCallAttrs attrs;
    attrs.target = call.target;
    attrs.api_version = call.api_version;
    std::vector<const Shape*> layouts;
    int rank = 0;
    for (InstrId o : operands) rank = std::max(rank, b.shape(o)->rank());
    for (const Shape*& s : results) {
      s = call.column_major ? ColumnMajor(context, s, rank) : context.WithDefaultLayout(s->bare());
    }
    if (call.column_major) {
      for (InstrId o : operands) layouts.push_back(ColumnMajor(context, b.shape(o), rank));
      attrs.has_layout_constraints = true;
      attrs.operand_layouts = layouts;
    }
    return b.CustomCall(attrs, operands, tuple ? context.MakeTuple(results) : results[0],
                        call.backend_config);
  }

  // Adds what has the shape of the lowered call, made of the results of the target's call.
  absl::StatusOr<InstrId> AddResults(CheckedBuilder& b, const LoweringRequest& request,
                                     const LoweredCall& call, InstrId made, bool tuple,
                                     bool wants_tuple) {
    std::vector<InstrId> values;
    for (size_t k = 0; k < request.results.size(); ++k) {
      InstrId value = made;
      if (tuple) {
        SHARDCALL_ASSIGN_OR_RETURN(value, b.GetTupleElement(made, Source(call, k)));
      }
      SHARDCALL_ASSIGN_OR_RETURN(value, b.Convert(value, request.results[k]->element_type()));
      if (b.shape(value) != request.results[k]) {  // the same array in another layout
        SHARDCALL_ASSIGN_OR_RETURN(value,
                                   b.Add(Opcode::kCopy, {value}, nullptr, request.results[k]));
      }
      values.push_back(value);
    }
    if (!wants_tuple) return values[0];
    return b.Add(Opcode::kTuple, values);
  }

  absl::StatusOr<InstrId> Emit(InstrId id, CompId to, const LoweringRequest& request,
                               const LoweredCall& call) {
    const Instruction& i = old_.instr(id);
    CheckedBuilder b(&out_, to, &monoids_);
    b.set_metadata(i.metadata);
    std::vector<const Shape*> results(call.results);
    if (results.empty()) results.assign(request.results.begin(), request.results.end());
    SHARDCALL_RETURN_IF_ERROR(CheckAnswer(id, request, call, results));
    absl::InlinedVector<InstrId, 8> operands = cloner_.OperandsOf(id);
    for (size_t k = 0; k < operands.size() && !call.operand_types.empty(); ++k) {
      if (!IsArrayType(call.operand_types[k])) {
        return Misfit(id, request, absl::StrCat("operand ", k, " has no type"), "an array type",
                      std::string(ElementTypeName(call.operand_types[k])));
      }
      SHARDCALL_ASSIGN_OR_RETURN(operands[k], b.Convert(operands[k], call.operand_types[k]));
    }
    // A result that is a tuple stays one, even with one element.
    const bool wants_tuple = i.shape->IsTuple();
    const bool tuple = results.size() != 1 || (wants_tuple && request.results.size() == 1);
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId made,
                               AddCall(b, call, operands, std::move(results), tuple));
    out_.mutable_instr(made).name = i.name;
    SHARDCALL_ASSIGN_OR_RETURN(const InstrId last,
                               AddResults(b, request, call, made, tuple, wants_tuple));
    // The annotations of the call's result go to the value that replaces it.
    Instruction& end = out_.mutable_instr(last);
    end.sharding = i.sharding;
    const FrontendAttributes* frontend = PlainFrontend(out_.context(), i.frontend);
    if (frontend != nullptr) end.frontend = frontend;
    return last;
  }

  const Module& old_;
  const LoweringRegistry& lowerings_;
  const absl::string_view platform_;
  Module out_;
  ModuleCloner cloner_;
  MonoidTable monoids_;
};

}  // namespace

absl::StatusOr<Module> LowerCalls(Module module, const LoweringRegistry& lowerings,
                                  absl::string_view platform) {
  if (!Rewriter::AnyMarked(module, lowerings)) return module;
  return Rewriter(module, lowerings, platform).Run();
}

}  // namespace shardcall
