// SPDX-License-Identifier: Apache-2.0
// The writer of stablehlo.h, shared by its source files: stablehlo.cc, and
// stablehlo_calls.cc (custom calls and collectives).
#ifndef SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_WRITER_H_
#define SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_WRITER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/module.h"

namespace shardcall::stablehlo {

// `[1, 2]`.
std::string List(Ints values);
// MLIR's strings escape characters by two hex digits.
std::string MlirString(absl::string_view text);

// Writes one module, once. Values are named by their instruction's number.
class Writer {
 public:
  explicit Writer(const Module& module) : m_(module) {}

  absl::StatusOr<std::string> Run();

 private:
  absl::Status Cannot(InstrId id, std::string what) const;

  absl::StatusOr<std::string> TypeOf(InstrId id, const Shape* shape) const;
  absl::StatusOr<std::string> TypesOf(InstrId id) const;

  // Writes `"op"(operands) {attributes} regions`; its results become the instruction's.
  absl::Status Emit(InstrId id, absl::string_view op, absl::string_view attributes = "",
                    absl::string_view region = "");

  absl::Status WriteBody(const Computation& computation, const std::string& indent, int depth);

  // ` ({ ^bb0(..): .. "stablehlo.return" })`
  absl::StatusOr<std::string> Region(InstrId user, CompId comp, int depth);

  absl::Status Write(InstrId id, int depth);
  absl::Status WriteConstant(InstrId id);
  absl::Status WriteDot(InstrId id);
  absl::Status WriteCustomCall(InstrId id);
  absl::Status WriteCollective(InstrId id, int depth);
  absl::Status WritePermute(InstrId id);
  absl::StatusOr<std::string> Groups(InstrId id, const CollectiveAttrs& attrs) const;

  const Module& m_;
  std::string out_, indent_;
  absl::flat_hash_map<InstrId, std::vector<std::string>> values_;  // flat leaves
};

}  // namespace shardcall::stablehlo

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_WRITER_H_
