// SPDX-License-Identifier: Apache-2.0
#include "shardcall/kernels/ffi/typed_handler.h"

#include <array>
#include <exception>
#include <new>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "shardcall/kernels/ffi/guard/crash_guard.h"
#include "shardcall/kernels/ffi/guard/fault.h"
#include "shardcall/kernels/ffi/packed_buffers.h"
#include "shardcall/kernels/ffi/xla/ffi_attributes.h"
#include "shardcall/kernels/ffi/xla/ffi_context.h"
#include "shardcall/kernels/ffi/xla/ffi_error.h"
#include "shardcall/kernels/ffi/xla/ffi_future.h"
#include "shardcall/kernels/ffi/xla/ffi_table.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

using absl::StatusCode;

struct Stages {
  std::array<abi::Handler*, 4> function = {};  // by abi::Stage
  std::array<int, 4> minor = {};
  std::shared_ptr<const void> library;
};

// State that is kept for each call instruction of a program.
struct Site {
  Site(std::shared_ptr<const Stages> s, const AttributeMapView& map)
      : stages(std::move(s)), attributes(map) {}
  const std::shared_ptr<const Stages> stages;  // before the state, whose deleters are its code
  const EncodedAttributes attributes;
  FfiState state;
};

// One call: everything that a handler, or work that continues after it, may access.
class Call {
 public:
  Call(std::shared_ptr<Site> site, const HandlerContext& context,
       absl::Span<const BufferView> operands, absl::Span<const BufferView> results)
      : site_(std::move(site)) {
    ctx_.device_ordinal = context.device_ordinal;
    ctx_.run_id = context.run_id;
    ctx_.user_data = context.user_data;
    ctx_.call = &context;
    ctx_.instantiated = &site_->state;
    ctx_.task_threw = std::make_shared<std::atomic<bool>>(false);
    size_t ranks = 0;
    for (const BufferView& b : operands) ranks += b.dims.size();
    for (const BufferView& b : results) ranks += b.dims.size();
    dims_.reserve(ranks);
    buffers_.reserve(operands.size() + results.size());
    for (const BufferView& b : operands) Add(b);
    for (const BufferView& b : results) Add(b);
    for (abi::Buffer& b : buffers_) pointers_.push_back(&b);
    arg_types_.assign(operands.size(), abi::ArgType::kBuffer);
    ret_types_.assign(results.size(), abi::RetType::kBuffer);
  }

  // The instantiate stage gets attributes only.
  abi::CallFrame Frame(abi::Stage stage) {
    abi::CallFrame frame = {};
    frame.struct_size = abi::kCallFrameSize;
    ctx_.stage = stage;
    ctx_.minor = site_->stages->minor[static_cast<int>(stage)];
    frame.api = FfiTable(ctx_.minor);
    frame.ctx = &ctx_;
    frame.stage = stage;
    frame.args = {abi::kArgsSize, nullptr, 0, nullptr, nullptr};
    frame.rets = {abi::kRetsSize, nullptr, 0, nullptr, nullptr};
    if (stage != abi::Stage::kInstantiate) {
      const auto args = static_cast<int64_t>(arg_types_.size());
      frame.args = {abi::kArgsSize, nullptr, args, arg_types_.data(), pointers_.data()};
      frame.rets = {abi::kRetsSize, nullptr, static_cast<int64_t>(ret_types_.size()),
                    ret_types_.data(), pointers_.data() + args};
    }
    frame.attrs = site_->attributes.root();
    return frame;
  }

  // From here on handlers get the device's stream and memory.
  void UseAccelerator(std::shared_ptr<HandlerDevice> device) {
    ctx_.accelerator = std::move(device);
  }

  // After this, work that is left behind can no longer use the context.
  void End() { ctx_.EndCall(); }
  // The status of calls through the device extension.
  absl::Status device_error() {
    return ctx_.device == nullptr ? absl::OkStatus() : ctx_.device->first_error();
  }
  bool task_threw() const { return *ctx_.task_threw; }

