// SPDX-License-Identifier: Apache-2.0
// The reader of manifest.h, shared by its source files: manifest.cc (the file, its
// keys, types and lowerings), manifest_targets.cc and manifest_handlers.cc.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_READER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_READER_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/kernels/ffi/load/library.h"
#include "shardcall/partitioner/bindings/manifest/manifest.h"
#include "shardcall/partitioner/bindings/manifest/manifest_facts.h"

namespace shardcall {
inline namespace internal {
namespace manifest {

using Json = nlohmann::ordered_json;

// E143 with that fix if the file cannot be read; E064 if it is too large.
absl::StatusOr<std::string> ReadFile(const std::string& path, const char* fix, int64_t max_input);

// Reads one manifest, once.
class ManifestReader {
 public:
  ManifestReader(absl::string_view file_name, TargetRegistry* targets, HandlerRegistry* handlers,
                 LoweringRegistry* lowerings, absl::Duration deadline, int64_t max_input)
      : file_(file_name),
        targets_(*targets),
        handlers_(handlers),
        lowerings_(lowerings),
        deadline_(deadline),
        max_input_(max_input) {}

  absl::Status Read(const Json& j);

 private:
  // Adds the place in the manifest to errors of registries and libraries.
  absl::Status Located(const absl::Status& status, absl::string_view where) const;
  absl::Status Bad(absl::string_view where, std::string expected, std::string found) const;
  ManifestError Error() const;
  static std::string TypeOf(const Json& j) { return j.type_name(); }
  absl::StatusOr<std::string> String(const Json& j, const char* key, absl::string_view where,
                                     const char* fallback = nullptr) const;
  absl::Status Strings(const Json& j, const char* key, absl::string_view where,
                       std::vector<std::string>* out) const;
  absl::Status CheckKeys(const Json& j, absl::string_view where,
                         const std::set<std::string>& known) const;
  // A path relative to the manifest.
  std::string Beside(const std::string& path) const;
  absl::Status ReadTypes(const Json& j);
  absl::Status ReadLowerings(const Json& j);

  // manifest_targets.cc
  absl::Status ReadTarget(const Json& j, const std::string& where);
  absl::StatusOr<std::vector<RuleAlternative>> ReadRules(const Json& list,
                                                         const std::string& where) const;
  absl::StatusOr<RuleAlternative> ReadRule(const Json& j, const std::string& where) const;
  absl::Status ReadReduction(const Json& j, const std::string& where, RuleText* text) const;
  // Makes the rule from a program in HLO text.
  absl::Status ReadReference(const Json& j, const std::string& where, const std::string& name,
                             const std::string& source) const;
  absl::Status ReadFacts(const Json& j, const std::string& where);

  // manifest_handlers.cc
  absl::Status OpenLibrary(const Json& j);
  // A variable or function of the library; null if `key` is not given.
  absl::StatusOr<void*> Symbol(const Json& j, const char* key, absl::string_view where) const;
  absl::Status ReadHandler(const Json& j, const std::string& where, const std::string& name,
                           const std::string& config);
  // Forwards the target's calls to the handler of another target.
  absl::Status ReadKernel(const Json& j, const std::string& where, const std::string& target,
                          const std::string& config, const std::string& source) const;

  std::string file_;
  TargetRegistry& targets_;
  HandlerRegistry* handlers_;
  LoweringRegistry* lowerings_;
  const absl::Duration deadline_;
  const int64_t max_input_;  // of the programs that it names
  std::shared_ptr<const Library> library_;
};

}  // namespace manifest
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_READER_H_
