// SPDX-License-Identifier: Apache-2.0
// What every backend must do, as bodies that run on each rank at once. A backend
// joins by running them: see in_process_conformance_test.cc.
#ifndef SHARDCALL_TESTS_COLLECTIVES_CONFORMANCE_H_
#define SHARDCALL_TESTS_COLLECTIVES_CONFORMANCE_H_

#include <string>
#include <vector>

#include "shardcall/collectives/communicator.h"

namespace shardcall::testing {

struct ConformanceCase {
  std::string name;
  void (*body)(Communicator& communicator);
};

const std::vector<ConformanceCase>& ConformanceCases();

}  // namespace shardcall::testing

#endif  // SHARDCALL_TESTS_COLLECTIVES_CONFORMANCE_H_
