// SPDX-License-Identifier: Apache-2.0
// The report of a partition call, as JSON (the keys are documented in
// partitioner/api/README.md and stable), and the texts of `explain`.
#ifndef SHARDCALL_PARTITIONER_API_REPORT_H_
#define SHARDCALL_PARTITIONER_API_REPORT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/sharding/base/public.h"

namespace shardcall SHARDCALL_PUBLIC {

// Totals of one collective opcode.
struct CollectiveTotal {
  int64_t count = 0;          // instructions
  double count_weighted = 0;  // executions
  double bytes = 0;           // bytes_moved of each instruction once
  double bytes_weighted = 0;  // times its executions
};
std::map<std::string, CollectiveTotal> TotalsByOpcode(const LocalProgram& local);
// Sum over all opcodes, weighted by executions; bytes that one device sends.
double TotalBytesMoved(const LocalProgram& local);

// Which value a collective moves, and for whom: "operand 1 of %dot.3: [{"data"},{}] -> [{},{}]".
std::string CauseText(const PartitionedProgram& p, const CollectiveRecord& r);

// Describes a value that is gathered, or computed whole, without the program requesting it:
// "operand 1 is gathered by cost: [{"data"},{}] -> [{},{}], 1.5 KiB sent per device".
std::string GatherText(const Gather& g);

// The version of its format, its key "format_version".
inline constexpr int kReportFormatVersion = 2;
std::string ReportJson(const PartitionedProgram& p, const SpmdOptions& options);

enum class ExplainFormat { kText, kJson, kHtml };
// Lists every collective with its bytes, consumer, source and target sharding and the origin of
// both; then fallbacks and totals. The reason why a value is sharded as it is, a chain of ops, has
// its first 8 and last 8 steps; with `whole_reasons` it has all, and the text may grow with the
// square of the program.
std::string Explain(const PartitionedProgram& p, const SpmdOptions& options, ExplainFormat format,
                    bool whole_reasons = false);

// A contract over the totals: "all-gather=0, bytes<=1GiB"; terms are an opcode
// or `bytes` (weighted total) or `fallbacks`, one of = == != < <= > >=, and a
// number with an optional unit KB..TB, KiB..TiB.
struct ContractTerm {
  std::string subject, relation;
  double limit = 0;
};
absl::StatusOr<std::vector<ContractTerm>> ParseContract(absl::string_view text);  // E220
// kFailedPrecondition (E221) naming every broken term with its figure.
absl::Status CheckContract(const std::vector<ContractTerm>& terms, const PartitionedProgram& p);

}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_API_REPORT_H_
