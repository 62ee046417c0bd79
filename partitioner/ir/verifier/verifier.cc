// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/verifier/verifier.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/moved_from.h"
#include "shardcall/partitioner/ir/shapes/shape_inference.h"
#include "shardcall/partitioner/ir/verifier/verifier_internal.h"
#include "shardcall/sharding/base/text_place.h"

namespace shardcall {

using verifier::Fault;

namespace {

using verifier::Fail;

// Values that many instructions share (shapes, attributes, shardings) are checked once each.
class Verifier {
 public:
  Verifier(const Module& m, Fault* error) : m_(m), error_(error) {}

  bool CheckInstruction(InstrId id) {
    const Instruction& i = m_.instr(id);
    if (!Once(i.shape, [&] { return CheckShape(i.shape); })) return false;
    if ((i.attrs->kind == AttrKind::kCollective || i.attrs->kind == AttrKind::kPermute) &&
        seen_groups_.insert({i.attrs, i.opcode}).second && !verifier::CheckGroups(m_, i, error_)) {
      return false;
    }
    if (i.sharding != nullptr) {
      const Shape* shape = AnnotatedShape(i);
      if (seen_shardings_.insert({i.sharding, shape}).second &&
          !verifier::CheckSharding(m_, *i.sharding, shape, error_)) {
        return false;
      }
    }
    shapes_.clear();
    for (InstrId x : m_.operands(i)) shapes_.push_back(m_.instr(x).shape);
    const Shape* shape =
        InferShapeOrNull(m_.context(), m_, i.opcode, shapes_, i.attrs, i.shape, error_);
    if (shape == nullptr) return false;
    if (!CompatibleShapes(shape, i.shape)) {
      return Fail(error_, "E023",
                  absl::StrCat(OpcodeText(i.opcode),
                               ": the written shape does not follow from the operands"),
                  "", verifier::ShapeText(shape), verifier::ShapeText(i.shape),
                  "write the expected shape");
    }
    return CheckOwn(i);
  }

 private:
  // The shape that the sharding of an instruction describes: its result; for an outfeed its
  // operand, with or without the token.
  const Shape* AnnotatedShape(const Instruction& i) const {
    if (i.opcode != Opcode::kOutfeed || m_.operands(i).size() != 2 ||
        i.sharding->kind != HloSharding::Kind::kTuple) {
      return i.shape;
    }
    const Shape* data = m_.instr(m_.operands(i)[0]).shape;
    const bool token = static_cast<int>(i.sharding->tuple.size()) != data->num_leaves();
    return token ? m_.context().MakeTuple({data, i.shape}) : m_.context().MakeTuple({data});
  }
  template <typename F>
  bool Once(const void* value, const F& check) {
    return !seen_.insert(value).second || check();
  }

  bool CheckShape(const Shape* root) {
    std::vector<const Shape*> stack = {root};
    while (!stack.empty()) {
      const Shape* s = stack.back();
      stack.pop_back();
      for (const Shape* e : s->tuple()) {
        if (seen_.insert(e).second) stack.push_back(e);
      }
      if (!s->IsArray()) continue;
      absl::InlinedVector<bool, 16> seen(s->rank(), false);
      for (int64_t d : s->minor_to_major()) {
        if (d < 0 || d >= s->rank() || seen[d]) {
          return Fail(error_, "E021", "the layout is not a permutation of the dimensions", "",
                      absl::StrCat("each of [0,", s->rank(), ") once"), s->ToString());
        }
        seen[d] = true;
      }
      for (int64_t d : s->dims()) {
        if (d >= 0) continue;
        if (d == kUnboundedDim) {
          return Fail(error_, "E021", "a dimension has no bound", "", "a size, or <= a size",
                      s->ToString(/*with_layout=*/false), "give the dimension a bound");
        }
        return Fail(error_, "E021", "a dimension is negative", "", "0 or more", absl::StrCat(d));
      }
      if (s->byte_size() == INT64_MAX && !s->IsDynamic()) {
        return Fail(error_, "E021", "the array is too large", "", "fewer than 2^63 bytes",
                    s->ToString(/*with_layout=*/false));
      }
    }
    return true;
  }

