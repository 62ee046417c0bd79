// SPDX-License-Identifier: Apache-2.0
// Custom calls through the HandlerRegistry. Operands and results have the layouts that the call
// states.
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/staged_call.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/partitioner/ir/output_aliasing.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"
#include "shardcall/partitioner/runtime/lower/lower_op.h"
#include "shardcall/partitioner/runtime/ops/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall::inline internal {
namespace {

struct CustomCallData : OpData {
  std::string target, backend_config;
  AttributeMapView attributes;
  std::vector<Dims> operand_order, result_order;  // major to minor; empty: descending
  std::vector<int> alias;  // by result: the operand whose buffer it reuses, or -1
  int api_version = 4;
  bool tuple_result = false;
  struct Computation {
    int index = -1;  // index of the call in the program
    std::vector<LeafShape> parameters, results;
  };
  std::vector<Computation> computations;
  mutable CallSite site;  // handler state that lives as long as the program
};

Dims MajorToMinor(const LeafShape& shape) {
  if (shape.HasDescendingLayout()) return {};
  return Dims(shape.minor_to_major.rbegin(), shape.minor_to_major.rend());
}

Dims Inverse(const Dims& perm) {
  Dims inverse(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) inverse[perm[k]] = static_cast<int64_t>(k);
  return inverse;
}

BufferView View(const Tensor& t, const Dims& dims, void* data) {
  return {t.type(), std::vector<int64_t>(dims.begin(), dims.end()), data};
}

std::string DescribeLeaf(const LeafShape& leaf) { return TypeAndDims(leaf.type, leaf.dims); }

// The computations of a call, run on the device and thread of the call.
class Computations : public AttachedComputations {
 public:
  Computations(StepRun& run, const std::vector<CustomCallData::Computation>& all)
      : run_(run), all_(all) {}

