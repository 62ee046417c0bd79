// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/page_content.h"

#include <utility>

#include "shardcall/partitioner/api/collective_reasons.h"
#include "shardcall/partitioner/api/device_memory.h"
#include "shardcall/partitioner/api/report.h"
#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/api/warnings.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/sharding/convert/convert.h"

namespace shardcall {
inline namespace internal {

PageContent PageContentOf(const PartitionedProgram& p, const SpmdOptions& options,
                          bool whole_reasons) {
  const Program& program = p.global->program;
  const Module& global = program.module;
  PageContent out;
  out.program = std::string(global.header.name);
  out.version = kVersion;
  out.num_partitions = program.num_partitions;
  out.instructions_in = p.instructions_in;
  out.bytes_moved = TotalBytesMoved(p.local);
  const DeviceMemory memory = CountDeviceMemory(p.local.module);
  out.memory = {.peak = memory.Peak(),
                .arguments = memory.arguments,
                .outputs = memory.outputs,
                .temporaries = memory.temporaries,
                .aliased = memory.aliased};
  if (program.mesh != nullptr) out.mesh = DeclaredMesh(*program.mesh).axes;
  out.cost = options.cost;
  out.local = &p.local;
  CollectiveReasons reasons(p, whole_reasons);
  for (const CollectiveRecord& r : p.local.collectives) {
    const InstrId consumer = r.cause.consumer;
    out.collectives.push_back(
        {.cause = CauseText(p, r),
         .source = consumer.valid() ? SourceLine(global, global.instr(consumer)) : "",
         .why = reasons.WhySharded(r)});
  }
  for (ProgramWarning& w : Warnings(p)) {
    std::string fix(w.fix());
    out.warnings.push_back({.code = std::move(w.code),
                            .op = w.instr.valid() ? std::string(global.instr(w.instr).name) : "",
                            .text = std::move(w.text),
                            .fix = std::move(fix)});
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
