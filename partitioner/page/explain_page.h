// SPDX-License-Identifier: Apache-2.0
// The page of `explain --format=html`: one self-contained file.
#ifndef SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_H_
#define SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "shardcall/partitioner/spmd/localize/localize.h"
#include "shardcall/sharding/cost_model.h"
#include "shardcall/sharding/mesh.h"

namespace shardcall {
inline namespace internal {

// What the page shows. Its texts are made where the report's are, so that both say the same.
struct PageContent {
  struct Collective {
    std::string cause;   // which value it moves, and for whom
    std::string source;  // the line of the program it was made for; empty if unknown
    std::string why;     // why the value is sharded as it is; empty if unknown
  };
  struct Warning {
    std::string code, op, text, fix;
  };
  struct Memory {  // bytes of one device
    int64_t peak = 0, arguments = 0, outputs = 0, temporaries = 0;
    int64_t aliased = 0;  // outputs in donated arguments
  };
  std::string program, version;
  int64_t num_partitions = 1;
  int64_t instructions_in = 0;  // of the input module
  double bytes_moved = 0;       // by one device and run
  Memory memory;
  std::vector<MeshAxis> mesh;           // empty if the program declares none
  CostModel cost;                       // that the plan was made with
  const LocalProgram* local = nullptr;  // not owned
  std::vector<Collective> collectives;  // one for each of local->collectives
  std::vector<Warning> warnings;
};

// The data of the page as JSON: collectives, their groups, source lines, warnings with their
// fixes, a step by the cost model, and the ops around the collectives. Times are in seconds, sizes
// in bytes. Repeated texts are stored once, in "texts", and referred to by index.
std::string ExplainPageData(const PageContent& content);

// The page from the files of page/ with that data embedded. Text of the program cannot become
// markup: `<` is escaped in the data, and the page's script inserts it only as text nodes.
std::string ExplainPage(const PageContent& content);

}  // namespace internal
}  // namespace shardcall

#endif  // SHARDCALL_PARTITIONER_PAGE_EXPLAIN_PAGE_H_
