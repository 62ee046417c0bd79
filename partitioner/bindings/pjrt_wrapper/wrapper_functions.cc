// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_functions.h"

#include <cstring>
#include <exception>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

using abi::Error;
using abi::Function;
using abi::Padded;

// PJRT_Error_ForEachPayload, since version 0.112.
constexpr int kErrorForEachPayload = 132;

Wrapper& W() { return Wrapper::OfProcess(); }

template <typename Args>
Error* CallReal(int place, Args* args) {
  const void* const real = W().Real(place);
  return real == nullptr ? nullptr : reinterpret_cast<Error* (*)(Args*)>(real)(args);
}
template <typename Args>
Error* CallReal(Function function, Args* args) {
  return CallReal(static_cast<int>(function), args);
}

// Appends the wrapper's own version to the text of an answer.
template <typename Args>
Error* AppendVersion(int place, Args* args) {
  if (Error* const error = CallReal(place, args)) return error;
  const std::string& text = W().VersionText(absl::string_view(args->text, args->size));
  args->text = text.data();
  args->size = text.size();
  return nullptr;
}

void ErrorDestroy(abi::ErrorArgs* args) {
  if (W().errors().Destroy(args->error)) return;
  CallReal(Function::kErrorDestroy, args);
}

void ErrorMessage(abi::ErrorMessageArgs* args) {
  const absl::Status* const own = W().errors().Find(args->error);
  if (own == nullptr) {
    CallReal(Function::kErrorMessage, args);
    return;
  }
  args->message = own->message().data();
  args->message_size = own->message().size();
}

Error* ErrorGetCode(abi::ErrorCodeArgs* args) {
  const absl::Status* const own = W().errors().Find(args->error);
  if (own == nullptr) return CallReal(Function::kErrorGetCode, args);
  args->code = static_cast<int32_t>(own->code());
  return nullptr;
}

Error* ErrorForEachPayload(abi::ErrorArgs* args) {
  if (W().errors().Find(args->error) != nullptr) return nullptr;  // ours have none
  return CallReal(kErrorForEachPayload, args);
}

Error* ClientPlatformVersion(abi::ClientTextArgs* args) {
  return AppendVersion(static_cast<int>(Function::kClientPlatformVersion), args);
}
Error* TopologyPlatformVersion(abi::TopologyTextArgs* args) {
  return AppendVersion(static_cast<int>(Function::kTopologyPlatformVersion), args);
}

// Compiles the replacement program. The framework's arguments are restored when this returns. No
// exception leaves it.
template <typename Args>
Error* Compile(Function function, Args* args, const std::string& platform, abi::Client* client,
               const abi::Topology* topology) {
  absl::StatusOr<absl::variant<PassedThrough, Replacement>> taken = PassedThrough{};
  const abi::Program* const given = args->program;
  try {
    taken = W().Replace({.format = {given->format, given->format_size},
                         .code = {given->code, given->code_size},
                         .options = {args->options, args->options_size}},
                        platform, client, topology);
  } catch (const std::exception& e) {
    taken = ToStatus({.code = "E342",
                      .message = absl::StrCat("partitioning threw: ", e.what()),
                      .fix = "Give the process more memory, or report it with the program"},
                     absl::StatusCode::kResourceExhausted);
  }
  if (!taken.ok()) return W().errors().Make(taken.status());
  const absl::Status still = W().clients().Check(client);
  if (!still.ok()) return W().errors().Make(still);
  const auto* const replacement = absl::get_if<Replacement>(&*taken);
  if (replacement == nullptr) return CallReal(function, args);
  const Padded<abi::Program> program = ProgramOf(kHloFormat, replacement->code);
  const absl::Cleanup restore = [args, given, options = args->options, size = args->options_size] {
    args->program = given;
    args->options = options;
    args->options_size = size;
  };
  args->program = &program.value;
  args->options = replacement->options.data();
  args->options_size = replacement->options.size();
  return CallReal(function, args);
}

Error* CompileForClient(abi::CompileArgs* args) {
  Padded<abi::ClientTextArgs> name;
  name.value.client = args->client;
  if (Error* const error = CallReal(Function::kClientPlatformName, &name.value)) return error;
  if (Error* const error =
          Compile(Function::kClientCompile, args, std::string(name.value.text, name.value.size),
                  args->client, nullptr)) {
    return error;
  }
  absl::Status still = W().clients().Check(args->client);
  if (still.ok()) return nullptr;
  W().plugin().Destroy(std::exchange(args->executable, nullptr));
  return W().errors().Make(std::move(still));
}

Error* ClientCompile(abi::CompileArgs* args) {
  abi::Client* const client = args->client;
  W().clients().Enter(client);
  Error* const error = CompileForClient(args);
  if (W().clients().Leave(client)) {
    Padded<abi::ClientArgs> destroyed;
    destroyed.value.client = client;
    // There is no caller to report an error to.
    W().plugin().Call(Function::kClientDestroy, &destroyed).IgnoreError();
  }
  return error;
}

Error* ClientDestroy(abi::ClientArgs* args) {
  if (!W().clients().Destroy(args->client)) return nullptr;
  return CallReal(Function::kClientDestroy, args);
}

Error* CompileAhead(abi::CompileAheadArgs* args) {
  Padded<abi::TopologyTextArgs> name;
  name.value.topology = args->topology;
  if (Error* const error = CallReal(Function::kTopologyPlatformName, &name.value)) return error;
  return Compile(Function::kCompile, args, std::string(name.value.text, name.value.size), nullptr,
                 args->topology);
}

// A framework older than the plugin passes a shorter options struct, which plugins reject; unknown
// fields are set to zero.
Error* Execute(abi::ExecuteArgs* args) {
  abi::ExecuteOptions* const given = args->options;
  if (given == nullptr || given->header.struct_size >= sizeof(abi::ExecuteOptions)) {
    return CallReal(Function::kLoadedExecutableExecute, args);
  }
  Padded<abi::ExecuteOptions> options;
  const size_t size = options.value.header.struct_size;
  std::memcpy(static_cast<void*>(&options.value), given, given->header.struct_size);
  options.value.header.struct_size = size;
  args->options = &options.value;
  const absl::Cleanup restore = [args, given] { args->options = given; };
  return CallReal(Function::kLoadedExecutableExecute, args);
}

Error* Refuse(void*) { return W().errors().Make(W().why_refused()); }

template <typename Function>
const void* Address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

}  // namespace

absl::Span<const Replaced> ReplacedFunctions() {
  static const auto* const kReplaced = new std::vector<Replaced>{
      {static_cast<int>(Function::kErrorDestroy), Address(ErrorDestroy), true},
      {static_cast<int>(Function::kErrorMessage), Address(ErrorMessage), true},
      {static_cast<int>(Function::kErrorGetCode), Address(ErrorGetCode), true},
      {kErrorForEachPayload, Address(ErrorForEachPayload), true},
      {static_cast<int>(Function::kClientPlatformVersion), Address(ClientPlatformVersion), false},
      {static_cast<int>(Function::kTopologyPlatformVersion), Address(TopologyPlatformVersion),
       false},
      {static_cast<int>(Function::kClientCompile), Address(ClientCompile), false},
      {static_cast<int>(Function::kClientDestroy), Address(ClientDestroy), false},
      {static_cast<int>(Function::kCompile), Address(CompileAhead), false},
      {static_cast<int>(Function::kLoadedExecutableExecute), Address(Execute), false},
  };
  return *kReplaced;
}

const void* RefusingFunction() { return Address(Refuse); }

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall
