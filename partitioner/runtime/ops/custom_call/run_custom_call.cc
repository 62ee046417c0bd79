// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/runtime/ops/custom_call/run_custom_call.h"

#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/guard/guarded_call.h"
#include "shardcall/kernels/ffi/guard/running_call.h"
#include "shardcall/kernels/ffi/packed_buffers.h"
#include "shardcall/kernels/ffi/staged_call.h"
#include "shardcall/partitioner/runtime/strided.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace {

Dims Inverse(const Dims& perm) {
  Dims inverse(perm.size());
  for (size_t k = 0; k < perm.size(); ++k) inverse[perm[k]] = static_cast<int64_t>(k);
  return inverse;
}

BufferView View(const Tensor& t, const Dims& dims, void* data) {
  return {t.type(), std::vector<int64_t>(dims.begin(), dims.end()), data};
}

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
    return CallConverted(
        /*packed=*/false, {}, operands, results,
        [&](const HandlerContext&, absl::Span<const BufferView> in,
            absl::Span<const BufferView> out) { return Run(computation, in, out); });
  }

 private:
  absl::Status Run(const CustomCallData::Computation& computation,
                   absl::Span<const BufferView> operands,
                   absl::Span<const BufferView> results) const {
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
          absl::StrCat(
              "its handler calls a computation with another ", what, " ", k, ": expected ",
              k < expected.size() ? TypeAndDims(expected[k].type, expected[k].dims) : "none",
              ", found ", k < given.size() ? given[k].ToString() : "none"),
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

// What the handler of one call reads and writes.
struct CallBuffers {
  std::vector<Tensor> in, out;
  std::vector<BufferView> operands, results;
};

// Takes the operands out of their slots, and makes the results.
CallBuffers TakeBuffers(StepRun& run, const CustomCallData& data) {
  CallBuffers b;
  std::vector<Dims> in_dims;
  for (int k = 0; k < run.num_inputs(); ++k) {
    in_dims.push_back(run.in(k).dims());
    b.in.push_back(run.Take(k));
    if (!data.operand_order[k].empty()) b.in[k] = Transpose(b.in[k], data.operand_order[k]);
  }
  for (int r = 0; r < run.num_results(); ++r) {
    const LeafShape& shape = run.shape(r);
    if (data.alias[r] >= 0) {
      Tensor& source = b.in[data.alias[r]];
      source.MutableData();  // the only owner now, or a copy
      b.out.push_back(std::move(source));
      source = Tensor();
    } else {
      Dims dims = shape.dims;
      for (size_t k = 0; k < data.result_order[r].size(); ++k) {
        dims[k] = shape.dims[data.result_order[r][k]];
      }
      b.out.push_back(Tensor(shape.type, dims));
    }
    b.results.push_back(View(b.out[r], shape.dims, b.out[r].MutableData()));
  }
  for (size_t k = 0; k < b.in.size(); ++k) {
    b.operands.push_back(View(b.in[k], in_dims[k], const_cast<char*>(b.in[k].data())));
  }
  for (size_t r = 0; r < data.alias.size(); ++r) {  // operand and result share one buffer
    if (data.alias[r] >= 0) {
      b.operands[data.alias[r]].type = b.out[r].type();
      b.operands[data.alias[r]].data = b.results[r].data;
    }
  }
  return b;
}

// All of a call's context but its computations. `buffers` must outlive the call.
HandlerContext ContextOf(StepRun& run, const CustomCallData& data, const CallBuffers& buffers) {
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
  context.keep_buffers = [&buffers]() -> std::shared_ptr<const void> {
    return std::make_shared<std::pair<std::vector<Tensor>, std::vector<Tensor>>>(buffers.in,
                                                                                 buffers.out);
  };
  return context;
}

// Calls the handler. What it throws is E317, and so is a failure without a code of its own.
absl::Status CallHandler(StepRun& run, const HandlerEntry& entry, const CustomCallData& data,
                         const CallBuffers& buffers) {
  HandlerContext context = ContextOf(run, data, buffers);
  const Computations computations(run, data.computations);
  if (computations.size() > 0) context.computations = &computations;
  CallWatch* const watch = CallWatch::OfThisThread();
  const HostHandler* host = &entry.host;
  if (watch != nullptr) {
    host = &watch->Keep(entry);
    context.user_data = watch->Keep(*context.user_data);
  }
  absl::Status status;
  try {
    const RunningCall running("the handler", data.target, run.step().name, context.device_ordinal);
    const WatchedCall watched(watch, data.target, run.step().name);
    // Converted here, so that guards stand around what the handler's code is given.
    status = CallConverted(entry.packed, context, buffers.operands, buffers.results,
                           [&](const HandlerContext& own, absl::Span<const BufferView> in,
                               absl::Span<const BufferView> out) {
                             if (entry.platform != "Host")
                               return OnDevice(run, entry, own, in, out);
                             return GuardsHandlers() ? CallGuarded(*host, own, in, out)
                                                     : (*host)(own, in, out);
                           });
  } catch (const std::exception& e) {
    return run.Error("E317", absl::StrCat("the handler of \"", data.target, "\" threw: ", e.what()),
                     absl::StatusCode::kInternal, kThrewFix);
  } catch (...) {
    return run.Error("E317", absl::StrCat("the handler of \"", data.target, "\" threw"),
                     absl::StatusCode::kInternal, kThrewFix);
  }
  // If the deadline has passed, the run has ended, and nothing may be written to its results.
  SHARDCALL_RETURN_IF_ERROR(GoesOn(run.device()));
  if (status.ok() || !DiagnosticCode(status).empty()) return status;
  return run.Error(
      "E317", absl::StrCat("the handler of \"", data.target, "\" ", FailedText(status.message())),
      status.code(), kFailedFix);
}

// Gives the step its results.
void SetResults(StepRun& run, const CustomCallData& data, std::vector<Tensor> out) {
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
}

}  // namespace

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
  CallBuffers buffers = TakeBuffers(run, data);
  SHARDCALL_RETURN_IF_ERROR(CallHandler(run, *entry, data, buffers));
  SetResults(run, data, std::move(buffers.out));
  return absl::OkStatus();
}

}  // namespace internal
}  // namespace shardcall