  int size() const override { return static_cast<int>(all_.size()); }
  absl::Status Call(int index, absl::Span<const BufferView> operands,
                    absl::Span<const BufferView> results) const override {
    const CustomCallData::Computation& computation = all_[index];
    SHARDCALL_RETURN_IF_ERROR(Check("operand", operands, computation.parameters));
    SHARDCALL_RETURN_IF_ERROR(Check("result", results, computation.results));
    std::vector<Tensor> arguments;
    for (const BufferView& b : operands) {
      arguments.push_back(b.type == ElementType::kToken
                              ? Tensor::Token()
                              : Tensor::FromBytes(b.type, b.dims, b.data));
    }
    SHARDCALL_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                               run_.Call(computation.index, std::move(arguments)));
    for (size_t k = 0; k < results.size(); ++k) {
      if (values[k].byte_size() > 0 && results[k].type != ElementType::kToken) {
        std::memcpy(results[k].data, values[k].data(), values[k].byte_size());
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(absl::string_view what, absl::Span<const BufferView> given,
                     const std::vector<LeafShape>& expected) const {
    for (size_t k = 0; k < given.size() || k < expected.size(); ++k) {
      const bool both = k < given.size() && k < expected.size();
      if (both && given[k].type == expected[k].type &&
          Dims(given[k].dims.begin(), given[k].dims.end()) == expected[k].dims &&
          (given[k].data != nullptr || given[k].byte_size() == 0 ||
           given[k].type == ElementType::kToken)) {
        continue;
      }
      return run_.Error(
          "E133",
          absl::StrCat("its handler calls a computation with another ", what, " ", k, ": expected ",
                       k < expected.size() ? DescribeLeaf(expected[k]) : "none", ", found ",
                       k < given.size() ? given[k].ToString() : "none"),
          absl::StatusCode::kInvalidArgument,
          "Pass buffers of the shapes of the computation's parameters and results");
    }
    return absl::OkStatus();
  }

  StepRun& run_;
  const std::vector<CustomCallData::Computation>& all_;
};

absl::Status OnDevice(StepRun& run, const HandlerEntry& entry, const HandlerContext& context,
                      absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
  std::shared_ptr<HandlerDevice>& device = run.device().accelerator->device;
  if (device == nullptr) {
    void* const stream = context.communicator == nullptr ? nullptr : context.communicator->stream();
    SHARDCALL_ASSIGN_OR_RETURN(
        device, run.device().handlers->OpenDevice(entry.platform, context.device_ordinal, stream));
  }
  return CallStaged(entry, device, context, operands, results);
}

// Marks a call for the thread that watches deadlines.
class WatchedCall {
 public:
  WatchedCall(CallWatch* watch, const std::string& target, const std::string& instruction)
      : watch_(watch) {
    if (watch_ != nullptr) watch_->Begin(&target, &instruction);
  }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;
  ~WatchedCall() {
    if (watch_ != nullptr) watch_->End();
  }

 private:
  CallWatch* const watch_;
};

absl::Status RunCustomCall(StepRun& run) {
  const auto& data = run.data<CustomCallData>();
  if (run.device().handlers == nullptr) {
    return run.Error(
        "E140", absl::StrCat("no handlers are registered, but \"", data.target, "\" is called"),
        absl::StatusCode::kNotFound, "Pass a registry, or a plugin, that has the target");
  }
  // Handlers need device memory if the collectives do.
  Communicator* const comm = run.device().comm;
  SHARDCALL_ASSIGN_OR_RETURN(
      const HandlerEntry* entry,
      run.device().handlers->FindForRun(data.target, data.backend_config,
                                        comm != nullptr && comm->stream() != nullptr));
  std::vector<Tensor> in, out;
  std::vector<BufferView> operands, results;
  std::vector<Dims> in_dims;
  for (int k = 0; k < run.num_inputs(); ++k) {
    in_dims.push_back(run.in(k).dims());
    in.push_back(run.Take(k));
    if (!data.operand_order[k].empty()) in[k] = Transpose(in[k], data.operand_order[k]);
  }
  for (int r = 0; r < run.num_results(); ++r) {
    const LeafShape& shape = run.shape(r);
    if (data.alias[r] >= 0) {
      Tensor& source = in[data.alias[r]];
      source.MutableData();  // the only owner now, or a copy
      out.push_back(std::move(source));
      source = Tensor();
    } else {
      Dims dims = shape.dims;
      for (size_t k = 0; k < data.result_order[r].size(); ++k) {
        dims[k] = shape.dims[data.result_order[r][k]];
      }
      out.push_back(Tensor(shape.type, dims));
    }
    results.push_back(View(out[r], shape.dims, out[r].MutableData()));
  }
  for (size_t k = 0; k < in.size(); ++k) {
    operands.push_back(View(in[k], in_dims[k], const_cast<char*>(in[k].data())));
  }
  for (size_t r = 0; r < data.alias.size(); ++r) {  // operand and result share one buffer
    if (data.alias[r] >= 0) {
      operands[data.alias[r]].type = out[r].type();
      operands[data.alias[r]].data = results[r].data;
    }
  }
  HandlerContext context;
  context.target = data.target;
  context.instruction = run.step().name;
  context.attributes = &data.attributes;
  context.backend_config = data.backend_config;
  context.device_ordinal = run.device().device;
  context.num_devices = run.device().num_devices;
  context.communicator = run.device().comm;
  context.api_version = data.api_version;
  context.tuple_result = data.tuple_result;
  context.run_id = run.device().run_id;
  context.deadline = run.device().deadline;
  context.call_site = &data.site;
  context.user_data = &run.device().handlers->user_data();
  context.mesh = run.device().mesh;
  const Computations computations(run, data.computations);
  if (computations.size() > 0) context.computations = &computations;
  context.keep_buffers = [&in, &out]() -> std::shared_ptr<const void> {
    return std::make_shared<std::pair<std::vector<Tensor>, std::vector<Tensor>>>(in, out);
  };
  CallWatch* const watch = CallWatch::OfThisThread();
  const HostHandler* host = &entry->host;
  if (watch != nullptr) {
    host = &watch->Keep(*entry);
    context.user_data = watch->Keep(*context.user_data);
  }
  absl::Status status;
  try {
    const RunningCall running("the handler", data.target, run.step().name, context.device_ordinal);
    const WatchedCall watched(watch, data.target, run.step().name);
    if (entry->platform != "Host") {
      status = OnDevice(run, *entry, context, operands, results);
    } else {
      status = GuardsHandlers() ? CallGuarded(*host, context, operands, results)
                                : (*host)(context, operands, results);
    }
  } catch (const std::exception& e) {
    return run.Error("E317", absl::StrCat("the handler of \"", data.target, "\" threw: ", e.what()),
                     absl::StatusCode::kInternal, kThrewFix);
  } catch (...) {
    return run.Error("E317", absl::StrCat("the handler of \"", data.target, "\" threw"),
                     absl::StatusCode::kInternal, kThrewFix);
  }
  // If the deadline has passed, the run has ended, and nothing may be written to its results.
  const std::atomic<bool>* const cancelled = run.device().cancelled;
  if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
    return absl::AbortedError("stopped, as another device failed");
  }
  if (!status.ok()) {
    if (!DiagnosticCode(status).empty()) return status;
    return run.Error(
        "E317", absl::StrCat("the handler of \"", data.target, "\" ", FailedText(status.message())),
        status.code(), kFailedFix);
  }
  for (int r = 0; r < run.num_results(); ++r) {
    if (!data.result_order[r].empty()) {
      out[r] = Transpose(out[r], Inverse(data.result_order[r]));
    }
    // Plugins may write any non-zero byte for true.
    if (out[r].type() == ElementType::kPred) {
      NormalizeElements(out[r].type(), out[r].MutableData(), out[r].num_elements());
    }
    run.Set(r, std::move(out[r]));
  }
  return absl::OkStatus();
}

// The flat leaf at an index; -1 if there is none, or if it is a tuple.
int LeafAt(const Shape* shape, absl::Span<const int64_t> index) {
  const Shape* part = PartAt(shape, index);
  return part == nullptr || part->IsTuple() ? -1 : FirstLeafAt(shape, index);
}

// For each result leaf: the operand leaf that it aliases.
absl::Status FindAliases(const LowerContext& context, absl::string_view text,
                         std::vector<int>* alias) {
  const auto misfit = [&] {
    return context.Error("E311", "output_to_operand_aliasing does not fit operands and results");
  };
  std::vector<OutputAlias> entries;
  if (!ParseOutputAliasing(text, &entries)) return misfit();
  for (const OutputAlias& a : entries) {
    if (a.operand < 0 || a.operand >= context.num_operands()) return misfit();
    const int operand = static_cast<int>(a.operand);
    const int result = LeafAt(context.instr.shape, a.output);
    int leaf = LeafAt(context.operand_shape(operand), a.inner);
    if (result < 0 || leaf < 0) return misfit();
    for (int k = 0; k < operand; ++k) leaf += context.operand_shape(k)->num_leaves();
    for (int other : *alias) {
      if (other == leaf) {
        return context.Error("E311", "two results alias one operand",
                             "Alias each operand to one result at most");
      }
    }
    (*alias)[result] = leaf;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LowerCustomCall(const LowerContext& context, Step* step) {
  const auto& attrs = context.attrs<CustomCallAttrs>();
  if (HasTrait(KnownTargetOf(context.instr), kManualBoundaryTarget)) {
    return LowerManualBoundary(context, step);
  }
  if (attrs.api_version < 1 || attrs.api_version > 4) {
    return context.Error(
        "E140",
        absl::StrCat("the call of \"", attrs.target, "\" has API version ", attrs.api_version,
                     attrs.api_version == 0 ? " (unspecified)" : "",
                     ", so that it is not known what its handler takes; "
                     "there are 1 to 4"),
        "Write api_version=API_VERSION_TYPED_FFI (custom_call_api_version 4), or "
        "the version of the handler");
  }
  auto data = std::make_unique<CustomCallData>();
  data->target = std::string(attrs.target);
  data->backend_config = std::string(context.instr.backend_config);
  data->api_version = static_cast<int>(attrs.api_version);
  data->tuple_result = context.instr.shape->IsTuple();
  for (CompId id : attrs.called_computations) {
    if (!id.valid()) return context.Error("E311", "the called computation is missing");
    CustomCallData::Computation called;
    called.index = context.computation(id);
    const Computation& comp = context.module.comp(id);
    for (InstrId p : comp.parameters) {
      const Shape& shape = *context.module.instr(p).shape;
      for (int l = 0; l < shape.num_leaves(); ++l) {
        called.parameters.push_back(MakeLeafShape(*shape.leaf(l)));
      }
    }
    const Shape& result = *context.module.instr(comp.root).shape;
    for (int l = 0; l < result.num_leaves(); ++l) {
      called.results.push_back(MakeLeafShape(*result.leaf(l)));
    }
    data->computations.push_back(std::move(called));
  }
  if (attrs.api_version == 4) {
    SHARDCALL_ASSIGN_OR_RETURN(data->attributes,
                               AttributeMapView::Parse(context.instr.backend_config));
  }
  for (int k = 0; k < context.num_operands(); ++k) {
    const Shape* shape = context.operand_shape(k);
    const Shape* layout = shape;
    if (attrs.has_layout_constraints) {
      if (attrs.operand_layouts.size() != context.num_operands() ||
          attrs.operand_layouts[k]->num_leaves() != shape->num_leaves()) {
        return context.Error("E311", "one layout per operand is needed");
      }
      layout = attrs.operand_layouts[k];
    }
    for (int l = 0; l < shape->num_leaves(); ++l) {
      data->operand_order.push_back(
          attrs.has_layout_constraints ? MajorToMinor(MakeLeafShape(*layout->leaf(l))) : Dims{});
    }
  }
  for (const LeafShape& shape : step->shapes) {
    data->result_order.push_back(attrs.has_layout_constraints ? MajorToMinor(shape) : Dims{});
  }
  data->alias.assign(step->shapes.size(), -1);
  SHARDCALL_RETURN_IF_ERROR(FindAliases(context, attrs.output_to_operand_aliasing, &data->alias));
  int leaf = 0;
  std::vector<const Shape*> operand_leaves;
  for (int k = 0; k < context.num_operands(); ++k) {
    for (int l = 0; l < context.operand_shape(k)->num_leaves(); ++l, ++leaf) {
      operand_leaves.push_back(context.operand_shape(k)->leaf(l));
    }
  }
  for (size_t r = 0; r < data->alias.size(); ++r) {
    if (data->alias[r] < 0) continue;
    const LeafShape other = MakeLeafShape(*operand_leaves[data->alias[r]]);
    if (other.type != step->shapes[r].type || other.dims != step->shapes[r].dims ||
        data->operand_order[data->alias[r]] != data->result_order[r]) {
      return context.Error(
          "E311",
          absl::StrCat("result ", r, " aliases an operand of another shape or layout: expected ",
                       DescribeLeaf(step->shapes[r]), ", found ", DescribeLeaf(other)),
          "Leave the pair out of output_to_operand_aliasing, or give both one shape and layout");
    }
  }
  step->fn = RunCustomCall;
  step->data = std::move(data);
  return absl::OkStatus();
}

}  // namespace shardcall::inline internal
