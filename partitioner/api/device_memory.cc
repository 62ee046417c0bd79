// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/api/device_memory.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/ir/analysis/output_aliasing.h"
#include "shardcall/partitioner/ir/memory/donations.h"
#include "shardcall/partitioner/ir/memory/peak_memory.h"
#include "shardcall/partitioner/ir/text/source_line.h"
#include "shardcall/partitioner/pass/backend/as_xla_runs.h"
#include "shardcall/sharding/base/human_bytes.h"

namespace shardcall {
namespace {

std::string TextNameOf(const Instruction& i) {
  return i.name.empty() ? std::string(OpcodeText(i.opcode)) : absl::StrCat("%", i.name);
}

// The peak of a module, in what a backend makes of it.
class RunPeak {
 public:
  RunPeak(const Module& local, XlaBackend backend)
      : rules_(backend == XlaBackend::kCpu ? kXlaCpuMemory : kXlaGpuMemory),
        run_(AsXlaRuns(local, rules_)),
        module_(run_.has_value() ? *run_ : local),
        peak_(FindPeakMemory(module_, rules_)) {}
  const Module& module() const { return module_; }
  const PeakMemory& peak() const { return peak_; }

 private:
  const MemoryRules& rules_;
  const std::optional<Module> run_;
  const Module& module_;
  const PeakMemory peak_;
};

// All but the temporaries.
DeviceMemory CountAtRest(const Module& local) {
  DeviceMemory out;
  const Computation& entry = local.comp(local.entry());
  for (InstrId p : entry.parameters) out.arguments += local.instr(p).shape->byte_size();
  out.outputs = local.instr(entry.root).shape->byte_size();
  for (const AliasEntry& alias : ResultsInParameters(local)) {
    out.aliased += PartAt(local.instr(entry.root).shape, alias.output_index)->byte_size();
  }
  return out;
}

}  // namespace

DeviceMemory CountDeviceMemory(const Module& local, XlaBackend backend) {
  DeviceMemory out = CountAtRest(local);
  out.temporaries = RunPeak(local, backend).peak().temporaries;
  return out;
}

inline namespace internal {

int64_t EstimatePeakMemory(const Module& local) {
  DeviceMemory memory = CountAtRest(local);
  memory.temporaries = EstimatePeakTemporaries(BuffersOf(local, kPlannedMemory), kPlannedMemory);
  return memory.Peak();
}

MemoryAtPeak ListMemoryAtPeak(const Module& local, size_t most) {
  const RunPeak run(local, XlaBackend::kGpu);
  const PeakMemory& peak = run.peak();
  MemoryAtPeak out = {.memory = CountAtRest(local)};
  out.memory.temporaries = peak.temporaries;
  if (peak.at.valid()) out.at = TextNameOf(run.module().instr(peak.at));
  for (const PeakMemory::Held& held : peak.held) {
    if (out.held.size() == most) break;
    const Instruction& i = run.module().instr(held.value);
    out.held.push_back({TextNameOf(i), SourceLine(run.module(), i), held.bytes});
  }
  return out;
}

std::string PartsText(const DeviceMemory& memory) {
  const std::string aliased = memory.aliased == 0 ? ""
                                                  : absl::StrCat(" (", HumanBytes(memory.aliased),
                                                                 " of them in donated arguments)");
  return absl::StrCat(HumanBytes(memory.arguments), " arguments, ", HumanBytes(memory.outputs),
                      " outputs", aliased, ", ", HumanBytes(memory.temporaries), " temporaries");
}

std::string DescribePeak(const Module& local) {
  const MemoryAtPeak peak = ListMemoryAtPeak(local, 5);
  const DeviceMemory& memory = peak.memory;
  std::string out = absl::StrCat(HumanBytes(memory.Peak()), ": ", PartsText(memory));
  if (peak.held.empty()) return out;
  absl::StrAppend(&out, " at ", peak.at, ", of which");
  const char* separator = " ";
  for (const HeldAtPeak& held : peak.held) {
    absl::StrAppend(&out, separator, held.value,
                    held.source.empty() ? "" : absl::StrCat(" (", held.source, ")"), " has ",
                    HumanBytes(held.bytes));
    separator = ", ";
  }
  return out;
}

}  // namespace internal
}  // namespace shardcall