 private:
  void Add(const BufferView& view) {
    const int64_t* dims = dims_.data() + dims_.size();  // reserved, so it does not reallocate
    dims_.insert(dims_.end(), view.dims.begin(), view.dims.end());
    buffers_.push_back({abi::kBufferSize, nullptr, static_cast<abi::DataType>(view.type), view.data,
                        static_cast<int64_t>(view.dims.size()), dims});
  }

  const std::shared_ptr<Site> site_;
  absl::InlinedVector<int64_t, 32> dims_;
  absl::InlinedVector<abi::Buffer, 8> buffers_;
  absl::InlinedVector<void*, 8> pointers_;  // operands, then results
  absl::InlinedVector<abi::ArgType, 8> arg_types_;
  absl::InlinedVector<abi::RetType, 8> ret_types_;
  abi::ExecutionContext ctx_;
};

std::string InStage(abi::Stage stage) {
  return stage == abi::Stage::kExecute ? "" : absl::StrCat(" in stage ", FfiStageName(stage));
}

absl::Status RunStage(const Stages& stages, abi::Stage stage, const std::shared_ptr<Call>& call,
                      const HandlerContext& context) {
  abi::CallFrame frame = call->Frame(stage);
  const std::string who = absl::StrCat("the handler of \"", context.target, "\"");
  const abi::Error* error = nullptr;
  try {
    error = stages.function[static_cast<int>(stage)](&frame);
  } catch (const std::exception& e) {
    return HandlerFault(context, "E317",
                        absl::StrCat(who, " threw", InStage(stage), ": ", e.what()),
                        StatusCode::kInternal, kThrewFix);
  } catch (...) {
    return HandlerFault(context, "E317", absl::StrCat(who, " threw", InStage(stage)),
                        StatusCode::kInternal, kThrewFix);
  }
  if (error == nullptr && frame.future == nullptr && !call->task_threw()) return absl::OkStatus();

  // If the future is late, the call and its buffers are kept alive.
  absl::Status later;
  if (frame.future != nullptr) {
    std::shared_ptr<const void> keep = call;
    if (context.keep_buffers) {
      keep = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
          call, context.keep_buffers());
    }
    const absl::Duration wait = error == nullptr ? context.deadline : absl::ZeroDuration();
    const FutureEnd end = AwaitFfiFuture(frame.future, wait, keep, &later);
    if (end == FutureEnd::kNotAFuture) {
      DestroyFfiError(error);
      return HandlerFault(
          context, "E318",
          absl::StrCat(who, " returned a future that is none of this runtime", InStage(stage)),
          StatusCode::kInternal, "Return the future that Future_Create gave");
    }
    if (end == FutureEnd::kDeadline && error == nullptr) {
      return HandlerFault(context, "E319",
                          absl::StrCat(who, " has not completed its future within ",
                                       absl::FormatDuration(context.deadline), InStage(stage)),
                          StatusCode::kDeadlineExceeded,
                          "Complete the promise on every path, or give a longer deadline (--wait)");
    }
  }
  absl::Status status = error == nullptr ? later : TakeFfiError(error);
  if (absl::IsDataLoss(status) && status.message().empty()) {
    return HandlerFault(
        context, "E318",
        absl::StrCat(who, " returned a pointer that is no error of this runtime", InStage(stage)),
        StatusCode::kInternal,
        "Return null, or what Error_Create gave, and that once; is the symbol a handler "
        "of the typed FFI?");
  }
  if (!status.ok()) {
    return HandlerFault(context, "E317",
                        absl::StrCat(who, " failed", InStage(stage), ": ", status.message()),
                        status.code(), kFailedFix);
  }
  if (call->task_threw()) {
    return HandlerFault(context, "E317",
                        absl::StrCat("a task on the thread pool of ", who, " threw"),
                        StatusCode::kInternal, "Catch it in the task");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Site>> MakeSite(const std::shared_ptr<const Stages>& stages,
                                               const HandlerContext& context) {
  auto site = std::make_shared<Site>(stages, context.attribute_map());
  if (stages->function[static_cast<int>(abi::Stage::kInstantiate)] != nullptr) {
    const auto call = std::make_shared<Call>(site, context, absl::Span<const BufferView>(),
                                             absl::Span<const BufferView>());
    call->End();  // there is no device yet, since the state is shared by all
    SHARDCALL_RETURN_IF_ERROR(RunStage(*stages, abi::Stage::kInstantiate, call, context));
  }
  return site;
}

absl::Status RunTyped(const std::shared_ptr<const Stages>& stages, const HandlerContext& context,
                      absl::Span<const BufferView> operands, absl::Span<const BufferView> results) {
  if (context.api_version != 4) {
    return HandlerFault(
        context, "E140",
        absl::StrCat("target \"", context.target,
                     "\" is registered with API version 4 "
                     "(typed FFI), and this call has API version ",
                     context.api_version),
        StatusCode::kInvalidArgument,
        "Give the call api_version=API_VERSION_TYPED_FFI, or register the target with "
        "the version of the call");
  }
  std::shared_ptr<Site> site;
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<void>> {
    return MakeSite(stages, context);
  };
  if (context.call_site != nullptr) {
    SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<void> kept,
                               context.call_site->GetOrMake(stages.get(), make));
    site = std::static_pointer_cast<Site>(std::move(kept));
  } else {
    SHARDCALL_ASSIGN_OR_RETURN(site, MakeSite(stages, context));
  }
  const auto call = std::make_shared<Call>(std::move(site), context, operands, results);
  call->UseAccelerator(context.device);
  for (abi::Stage stage : {abi::Stage::kPrepare, abi::Stage::kInitialize, abi::Stage::kExecute}) {
    if (stages->function[static_cast<int>(stage)] == nullptr) continue;
    const absl::Status status = RunStage(*stages, stage, call, context);
    if (status.ok()) continue;
    call->End();
    // The error of a failed collective is more precise than that of the handler.
    const absl::Status device = call->device_error();
    if (device.ok()) return status;
    if (!DiagnosticCode(device).empty()) return device;
    return HandlerFault(
        context, "E317",
        absl::StrCat("a function of the device extension failed in the handler of \"",
                     context.target, "\": ", device.message()),
        device.code(), kFailedFix);
  }
  call->End();
  return absl::OkStatus();
}

