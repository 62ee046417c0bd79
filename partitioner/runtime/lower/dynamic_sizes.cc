// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/lower/dynamic_sizes.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/build/checked_builder.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/ir/text/printer.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/passes_sizes.h"
#include "shardcall/partitioner/runtime/lower/sized_op.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/process_lock.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

bool SetsSizes(Opcode opcode) {
  return opcode == Opcode::kSetDimensionSize || opcode == Opcode::kDynamicReshape;
}

struct SizedData : OpData {
  std::shared_ptr<DynamicSource> source;
  InstrId id;
  int64_t dimension = 0;  // of get- and set-dimension-size
};

absl::Status CheckSizes(const StepRun& run, int result, const Tensor& t) {
  const LeafShape& shape = run.shape(result);
  bool fits = t.type() == shape.type && t.dims().size() == shape.dims.size();
  for (size_t d = 0; fits && d < shape.dims.size(); ++d) {
    fits = t.dims()[d] == shape.dims[d] || (shape.IsDynamicDim(d) && t.dims()[d] < shape.dims[d]);
  }
  if (fits) return absl::OkStatus();
  return run.Error("E311", absl::StrCat("the result is ", TypeAndDims(t), ", which its shape ",
                                        TypeAndDims(shape.type, shape.dims),
                                        " does not allow for: a dimension is not dynamic there"));
}

absl::Status RunSized(StepRun& run) {
  const auto& data = run.data<SizedData>();
  std::vector<Dims> sizes;
  for (int k = 0; k < run.num_inputs(); ++k) sizes.push_back(run.in(k).dims());
  absl::StatusOr<std::shared_ptr<const DeviceProgram>> program = data.source->For(data.id, sizes);
  if (!program.ok()) {
    std::string text;
    for (int k = 0; k < run.num_inputs(); ++k) {
      absl::StrAppend(&text, k == 0 ? "" : ", ", TypeAndDims(run.in(k)));
    }
    return run.Error(DiagnosticCode(program.status()) == "E310" ? "E310" : "E311",
                     absl::StrCat("over ", text, ": ", program.status().message()),
                     program.status().code());
  }
  std::vector<Tensor> arguments;
  for (int k = 0; k < run.num_inputs(); ++k) arguments.push_back(run.Take(k));
  SHARDCALL_ASSIGN_OR_RETURN(
      std::vector<Tensor> results,
      RunComputation(**program, run.device(), (*program)->entry, std::move(arguments)));
  for (int r = 0; r < run.num_results(); ++r) {
    SHARDCALL_RETURN_IF_ERROR(CheckSizes(run, r, results[r]));
    run.SetSized(r, std::move(results[r]));
  }
  return absl::OkStatus();
}

absl::Status RunGetSize(StepRun& run) {
  const int64_t size = run.in(0).dim(static_cast<int>(run.data<SizedData>().dimension));
  run.Set(0, Tensor::IntScalar(run.shape(0).type, size));
  return absl::OkStatus();
}

absl::Status RunSetSize(StepRun& run) {
  const int64_t size = IntElement(run.in(1), 0), d = run.data<SizedData>().dimension;
  const int64_t now = run.in(0).dim(static_cast<int>(d)), bound = run.shape(0).dims[d];
  if (size < 0 || size > bound) {
    return run.Error("E311", absl::StrCat("the size ", size, " is not in [0, ", bound, "]"));
  }
  if (size > now) {
    return run.Error("E310",
                     absl::StrCat("the dimension would grow from ", now, " to ", size,
                                  ", and nothing says what lies behind its end; pad it instead"),
                     absl::StatusCode::kUnimplemented);
  }
  Tensor t = run.Take(0);
  if (size < now) {
    Dims dims = t.dims();
    dims[d] = size;
    Tensor cut(t.type(), dims);
    CopyStrided(t.element_bytes(), dims, t.data(), RowMajorStrides(t.dims()), cut.MutableData(),
                RowMajorStrides(dims));
    t = std::move(cut);
  }
  SHARDCALL_RETURN_IF_ERROR(CheckSizes(run, 0, t));
  run.SetSized(0, std::move(t));
  return absl::OkStatus();
}

