// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/ir/build/builder.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace shardcall {

void GraphBuilder::Stop(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  SHARDCALL_CHECK(status.ok());
  std::abort();
}

}  // namespace shardcall
