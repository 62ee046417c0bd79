// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin made of another one: all of its functions and extensions, and in place of
// its partitioner ours. The framework calls the functions of api(); what is not about
// compiling, errors or versions goes straight to the wrapped plugin.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_plugin.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/compiling_clients.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/own_errors.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/take_over.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/partitioner/bindings/xla/pjrt_partitioner.h"
#include "shardcall/partitioner/bindings/xla/registration.h"

namespace shardcall::pjrt {

class Wrapper {
 public:
  // The wrapper of this process; made when it is first asked for, and never destroyed.
  static Wrapper& OfProcess();
  // Its api(); null where the library to wrap turns out to be this one.
  static const void* ApiOfProcess();

  // A PJRT_Api*. Where there is nothing to wrap, one whose functions say why.
  const void* api() const { return api_; }
  OwnErrors& errors() { return errors_; }
  CompilingClients& clients() { return clients_; }
  const Plugin& plugin() const { return *plugin_; }
  const WrapperSettings& settings() const { return settings_; }
  const std::string& rules_version() const { return rules_version_; }
  // Why there is nothing to wrap; OK where there is.
  const absl::Status& why_refused() const { return opened_; }
  // Of the wrapped plugin's table; null where it is too old to have it.
  const void* Real(int place) const;

  // What is compiled for these devices in place of `program`. A program that goes on as it
  // is is told once for each reason, on standard error (W205).
  absl::StatusOr<absl::variant<PassedThrough, Replacement>> Replace(const FrameworkProgram& program,
                                                                    const std::string& platform,
                                                                    abi::Client* client,
                                                                    const abi::Topology* topology);

  // The framework has a handler of its own for the target.
  void NoteHandler(std::string target);
  // The framework's partitioner of a target, or that calls of it say their batch dims.
  // Targets that are registered already, by plugins or shipped, keep what they have.
  absl::Status AddPartitioner(std::string target,
                              std::shared_ptr<Shardcall_PjrtCallbacks> callbacks);
  absl::Status AddBatchPartitionable(std::string target);
  // `text` with rules_version(), at an address that stays.
  const std::string& VersionText(absl::string_view text);

 private:
  Wrapper();
  // The registry changes for programs that are compiled from then on.
  absl::Status Change(const std::string& target,
                      const std::function<absl::Status(TargetRegistry&)>& change);
  absl::Status Open();
  void FillTable(const void* real);
  void RefuseEverything();

  WrapperSettings settings_;
  absl::Status opened_;
  OwnErrors errors_;
  CompilingClients clients_;
  std::shared_ptr<const Plugin> plugin_;
  std::string rules_version_;
  std::vector<char> table_;  // what api_ points to
  const void* api_ = nullptr;
  std::mutex mutex_;
  std::shared_ptr<const Registry> registry_;
  std::shared_ptr<const Registry> first_registry_;  // to which lowerings refer
  absl::flat_hash_set<std::string> framework_handlers_;
  std::set<std::string> told_;  // reasons of W205
  std::set<std::string> version_texts_;
};

}  // namespace shardcall::pjrt

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_H_