absl::Status RunDynamicReshape(StepRun& run) {
  Dims dims = run.shape(0).dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t size = IntElement(run.in(static_cast<int>(d) + 1), 0);
    if (size < 0 || size > dims[d]) {
      return run.Error("E311", absl::StrCat("the size ", size, " of dimension ", d,
                                            " is not in [0, ", dims[d], "]"));
    }
    dims[d] = size;
  }
  Tensor t = run.Take(0);
  if (Product(dims) != t.num_elements()) {
    return run.Error("E311", absl::StrCat(t.num_elements(), " elements cannot be ",
                                          TypeAndDims(t.type(), dims)));
  }
  t = std::move(t).As(t.type(), dims);
  SHARDCALL_RETURN_IF_ERROR(CheckSizes(run, 0, t));
  run.SetSized(0, std::move(t));
  return absl::OkStatus();
}

struct BoundsData : OpData {
  std::vector<Dims> bounds;
};
absl::Status RunFullSizes(StepRun& run) {
  const auto& bounds = run.data<BoundsData>().bounds;
  for (int k = 0; k < run.num_inputs(); ++k) {
    if (run.in(k).dims() == bounds[k]) continue;
    return run.Error("E310",
                     absl::StrCat("operand ", k, " is ", TypeAndDims(run.in(k)), " of a bound of ",
                                  TypeAndDims(run.in(k).type(), bounds[k]),
                                  ": sizes below the bound cannot be executed; pad and mask"),
                     absl::StatusCode::kUnimplemented);
  }
  return absl::OkStatus();
}

bool IsIntegerScalar(const Shape& shape) {
  return shape.IsArray() && shape.rank() == 0 && IsInteger(shape.element_type());
}

}  // namespace

bool HasDynamicSizes(const Module& module) {
  absl::flat_hash_set<const Shape*> seen;
  for (int n = 0; n < module.num_instructions(); ++n) {
    const Instruction& i = module.instr(InstrId(n));
    if (SetsSizes(i.opcode) || (seen.insert(i.shape).second && HasDynamicLeaf(*i.shape)))
      return true;
  }
  return false;
}

absl::StatusOr<std::shared_ptr<DynamicSource>> DynamicSource::Create(const Module& module) {
  SHARDCALL_ASSIGN_OR_RETURN(
      Module copy,
      ParseModule(std::make_shared<const std::string>(PrintModule(module, {.metadata = false})),
                  std::make_shared<Context>(), module.header.name));
  for (int n = 0; n < copy.num_instructions(); ++n) {
    const Instruction& i = copy.instr(InstrId(n));
    if (PassesWell(copy, i)) continue;
    return ToStatus({.code = "E311",
                     .message = absl::StrCat(OpcodeText(i.opcode),
                                             ": a dynamic dimension becomes a static one"),
                     .where = absl::StrCat("%", i.name),
                     .expected = "dynamic dimensions wherever the value goes",
                     .found = i.shape->ToString(/*with_layout=*/false),
                     .fix = "Write <= before the dimension's size"});
  }
  return std::shared_ptr<DynamicSource>(new DynamicSource(std::move(copy)));
}

