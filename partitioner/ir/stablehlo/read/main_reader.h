// SPDX-License-Identifier: Apache-2.0
// The function main as the entry computation, with its aliases, layouts and the shardings of its
// results.
#ifndef SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MAIN_READER_H_
#define SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MAIN_READER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "shardcall/partitioner/ir/stablehlo/read/module_reader.h"

namespace shardcall {
inline namespace internal {
namespace stablehlo {

class MainReader {
 public:
  // Both must outlive this object.
  MainReader(ModuleReader* reader, const Operation& main)
      : r_(*reader), code_(reader->code()), module_(reader->module()), main_(main) {}
  absl::Status Read();

 private:
  absl::Status ReadArgument(CompId comp, size_t k);
  // The value of a result of main, with the sharding that it has.
  absl::StatusOr<InstrId> Result(CompId comp, size_t k, InstrId value);
  // Gives the root the GSPMD shardings of main's results.
  absl::Status ShardRoot(CompId comp, size_t results, InstrId* root);
  absl::Status ReadLayouts();
  // Gives the shapes the layouts that the module's attribute has, if it is there.
  absl::Status WithLayouts(absl::string_view layouts, absl::string_view tiles,
                           std::vector<const Shape*>* shapes);

  ModuleReader& r_;
  const Bytecode& code_;
  Module& module_;
  const Operation& main_;
  std::vector<absl::string_view> result_shardings_;  // of GSPMD
};

}  // namespace stablehlo
}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_IR_STABLEHLO_READ_MAIN_READER_H_
