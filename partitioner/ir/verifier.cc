// SPDX-License-Identifier: Apache-2.0
#include "partitioner/ir/verifier.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "partitioner/ir/shape_inference.h"
#include "partitioner/ir/verifier_internal.h"

namespace shardcall {
namespace {

using verifier::Fail;

// Checks values that many instructions share (shapes, attributes, shardings)
// once each.
class Verifier {
 public:
  Verifier(const Module& m, Diagnostic* error) : m_(m), error_(error) {}

  bool CheckInstruction(InstrId id) {
    const Instruction& i = m_.instr(id);
    if (!Once(i.shape, [&] { return CheckShape(i.shape); })) return false;
    if ((i.attrs->kind == AttrKind::kCollective || i.attrs->kind == AttrKind::kPermute) &&
        !Once(i.attrs, [&] { return verifier::CheckGroups(m_, i, error_); })) {
      return false;
    }
    if (i.sharding != nullptr &&
        !Once(i.sharding, [&] { return verifier::CheckSharding(m_, *i.sharding, error_); })) {
      return false;
    }
    shapes_.clear();
    for (InstrId x : m_.operands(i)) shapes_.push_back(m_.instr(x).shape);
    const Shape* shape = InferShapeOrNull(m_.context(), m_, i.opcode, shapes_, i.attrs, i.shape,
                                          error_);
    if (shape == nullptr) return false;
    if (!CompatibleShapes(shape, i.shape)) {
      return Fail(error_, "E023",
                  absl::StrCat(OpcodeText(i.opcode),
                               ": the written shape does not follow from the operands"),
                  "", Text(shape), Text(i.shape), "write the expected shape");
    }
    return CheckOwn(i);
  }

 private:
  template <typename F>
  bool Once(const void* value, const F& check) {
    return !seen_.insert(value).second || check();
  }

  static std::string Text(const Shape* s) {
    return s->num_leaves() > 32 ? absl::StrCat("a tuple of ", s->num_leaves(), " leaves")
                                : s->ToString(/*with_layout=*/false);
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
        if (d >= 0 || d == kUnboundedDim) continue;
        return Fail(error_, "E021", "a dimension is negative", "", "0 or more", absl::StrCat(d));
      }
      if (s->byte_size() == INT64_MAX && !s->IsDynamic()) {
        return Fail(error_, "E021", "the array is too large", "", "fewer than 2^63 bytes",
                    s->ToString(/*with_layout=*/false));
      }
    }
    return true;
  }

  // What inference does not look at.
  bool CheckOwn(const Instruction& i) {
    if (i.opcode == Opcode::kParameter) {
      const size_t n = i.as<ParameterAttrs>().replication.size();
      if (n == 0 || n == i.shape->num_leaves()) return true;
      return Fail(error_, "E022", "parameter: parameter_replication has the wrong number of entries",
                  "", absl::StrCat(i.shape->num_leaves()), absl::StrCat(n));
    }
    const Opcode start = StartOf(i.opcode);
    if (start == i.opcode) return true;
    const Opcode found = m_.instr(m_.operands(i)[0]).opcode;
    if (found == start || (start == Opcode::kAsyncStart && found == Opcode::kAsyncUpdate)) {
      return true;
    }
    return Fail(error_, "E028",
                absl::StrCat(OpcodeText(i.opcode), ": the operand is not the matching start"), "",
                std::string(OpcodeText(start)), std::string(OpcodeText(found)));
  }

  static Opcode StartOf(Opcode done) {
    switch (done) {
      case Opcode::kAllGatherDone: return Opcode::kAllGatherStart;
      case Opcode::kAllReduceDone: return Opcode::kAllReduceStart;
      case Opcode::kCollectivePermuteDone: return Opcode::kCollectivePermuteStart;
      case Opcode::kCopyDone: return Opcode::kCopyStart;
      case Opcode::kAsyncUpdate:
      case Opcode::kAsyncDone: return Opcode::kAsyncStart;
      default: return done;
    }
  }

  const Module& m_;
  Diagnostic* error_;
  absl::flat_hash_set<const void*> seen_;
  absl::InlinedVector<const Shape*, 16> shapes_;
};

bool CheckInstructions(const Module& m, Diagnostic* error) {
  Verifier verifier(m, error);
  for (int c = 0; c < m.num_computations(); ++c) {
    for (InstrId id : m.comp(CompId(c)).instructions) {
      if (verifier.CheckInstruction(id)) continue;
      if (error->where.empty()) error->where = verifier::Where(m, id);
      return false;
    }
  }
  return true;
}

}  // namespace

absl::Status VerifyModule(const Module& module, absl::string_view file_name) {
  Diagnostic error;
  if (verifier::CheckStructure(module, &error) && verifier::CheckHeader(module, &error) &&
      CheckInstructions(module, &error)) {
    return absl::OkStatus();
  }
  if (error.where.empty()) {
    error.where = std::string(file_name);
  } else if (!file_name.empty()) {
    error.where = absl::StrCat(file_name, ", ", error.where);
  }
  return ToStatus(error);
}

}  // namespace shardcall