absl::Status Unusable(absl::string_view target, abi::Stage stage, std::string message,
                      std::string expected = "", std::string found = "", std::string fix = "") {
  return ToStatus({.code = "E144",
                   .message = absl::StrCat("the handler of \"", target, "\" for stage ",
                                           FfiStageName(stage), " ", message),
                   .expected = std::move(expected),
                   .found = std::move(found),
                   .fix = std::move(fix)},
                  StatusCode::kFailedPrecondition);
}

}  // namespace

absl::StatusOr<FfiMetadata> QueryFfiMetadata(abi::Handler* handler, absl::string_view target,
                                             abi::Stage stage, absl::Duration deadline) {
  // The call frame is last, so that a handler that writes to it as results hits the fence.
  struct alignas(16) Question {
    abi::Metadata metadata = {};
    char more[208] = {};  // fields of later versions
    abi::MetadataExtension extension;
    abi::CallFrame frame = {};
    char more_frame[64] = {};
  };
  // Kept alive if the handler never answers.
  struct Asked {
    FencedMemory memory{sizeof(Question)};
    const abi::Error* error = nullptr;
    bool crashed = false;
  };
  const auto asked = std::make_shared<Asked>();
  if (asked->memory.data() == nullptr) {
    return absl::ResourceExhaustedError("no memory for a page");
  }
  Question& question = *new (asked->memory.data()) Question;
  question.metadata.struct_size = abi::kMetadataSize;
  question.metadata.api_version.struct_size = abi::kApiVersionSize;
  question.extension = {{abi::kMetadataExtensionSize, abi::ExtensionType::kMetadata, nullptr},
                        &question.metadata};
  question.frame.struct_size = abi::kCallFrameSize;
  question.frame.extension_start = &question.extension.base;
  question.frame.api = FfiTable(abi::kNewestMinorVersion);
  try {
    SHARDCALL_RETURN_IF_ERROR(CallWithin(
        deadline,
        absl::StrCat("the handler of \"", target, "\" for stage ", FfiStageName(stage),
                     ", asked for its version,"),
        [asked, handler, &question] {
          asked->crashed = !CallCatchingSignals([&] { asked->error = handler(&question.frame); });
        }));
    if (asked->crashed) {
      return Unusable(target, stage, "crashed when asked for its version", "", "",
                      "Is the symbol a handler of the typed FFI? An untyped function has "
                      "api_version 1 to 3");
    }
  } catch (const std::exception& e) {
    return Unusable(target, stage, absl::StrCat("threw when asked for its version: ", e.what()), "",
                    "", kThrewFix);
  } catch (...) {
    return Unusable(target, stage, "threw when asked for its version", "", "", kThrewFix);
  }
  if (asked->error != nullptr) {
    const absl::Status refused = TakeFfiError(asked->error);
    const bool foreign = absl::IsDataLoss(refused) && refused.message().empty();
    return Unusable(target, stage,
                    foreign ? "returned a pointer that is no error when asked for its version"
                            : absl::StrCat("cannot be used: ", refused.message()),
                    "", "",
                    foreign ? "Is the symbol a handler of the typed FFI?"
                            : "Register the type of its state first (\"types\" in a manifest; "
                              "jax.ffi.register_ffi_type in Python, after shardcall is imported)");
  }
  const abi::ApiVersion& version = question.metadata.api_version;
  if (version.major != abi::kMajorVersion || version.minor < abi::kOldestMinorVersion ||
      version.minor > abi::kNewestMinorVersion) {
    const bool silent = version.major == 0 && version.minor == 0;
    return Unusable(
        target, stage,
        silent ? "does not say its version" : "is of another version of the typed FFI",
        absl::StrCat("0.", abi::kOldestMinorVersion, " to 0.", abi::kNewestMinorVersion),
        silent ? "no answer" : absl::StrCat(version.major, ".", version.minor),
        silent ? "Is the symbol a handler of the typed FFI?"
               : "Build it against headers of one of these versions");
  }
  return FfiMetadata{version.minor, question.metadata.traits, question.metadata.state_type.id};
}

