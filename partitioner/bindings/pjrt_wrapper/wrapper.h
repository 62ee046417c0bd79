// SPDX-License-Identifier: Apache-2.0
// A PJRT plugin that wraps another one: it has all of its functions and extensions, with
// shardcall's partitioner instead of XLA's. The framework calls the functions of api(); those that
// do not concern compiling, errors or versions are the wrapped plugin's own.
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

namespace shardcall {
inline namespace internal {
namespace pjrt {

class Wrapper {
 public:
  // The wrapper of this process, made on first use and never destroyed.
  static Wrapper& OfProcess();
  // Its api(); null if the library to wrap is this one.
  static const void* ApiOfProcess();

  // A PJRT_Api*. If there is nothing to wrap, its functions return the reason.
  const void* api() const { return api_; }
  OwnErrors& errors() { return errors_; }
  CompilingClients& clients() { return clients_; }
  const Plugin& plugin() const { return *plugin_; }
  const WrapperSettings& settings() const { return settings_; }
  const std::string& rules_version() const { return rules_version_; }
  // Why there is nothing to wrap; OK if there is.
  const absl::Status& why_refused() const { return opened_; }
  // A function of the wrapped plugin's table; null if the plugin is too old to have it.
  const void* Real(int place) const;

  // The program to compile for these devices instead of `program`. Each reason why a program is
  // passed on unchanged is printed once on standard error (W205).
  absl::StatusOr<absl::variant<PassedThrough, Replacement>> Replace(const FrameworkProgram& program,
                                                                    const std::string& platform,
                                                                    abi::Client* client,
                                                                    const abi::Topology* topology);

  // Records that the framework has its own handler for the target.
  void NoteHandler(std::string target);
  // Adds the framework's partitioner of a target, or a target whose calls give their batch dims.
  // Targets that are registered already, by plugins or as shipped, keep their rules.
  absl::Status AddPartitioner(std::string target,
                              std::shared_ptr<Shardcall_PjrtCallbacks> callbacks);
  absl::Status AddBatchPartitionable(std::string target);
  // `text` with rules_version(), at an address that stays valid.
  const std::string& VersionText(absl::string_view text);

 private:
  Wrapper();
  // Changes the registry for programs that are compiled from then on.
  absl::Status Change(const std::string& target,
                      const std::function<absl::Status(TargetRegistry&)>& change);
  absl::Status Open();
  // W209 for the first report that could not be written.
  void TellUnwritten(const absl::Status& report);
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
  std::shared_ptr<const Registry> first_registry_;  // lowerings refer to it
  absl::flat_hash_set<std::string> framework_handlers_;
  std::set<std::string> told_;  // reasons of W205 that were printed
  bool told_of_report_ = false;
  std::set<std::string> version_texts_;
};

}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_PJRT_WRAPPER_WRAPPER_H_
