// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/rules/resize.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "shardcall/partitioner/import/import.h"
#include "shardcall/partitioner/ir/literal.h"
#include "shardcall/partitioner/ir/row_by_opcode.h"
#include "shardcall/partitioner/ir/verifier/verifier.h"
#include "shardcall/partitioner/rules/dimension_classes.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

absl::Status CannotResize(std::string message, std::string where, std::string expected,
                          std::string found) {
  return ToStatus({.code = "E113",
                   .message = std::move(message),
                   .where = std::move(where),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = "Give operands of sizes that the computation can have"});
}

class Resizer {
 public:
  Resizer(Program* program, const DimensionClasses& classes)
      : program_(*program), m_(program->module), classes_(classes) {}

  absl::Status Run(absl::Span<const std::vector<int64_t>> parameters) {
    SHARDCALL_RETURN_IF_ERROR(Assign(parameters));
    // Rewriting attributes reads the old shapes, so the new ones are set afterwards.
    std::vector<const Shape*> shapes(m_.num_instructions());
    for (int n = 0; n < m_.num_instructions(); ++n) {
      SHARDCALL_ASSIGN_OR_RETURN(shapes[n], NewShape(InstrId(n)));
    }
    for (int n = 0; n < m_.num_instructions(); ++n) {
      SHARDCALL_RETURN_IF_ERROR(Rewrite(InstrId(n), shapes));
    }
    for (int n = 0; n < m_.num_instructions(); ++n) m_.mutable_instr(InstrId(n)).shape = shapes[n];
    m_.header.entry_parameter_layouts.clear();
    m_.header.entry_result_layout = nullptr;
    return absl::OkStatus();
  }

