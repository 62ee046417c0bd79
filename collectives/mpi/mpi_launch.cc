// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "shardcall/collectives/mpi/mpi.h"

namespace shardcall {

bool LaunchedByMpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

std::atomic<const std::string*>& ComputingOverMpi() {
  static std::atomic<const std::string*> name{nullptr};
  return name;
}

bool MpiOptions::CheckCollectivesByDefault() {
  const char* const value = std::getenv("SHARDCALL_CHECK_COLLECTIVES");
  return value != nullptr && value[0] != '\0' && value[0] != '0';
}

}  // namespace shardcall