absl::StatusOr<std::shared_ptr<const DeviceProgram>> DynamicSource::For(
    InstrId id, absl::Span<const Dims> operands) {
  std::string key = absl::StrCat(id.value);
  for (const Dims& dims : operands) {
    absl::StrAppend(&key, ":");
    for (int64_t d : dims) absl::StrAppend(&key, d, ",");
  }
  const std::lock_guard<ProcessLock> lock(ProcessLock::Only());
  const auto found = made_.find(key);
  if (found != made_.end()) return found->second;
  const Instruction instr = module_.instr(id);
  std::vector<const Shape*> bounds;
  for (InstrId x : module_.operands(id)) bounds.push_back(module_.instr(x).shape);
  CheckedBuilder builder(&module_, module_.AddComputation("sized"), &monoids_);
  absl::InlinedVector<InstrId, 4> parameters;
  for (size_t k = 0; k < bounds.size(); ++k) {
    SHARDCALL_ASSIGN_OR_RETURN(
        const InstrId x,
        builder.Parameter(static_cast<int64_t>(k),
                          module_.context().MakeArray(bounds[k]->element_type(), operands[k])));
    parameters.push_back(x);
  }
  SHARDCALL_ASSIGN_OR_RETURN(const InstrId root,
                             BuildSizedOp(builder, instr, bounds, std::move(parameters)));
  SHARDCALL_RETURN_IF_ERROR(builder.SetRoot(root));
  module_.set_entry(builder.computation());
  LowerOptions options;
  options.fuse = false;
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const DeviceProgram> program,
                             LowerAll(module_, options));
  made_.emplace(std::move(key), program);
  return program;
}

SizedKind SizedKindOf(const Module& m, const Instruction& i) {
  bool dynamic = SetsSizes(i.opcode) || HasDynamicLeaf(*i.shape), arrays = true;
  for (InstrId x : m.operands(i)) {
    dynamic = dynamic || HasDynamicLeaf(*m.instr(x).shape);
    arrays = arrays && m.instr(x).shape->IsArray();
  }
  if (!dynamic) return SizedKind::kNot;
  switch (SizedFormOf(i.opcode)) {
    case SizedForm::kPasses: return SizedKind::kPasses;
    case SizedForm::kFullOnly: return SizedKind::kFullOnly;
    case SizedForm::kMade: break;
  }
  return arrays && i.operand_count > 0 ? SizedKind::kMade : SizedKind::kFullOnly;
}

absl::Status LowerSized(const LowerContext& context, Step* step) {
  auto data = std::make_unique<SizedData>();
  data->source = context.options.dynamic;
  data->id = context.id;
  step->fn = RunSized;
  if (context.instr.opcode == Opcode::kGetDimensionSize ||
      context.instr.opcode == Opcode::kSetDimensionSize) {
    const bool set = context.instr.opcode == Opcode::kSetDimensionSize;
    const auto& attrs = context.attrs<DimensionsAttrs>();
    const Shape& in = *context.operand_shape(0);
    if (attrs.dimensions.size() != 1 || attrs.dimensions[0] < 0 ||
        attrs.dimensions[0] >= in.rank() ||
        (set && (context.num_operands() != 2 || !IsIntegerScalar(*context.operand_shape(1)) ||
                 step->shapes[0].type != in.element_type() ||
                 step->shapes[0].dims != Dims(in.dims().begin(), in.dims().end())))) {
      return context.Error("E311", "the dimension and its size do not fit the operand");
    }
    data->dimension = attrs.dimensions[0];
    step->fn = set ? RunSetSize : RunGetSize;
  } else if (context.instr.opcode == Opcode::kDynamicReshape) {
    bool fits = context.num_operands() == static_cast<int>(step->shapes[0].dims.size()) + 1 &&
                context.operand_shape(0)->element_type() == step->shapes[0].type;
    for (int k = 1; k < context.num_operands() && fits; ++k) {
      fits = IsIntegerScalar(*context.operand_shape(k));
    }
    if (!fits) return context.Error("E311", "one size per dimension of the result is needed");
    step->fn = RunDynamicReshape;
  }
  step->data = std::move(data);
  return absl::OkStatus();
}

absl::Status LowerFullSizes(const LowerContext& context, Step* step) {
  auto data = std::make_unique<BoundsData>();
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape& shape = *context.operand_shape(k);
    for (int leaf = 0; leaf < shape.num_leaves(); ++leaf) {
      data->bounds.push_back(MakeLeafShape(*shape.leaf(leaf)).dims);
    }
  }
  step->fn = RunFullSizes;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
