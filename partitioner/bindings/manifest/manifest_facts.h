// SPDX-License-Identifier: Apache-2.0
// The parts of a manifest beside rules and handlers: VJPs, batching, call limits, and lowerings.
// See manifest.h for their form.
#ifndef SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_FACTS_H_
#define SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_FACTS_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/custom_call/attribute_condition.h"
#include "shardcall/partitioner/custom_call/derive/lowering.h"
#include "shardcall/partitioner/custom_call/target_facts.h"

namespace shardcall {
inline namespace internal {

// Makes the error (E141) about a value: its place in the manifest, and what is wrong.
using ManifestError =
    std::function<absl::Status(absl::string_view where, std::string expected, std::string found)>;
// The text of a file whose path is relative to the manifest.
using ManifestFile = std::function<absl::StatusOr<std::string>(const std::string& path)>;

// Checks that all keys of an object are `known`; the error suggests a similar one.
absl::Status CheckManifestKeys(const nlohmann::ordered_json& j, absl::string_view where,
                               const std::set<std::string>& known, const ManifestError& bad);
// A padding value: a number, or one of "inf", "-inf" and "nan", which JSON has no numbers for.
absl::StatusOr<double> ReadManifestPad(const nlohmann::ordered_json& j, const std::string& where,
                                       const ManifestError& bad);
// A factor's size, where it is no formula.
absl::StatusOr<int64_t> ReadManifestSize(const nlohmann::ordered_json& j, const std::string& where,
                                         const ManifestError& bad);
absl::StatusOr<VjpSpec> ReadManifestVjp(const nlohmann::ordered_json& j, const std::string& where,
                                        const ManifestError& bad, const ManifestFile& file);
absl::StatusOr<BatchingSpec> ReadManifestBatching(const nlohmann::ordered_json& j,
                                                  const std::string& where,
                                                  const ManifestError& bad);
// What a rule says of its calls' attributes, {"mode": ["gelu", "relu"], "axis": 1}: each value is
// a string, a number, a bool, null for an attribute that is absent, or a list of these.
absl::StatusOr<AttributeConditions> ReadManifestConditions(const nlohmann::ordered_json& j,
                                                           const std::string& where,
                                                           const ManifestError& bad);
// {"grid_x": "m / 16", "n": 4}: attributes of a call that follow its shard; none where `j` has no
// "attributes", or the text of those of a "kernel".
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ReadManifestAttributes(
    const nlohmann::ordered_json& j, const std::string& where, const ManifestError& bad);
// A target's sizes that are formulas, its ranges, and its results that are scratch memory.
absl::StatusOr<CallLimits> ReadManifestLimits(const nlohmann::ordered_json& target,
                                              const std::string& where, const ManifestError& bad);
absl::Status ReadManifestLowering(const nlohmann::ordered_json& j, const std::string& where,
                                  const std::string& source, const ManifestError& bad,
                                  LoweringRegistry* lowerings);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_BINDINGS_MANIFEST_MANIFEST_FACTS_H_