  // Checks that shape inference does not make.
  bool CheckOwn(const Instruction& i) {
    if (i.attrs->kind == AttrKind::kFusion) {
      return verifier::CheckAliasing(m_, i, i.as<FusionAttrs>().aliasing, error_);
    }
    if (i.attrs->kind == AttrKind::kCustomCall) {
      return verifier::CheckAliasing(m_, i, i.as<CustomCallAttrs>().output_to_operand_aliasing,
                                     error_);
    }
    if (i.opcode == Opcode::kParameter) {
      const size_t n = i.as<ParameterAttrs>().replication.size();
      if (n == 0 || n == i.shape->num_leaves()) return true;
      return Fail(error_, "E022",
                  "parameter: parameter_replication has the wrong number of entries", "",
                  absl::StrCat(i.shape->num_leaves()), absl::StrCat(n));
    }
    const Opcode start = StartOf(i.opcode);
    if (start == i.opcode) return true;
    if (i.opcode == Opcode::kAsyncUpdate &&
        i.shape->bare() != m_.instr(m_.operands(i)[0]).shape->bare()) {
      return Fail(error_, "E023", "async-update: the shape is not the operand's", "",
                  verifier::ShapeText(m_.instr(m_.operands(i)[0]).shape),
                  verifier::ShapeText(i.shape), "write the expected shape");
    }
    const Opcode found = m_.instr(m_.operands(i)[0]).opcode;
    if (found == start || (start == Opcode::kAsyncStart && found == Opcode::kAsyncUpdate)) {
      return true;
    }
    // The operand may be an element of a tuple: a loop can carry the transfer.
    if (found == Opcode::kGetTupleElement && (start == Opcode::kSend || start == Opcode::kRecv)) {
      return true;
    }
    return Fail(error_, "E028",
                absl::StrCat(OpcodeText(i.opcode), ": the operand is not the matching start"), "",
                std::string(OpcodeText(start)), std::string(OpcodeText(found)),
                "give it the start's result itself");
  }

  static Opcode StartOf(Opcode done) {
    if (done == Opcode::kAsyncUpdate || done == Opcode::kAsyncDone) return Opcode::kAsyncStart;
    const AsyncForms* const forms = FormsEndedBy(done);
    return forms == nullptr ? done : forms->start;
  }

  const Module& m_;
  Fault* error_;
  absl::flat_hash_set<const void*> seen_;
  // Opcodes can share an attribute record but interpret it differently.
  absl::flat_hash_set<std::pair<const Attributes*, Opcode>> seen_groups_;
  absl::flat_hash_set<std::pair<const HloSharding*, const Shape*>> seen_shardings_;
  absl::InlinedVector<const Shape*, 16> shapes_;
};

bool CheckInstructions(const Module& m, Fault* error) {
  Verifier verifier(m, error);
  for (int c = 0; c < m.num_computations(); ++c) {
    for (InstrId id : m.comp(CompId(c)).instructions) {
      if (verifier.CheckInstruction(id)) continue;
      error->at = id;
      error->where = verifier::Where(m, id);
      return false;
    }
  }
  return true;
}

// For errors without a fix of their own.
const char* UsualFix(absl::string_view code) {
  if (code == "E021") return "give operands and a shape that fit the op";
  if (code == "E022") return "correct the attribute";
  if (code == "E023") return "write the expected shape";
  if (code == "E024") return "call a computation of this signature";
  if (code == "E025") return "correct the devices, or the counts in the header";
  if (code == "E026") return "correct the header";
  if (code == "E027") return "remove one of the calls";
  return "put the instructions in order";
}

absl::Status CheckTargets(const Module& m, absl::string_view file, const TargetShapes& targets) {
  std::vector<const Shape*> operands;
  for (int n = 0; n < m.num_instructions(); ++n) {
    const Instruction& i = m.instr(InstrId(n));
    if (i.opcode != Opcode::kCustomCall) continue;
    operands.clear();
    for (InstrId x : m.operands(i)) operands.push_back(m.instr(x).shape);
    const absl::Status status = targets.CheckShape(
        {&m.context(), i.as<CustomCallAttrs>().target, i.backend_config, operands}, i.shape);
    if (status.ok()) continue;
    return In(status,
              absl::StrCat(verifier::Where(m, InstrId(n)), file.empty() ? "" : " of ", file));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status VerifyModule(const Module& module, absl::string_view file_name,
                          const TargetShapes* targets) {
  SHARDCALL_RETURN_IF_ERROR(CheckNotMovedFrom(module));
  Fault error;
  if (verifier::CheckStructure(module, &error) && verifier::CheckHeader(module, &error) &&
      CheckInstructions(module, &error) && verifier::CheckUses(module, &error) &&
      verifier::CheckLoopShardings(module, &error)) {
    return targets == nullptr ? absl::OkStatus() : CheckTargets(module, file_name, *targets);
  }
  if (error.fix.empty()) error.fix = UsualFix(error.code);
  std::string file(file_name);
  // Names are usually views into the text that the module was read from.
  if (error.at.valid() && !module.instr(error.at).name.empty()) {
    const char* name = module.instr(error.at).name.data();
    for (const std::shared_ptr<const std::string>& text : module.texts()) {
      if (std::less<>()(name, text->data()) || !std::less<>()(name, text->data() + text->size())) {
        continue;
      }
      file = PlaceInText(*text, name, file_name);
      error.excerpt = LineWithCaret(*text, name);
      break;
    }
  }
  if (error.where.empty()) {
    error.where = std::move(file);
  } else if (!file.empty()) {
    error.where = absl::StrCat(file, ", ", error.where);
  }
  return ToStatus(error);
}

}  // namespace shardcall
