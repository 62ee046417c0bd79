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
#include "absl/types/span.h"
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

  // `depth`: of the regions around the instruction.
  absl::Status Write(InstrId id, int depth);
  // Each of them for the ops that need more than a name.
  struct Row {
    Opcode opcode;
    absl::Status (Writer::*write)(InstrId id, int depth);
  };
  absl::Status WriteTuple(InstrId id, int depth);
  absl::Status WriteTupleElement(InstrId id, int depth);
  absl::Status WriteCopy(InstrId id, int depth);
  absl::Status WriteConstant(InstrId id, int depth);
  absl::Status WriteIota(InstrId id, int depth);
  absl::Status WriteBroadcast(InstrId id, int depth);
  absl::Status WriteTranspose(InstrId id, int depth);
  absl::Status WriteReverse(InstrId id, int depth);
  absl::Status WriteConcatenate(InstrId id, int depth);
  absl::Status WriteSlice(InstrId id, int depth);
  absl::Status WriteDynamicSlice(InstrId id, int depth);
  absl::Status WritePad(InstrId id, int depth);
  absl::Status WriteCompare(InstrId id, int depth);
  absl::Status WriteReduce(InstrId id, int depth);
  absl::Status WriteReducePrecision(InstrId id, int depth);
  absl::Status WriteDot(InstrId id, int depth);
  absl::Status WriteCustomCall(InstrId id, int depth);
  absl::Status WriteCollective(InstrId id, int depth);
  absl::Status WritePermute(InstrId id, int depth);

  absl::Span<const int64_t> Dimensions(InstrId id) const {
    return m_.instr(id).as<DimensionsAttrs>().dimensions;
  }
  absl::StatusOr<std::string> Groups(InstrId id, const CollectiveAttrs& attrs) const;

  const Module& m_;
  std::string out_, indent_;
  absl::flat_hash_map<InstrId, std::vector<std::string>> values_;  // flat leaves
};

}  // namespace shardcall::stablehlo

#endif  // SHARDCALL_PARTITIONER_BINDINGS_XLA_STABLEHLO_WRITER_H_
