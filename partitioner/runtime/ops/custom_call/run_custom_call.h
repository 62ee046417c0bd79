// SPDX-License-Identifier: Apache-2.0
// What a device keeps of a custom call, and the call of its handler. It is lowered by
// lower_custom_call.cc.
#ifndef SHARDCALL_PARTITIONER_RUNTIME_OPS_CUSTOM_CALL_RUN_CUSTOM_CALL_H_
#define SHARDCALL_PARTITIONER_RUNTIME_OPS_CUSTOM_CALL_RUN_CUSTOM_CALL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "shardcall/kernels/ffi/attributes.h"
#include "shardcall/kernels/ffi/handler.h"
#include "shardcall/partitioner/runtime/execute/step_run.h"

namespace shardcall {
inline namespace internal {

struct CustomCallData : OpData {
  std::string target, backend_config;
  AttributeMapView attributes;
  std::vector<Dims> operand_order, result_order;  // major to minor; empty: descending
  std::vector<int> alias;  // by result: the operand whose buffer it reuses, or -1
  int api_version = 4;
  bool tuple_result = false;
  struct Computation {
    int index = -1;  // index of the call in the program
    std::vector<LeafShape> parameters, results;
  };
  std::vector<Computation> computations;
  mutable CallSite site;  // handler state that lives as long as the program
};

// Calls the handler that the device's registry has for the target. Operands and results have the
// layouts that the call states.
absl::Status RunCustomCall(StepRun& run);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_RUNTIME_OPS_CUSTOM_CALL_RUN_CUSTOM_CALL_H_
