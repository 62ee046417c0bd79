// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/check/reference_body.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/ir/analysis/side_effects.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/rules/dimension_classes.h"
#include "shardcall/partitioner/rules/resize.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

constexpr int64_t kSmall = 8;
constexpr int64_t kMostElements = int64_t{1} << 22;

absl::StatusOr<Module> Parsed(const std::string& hlo, const TargetRegistry& targets) {
  SHARDCALL_ASSIGN_OR_RETURN(Module module,
                             ParseModule(std::make_shared<const std::string>(hlo),
                                         std::make_shared<Context>(), "reference", &targets));
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(module, "reference"));
  return module;
}

absl::Status Unfit(std::string message, std::string where = "") {
  return ToStatus({.code = "E114",
                   .message = std::move(message),
                   .where = std::move(where),
                   .fix = "Write the reference as a program for one device, arrays in and out"});
}

}  // namespace

absl::StatusOr<ReferenceBody> ReferenceBody::Read(std::string hlo, const TargetRegistry& targets) {
  ReferenceBody body(std::move(hlo), targets);
  SHARDCALL_RETURN_IF_ERROR(body.ReadSignature());
  SHARDCALL_RETURN_IF_ERROR(body.FindSize());
  return body;
}

absl::Status ReferenceBody::ReadSignature() {
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Parsed(hlo_, *targets_));
  if (module.header.num_partitions > 1 || module.header.replica_count > 1) {
    return Unfit("the reference is for several devices");
  }
  SHARDCALL_ASSIGN_OR_RETURN(const Program program, ImportModule(std::move(module), {}));
  const Module& m = program.module;
  for (int n = 0; n < m.num_instructions(); ++n) {
    const Instruction& i = m.instr(InstrId(n));
    const bool is_annotation = HasTrait(KnownTargetOf(i), kSaysSharding);
    if ((HasSideEffect(i, EffectsAt::kPartitioning) && !is_annotation) ||
        HasTrait(i.opcode, kCollectiveOp)) {
      return Unfit(absl::StrCat("the reference has ", OpcodeText(i.opcode)),
                   absl::StrCat("%", i.name));
    }
    ++opcodes_[static_cast<size_t>(i.opcode)];
  }
  RuleTable rules(program, {targets_, {"all"}});
  const DimensionClasses classes(program, rules);
  SHARDCALL_RETURN_IF_ERROR(rules.status());
  auto add = [&](InstrId id, int k) -> absl::Status {
    const Shape* shape = m.instr(id).shape;
    if (shape->IsTuple()) shape = shape->leaf(k);
    if (!shape->IsArray()) return Unfit("the reference takes or gives what is no array");
    types_.push_back(shape->element_type());
    tensors_.emplace_back();
    for (int d = 0; d < shape->rank(); ++d) {
      tensors_.back().push_back(classes.Atoms(program.leaves.leaf(id, k), d));
      for (int a : tensors_.back().back()) {
        sizes_[a] = classes.size(a);
        if (classes.fixed(a)) fixed_.insert(a);
      }
    }
    return absl::OkStatus();
  };
  for (InstrId p : m.comp(m.entry()).parameters) {
    if (m.instr(p).shape->IsTuple()) return Unfit("a parameter of the reference is a tuple");
    SHARDCALL_RETURN_IF_ERROR(add(p, 0));
  }
  num_operands_ = static_cast<int>(tensors_.size());
  if (num_operands_ == 0) return Unfit("the reference has no operand");
  const InstrId root = m.comp(m.entry()).root;
  tuple_ = m.instr(root).shape->IsTuple();
  for (int k = 0; k < m.instr(root).shape->num_leaves(); ++k) {
    SHARDCALL_RETURN_IF_ERROR(add(root, k));
  }
  return absl::OkStatus();
}

int ReferenceBody::Count(int tensor, int atom) const {
  int n = 0;
  for (const auto& dim : tensors_[tensor]) n += std::count(dim.begin(), dim.end(), atom);
  return n;
}

bool ReferenceBody::Twice(int atom) const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    if (Count(static_cast<int>(t), atom) > 1) return true;
  }
  return false;
}

bool ReferenceBody::InEveryResult(int atom) const {
  for (size_t t = num_operands_; t < tensors_.size(); ++t) {
    if (Count(static_cast<int>(t), atom) == 0) return false;
  }
  return true;
}

bool ReferenceBody::InAResult(int atom) const {
  for (size_t t = num_operands_; t < tensors_.size(); ++t) {
    if (Count(static_cast<int>(t), atom) > 0) return true;
  }
  return false;
}

int ReferenceBody::DimOf(int t, int atom) const {
  for (size_t d = 0; d < tensors_[t].size(); ++d) {
    if (tensors_[t][d][0] == atom) return static_cast<int>(d);
  }
  return -1;
}

// Trials use small arrays, whatever the sizes in the reference.
int64_t ReferenceBody::Usual(int atom) const {
  const int64_t size = sizes_.at(atom);
  return small_ && fixed_.count(atom) == 0 ? std::min<int64_t>(size, kSmall) : size;
}
// Whether the reference can be resized to small arrays; if not, its own sizes must be small.
absl::Status ReferenceBody::FindSize() {
  small_ = true;
  if (Resized({}).ok()) return absl::OkStatus();
  small_ = false;
  for (const auto& tensor : tensors_) {
    int64_t elements = 1;
    for (const auto& dim : tensor) {
      for (int a : dim) {
        if (__builtin_mul_overflow(elements, sizes_.at(a), &elements) || elements > kMostElements) {
          return Unfit(
              "the reference is written in one large size, which its rule cannot be "
              "tried on");
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Module> ReferenceBody::Resized(const std::map<int, int64_t>& now) const {
  std::vector<std::vector<int64_t>> dims;
  for (int t = 0; t < num_operands_; ++t) {
    dims.emplace_back();
    for (const auto& atoms : tensors_[t]) {
      int64_t size = 1;
      for (int a : atoms) size *= now.count(a) > 0 ? now.at(a) : Usual(a);
      dims.back().push_back(size);
    }
  }
  SHARDCALL_ASSIGN_OR_RETURN(Module module, Parsed(hlo_, *targets_));
  return ResizeModule(std::move(module), dims, targets_);
}

}  // namespace internal
}  // namespace shardcall