 private:
  absl::Status Assign(absl::Span<const std::vector<int64_t>> given) {
    std::vector<LeafId> leaves;
    for (InstrId p : m_.comp(m_.entry()).parameters) {
      for (int k = 0; k < m_.instr(p).shape->num_leaves(); ++k) {
        leaves.push_back(program_.leaves.leaf(p, k));
      }
    }
    if (leaves.size() != given.size()) {
      return CannotResize("there is another number of operands", "", absl::StrCat(leaves.size()),
                          absl::StrCat(given.size()));
    }
    for (bool compounds : {false, true}) {
      for (size_t k = 0; k < leaves.size(); ++k) {
        const Shape* shape = program_.LeafShape(leaves[k]);
        const int rank = shape->IsArray() ? shape->rank() : 0;
        const std::string where = absl::StrCat("operand ", k);
        if (rank != static_cast<int>(given[k].size())) {
          return CannotResize("an operand has another rank", where, absl::StrCat(rank),
                              absl::StrCat(given[k].size()));
        }
        for (int d = 0; d < rank; ++d) {
          const std::vector<int> atoms = classes_.Atoms(leaves[k], d);
          if ((atoms.size() > 1) != compounds) continue;
          SHARDCALL_RETURN_IF_ERROR(AssignDim(atoms, given[k][d], where));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status AssignDim(const std::vector<int>& atoms, int64_t size, const std::string& where) {
    int64_t known = 1;
    std::vector<int> open;
    for (int a : atoms) {
      auto it = sizes_.find(a);
      if (it != sizes_.end()) {
        known *= it->second;
      } else {
        open.push_back(a);
      }
    }
    // If several atoms of a dimension are unknown, the most major one takes the new size and the
    // others stay.
    while (open.size() > 1) {
      sizes_[open.back()] = classes_.size(open.back());
      known *= classes_.size(open.back());
      open.pop_back();
    }
    if (open.size() == 1 && known > 0 && size % known == 0) {
      const int64_t now = size / known;
      if (classes_.fixed(open[0]) && now != classes_.size(open[0])) {
        return CannotResize("the computation cuts or pads a dimension at a size of its own", where,
                            absl::StrCat(classes_.size(open[0])), absl::StrCat(now));
      }
      sizes_[open[0]] = now;
    } else if (!open.empty() || known != size) {
      return CannotResize("sizes contradict each other", where, absl::StrCat(known),
                          absl::StrCat(size));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const Shape*> NewLeaf(LeafId leaf) {
    const Shape* shape = program_.LeafShape(leaf);
    if (!shape->IsArray()) return shape;
    std::vector<int64_t> dims;
    for (int d = 0; d < shape->rank(); ++d) {
      int64_t size = 1;
      for (int a : classes_.Atoms(leaf, d)) {
        auto it = sizes_.find(a);
        if (__builtin_mul_overflow(size, it == sizes_.end() ? classes_.size(a) : it->second,
                                   &size)) {
          return CannotResize("an array is too large", "", "fewer than 2^63 elements", "");
        }
      }
      dims.push_back(size);
    }
    return m_.context().WithDims(shape, dims);
  }

  absl::StatusOr<const Shape*> NewShape(InstrId id) {
    std::vector<const Shape*> leaves;
    const Shape* shape = m_.instr(id).shape;
    for (int k = 0; k < shape->num_leaves(); ++k) {
      SHARDCALL_ASSIGN_OR_RETURN(const Shape* leaf, NewLeaf(program_.leaves.leaf(id, k)));
      leaves.push_back(leaf);
    }
    size_t next = 0;
    return WithLeaves(shape, leaves, &next);
  }
  // The recursion is bounded by the parser's limit for nested tuples (kMaxNesting).
  const Shape* WithLeaves(const Shape* shape, const std::vector<const Shape*>& leaves,
                          size_t* next) {
    if (!shape->IsTuple()) return leaves[(*next)++];
    std::vector<const Shape*> elements;
    for (const Shape* e : shape->tuple()) elements.push_back(WithLeaves(e, leaves, next));
    return m_.context().MakeTuple(elements);
  }

  // Rewrites the sizes in attributes. An op with such attributes and no row would not fit its new
  // shapes, which the verifier finds.
  absl::Status Rewrite(InstrId id, const std::vector<const Shape*>& shapes) {
    static constexpr Row kRows[] = {
        {Opcode::kConstant, &Resizer::RewriteConstant},
        {Opcode::kSlice, &Resizer::RewriteSlice},
        {Opcode::kDynamicSlice, &Resizer::RewriteDynamicSlice},
        {Opcode::kGather, &Resizer::RewriteGather},
        {Opcode::kFft, &Resizer::RewriteFft},
    };
    Instruction& i = m_.mutable_instr(id);
    const Row* const row = RowByOpcode(kRows, i.opcode);
    if (row == nullptr) return absl::OkStatus();
    const auto operands = m_.operands(i);
    const Shape* before = operands.empty() ? nullptr : m_.instr(operands[0]).shape;
    const Shape* operand = operands.empty() ? nullptr : shapes[operands[0].value];
    return (this->*row->rewrite)(&i, shapes[id.value], before, operand);
  }

  // `now`: the result's new shape. `before`, `operand`: the first operand's old and new shape.
  using RewriteFn = absl::Status (Resizer::*)(Instruction* i, const Shape* now, const Shape* before,
                                              const Shape* operand);
  struct Row {
    Opcode opcode;
    RewriteFn rewrite;
  };

  absl::Status RewriteSlice(Instruction* i, const Shape*, const Shape* before,
                            const Shape* operand) {
    SliceAttrs made = i->as<SliceAttrs>();
    std::vector<int64_t> limits(made.limits.begin(), made.limits.end());
    for (int d = 0; d < before->rank(); ++d) {
      if (made.starts[d] == 0 && made.strides[d] == 1 && limits[d] == before->dim(d)) {
        limits[d] = operand->dim(d);
      }
    }
    made.limits = limits;
    i->attrs = InternAttributes(m_.context(), made);
    return absl::OkStatus();
  }

  absl::Status RewriteDynamicSlice(Instruction* i, const Shape* now, const Shape*, const Shape*) {
    DynamicSliceAttrs made = i->as<DynamicSliceAttrs>();
    made.sizes = now->dims();
    i->attrs = InternAttributes(m_.context(), made);
    return absl::OkStatus();
  }

  absl::Status RewriteGather(Instruction* i, const Shape*, const Shape* before,
                             const Shape* operand) {
    GatherAttrs made = i->as<GatherAttrs>();
    std::vector<int64_t> sizes(made.slice_sizes.begin(), made.slice_sizes.end());
    for (int d = 0; d < before->rank(); ++d) {
      if (sizes[d] == before->dim(d)) sizes[d] = operand->dim(d);
    }
    made.slice_sizes = sizes;
    i->attrs = InternAttributes(m_.context(), made);
    return absl::OkStatus();
  }

  absl::Status RewriteFft(Instruction* i, const Shape* now, const Shape*, const Shape* operand) {
    FftAttrs made = i->as<FftAttrs>();
    const Shape* real = made.type == FftType::kIrfft ? now : operand;
    made.length = real->dims().subspan(real->rank() - made.length.size());
    i->attrs = InternAttributes(m_.context(), made);
    return absl::OkStatus();
  }

  absl::Status RewriteConstant(Instruction* i, const Shape* now, const Shape*, const Shape*) {
    if (now == i->shape) return absl::OkStatus();
    const Literal* literal = i->as<ConstantAttrs>().literal;
    const size_t bytes = ElementTypeBytes(i->shape->element_type());
    bool splat = i->shape->IsArray() && !literal->elided && literal->data.size() >= bytes;
    for (size_t k = bytes; splat && k < literal->data.size(); ++k) {
      splat = literal->data[k] == literal->data[k - bytes];
    }
    constexpr int64_t kMost = int64_t{1} << 28;
    if (!splat || now->num_elements() > kMost) {
      return CannotResize("a constant array has one size only", absl::StrCat("%", i->name),
                          i->shape->ToString(false), now->ToString(false));
    }
    std::string data;
    for (int64_t k = 0; k < now->num_elements(); ++k) data.append(literal->data.data(), bytes);
    ConstantAttrs made;
    made.literal = MakeLiteral(m_.context(), now, data);
    i->attrs = InternAttributes(m_.context(), made);
    return absl::OkStatus();
  }

  const Program& program_;
  Module& m_;
  const DimensionClasses& classes_;
  std::map<int, int64_t> sizes_;  // by atom; others keep their size
};

}  // namespace

absl::StatusOr<Module> ResizeModule(Module module,
                                    absl::Span<const std::vector<int64_t>> parameters,
                                    const TargetRegistry* targets) {
  SHARDCALL_ASSIGN_OR_RETURN(Program program, ImportModule(std::move(module), {}));
  {
    RuleTable rules(program, {targets, {"all"}});
    const DimensionClasses classes(program, rules);
    SHARDCALL_RETURN_IF_ERROR(rules.status());
    SHARDCALL_RETURN_IF_ERROR(Resizer(&program, classes).Run(parameters));
  }
  SHARDCALL_RETURN_IF_ERROR(VerifyModule(program.module, ""));
  return std::move(program.module);
}

}  // namespace internal
}  // namespace shardcall
