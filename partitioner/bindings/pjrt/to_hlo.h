// SPDX-License-Identifier: Apache-2.0
// Converts StableHLO to HLO. A PJRT plugin compiles MLIR, so it can convert it, and it reads every
// version that its frameworks write.
//
//   SHARDCALL_ASSIGN_OR_RETURN(auto converter, pjrt::Converter::Open("xla_cpu_pjrt.so"));
//   SHARDCALL_ASSIGN_OR_RETURN(std::string proto, converter->ToHlo(stablehlo));
//   SHARDCALL_ASSIGN_OR_RETURN(Module module, ReadModuleProto(proto, context, "x.mlir"));
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_TO_HLO_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_TO_HLO_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {

class Converter {
 public:
  // With its own client or topology. Neither devices nor a GPU are needed. E333, E334, E335.
  static absl::StatusOr<std::unique_ptr<const Converter>> Open(const std::string& plugin);
  // With objects of a framework: a client, or a topology if `client` is null. They and the plugin
  // must outlive the converter.
  Converter(const Plugin* plugin, std::string platform, abi::Client* client,
            const abi::Topology* topology)
      : plugin_(plugin), platform_(std::move(platform)), client_(client), topology_(topology) {}
  ~Converter();
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  // Converts `program`, which is MLIR, to an HloModuleProto; `options` is the serialised
  // CompileOptionsProto that it is to be compiled with. E334 with the plugin's message if it
  // refuses the program, E340 if it accepts it without giving a module. Thread-safe; leaves no
  // files.
  absl::StatusOr<std::string> ToHlo(absl::string_view program, absl::string_view options) const;
  // For programs without options.
  absl::StatusOr<std::string> ToHlo(absl::string_view program) const;

 private:
  explicit Converter(std::shared_ptr<const Plugin> plugin)
      : owned_plugin_(std::move(plugin)), plugin_(owned_plugin_.get()) {}
  absl::StatusOr<std::string> ByDump(absl::string_view program, absl::string_view options) const;
  absl::StatusOr<std::string> ByEarlyExit(absl::string_view program,
                                          absl::string_view options) const;

  std::shared_ptr<const Plugin> owned_plugin_;
  std::shared_ptr<const Client> owned_client_;
  abi::Topology* owned_topology_ = nullptr;
  const Plugin* plugin_;
  std::string platform_;
  abi::Client* client_ = nullptr;
  const abi::Topology* topology_ = nullptr;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_TO_HLO_H_