std::vector<std::string> FfiTraitNames(abi::Traits traits) {
  if (traits & abi::kCommandBufferCompatible) return {"COMMAND_BUFFER_COMPATIBLE"};
  return {};
}

absl::StatusOr<HandlerEntry> MakeTypedEntry(absl::string_view target, absl::string_view platform,
                                            const abi::HandlerBundle& bundle,
                                            absl::string_view source,
                                            std::shared_ptr<const void> library) {
  auto stages = std::make_shared<Stages>();
  stages->library = std::move(library);
  stages->function = {bundle.instantiate, bundle.prepare, bundle.initialize, bundle.execute};
  if (bundle.execute == nullptr) {
    return Unusable(target, abi::Stage::kExecute, "is missing", "", "",
                    "Give a function for stage execute; the others are optional");
  }
  HandlerEntry entry;
  entry.target = std::string(target);
  entry.platform = std::string(platform);
  entry.api_version = 4;
  entry.own_version_only = true;
  entry.source = std::string(source);
  for (int s = 0; s < 4; ++s) {
    if (stages->function[s] == nullptr) continue;
    SHARDCALL_ASSIGN_OR_RETURN(
        const FfiMetadata metadata,
        QueryFfiMetadata(stages->function[s], target, static_cast<abi::Stage>(s)));
    stages->minor[s] = metadata.minor;
    entry.functions.resize(4);
    entry.functions[s] = reinterpret_cast<const void*>(stages->function[s]);
    if (static_cast<abi::Stage>(s) != abi::Stage::kExecute) continue;
    entry.traits = FfiTraitNames(metadata.traits);
  }
  entry.packed = true;
  entry.host = [stages = std::shared_ptr<const Stages>(std::move(stages))](
                   const HandlerContext& context, absl::Span<const BufferView> operands,
                   absl::Span<const BufferView> results) {
    return CallConverted(
        true, context, operands, results,
        [&](const HandlerContext& own, absl::Span<const BufferView> in,
            absl::Span<const BufferView> out) { return RunTyped(stages, own, in, out); });
  };
  return entry;
}

}  // namespace shardcall
