// SPDX-License-Identifier: Apache-2.0
#include "shardcall/partitioner/bindings/xla/communicating_calls.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "shardcall/collectives/in_process/in_process.h"
#include "shardcall/kernels/ffi/exported_handler.h"
#include "shardcall/kernels/ffi/load/loaded_object.h"
#include "shardcall/kernels/ffi/shardcall_ffi.h"
#include "shardcall/partitioner/ir/attribute_words.h"
#include "shardcall/partitioner/ir/known_targets.h"
#include "shardcall/sharding/base/stable_hash.h"
#include "shardcall/sharding/base/status.h"

namespace shardcall {
namespace {

constexpr absl::string_view kHostHandlers = "Host";
constexpr absl::string_view kShipped = "built in";
// Runs of one call that are not forgotten. A runtime begins a run while earlier ones are not done
// on all devices, but not so many.
constexpr size_t kRunsKept = 64;

// The devices of this process that run one call. In each run they have a communicator of their own:
// a device may be in a later run than another one.
class LocalDevices : public SiteDevices {
 public:
  explicit LocalDevices(std::vector<int> ordinals) : ordinals_(std::move(ordinals)) {}

  absl::StatusOr<Device> Enter(int ordinal, int64_t run_id) override {
    const auto at = absl::c_find(ordinals_, ordinal);
    if (at == ordinals_.end()) {
      return ToStatus({.code = "E312",
                       .message = absl::StrCat("device ", ordinal,
                                               " runs a call of a program that is for others"),
                       .expected = absl::StrCat("one of ", ordinals_.size(), " devices"),
                       .fix = "Run the program on the devices that it was compiled for"});
    }
    const int rank = static_cast<int>(at - ordinals_.begin());
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Run>& run = runs_[run_id];
    if (run == nullptr) run = std::make_shared<Run>(static_cast<int>(ordinals_.size()));
    std::unique_ptr<Communicator>& own = run->ranks[rank];
    if (own == nullptr) own = run->world.Rank(rank);
    Device device = {rank, own.get(), run};
    while (runs_.size() > kRunsKept) runs_.erase(runs_.begin());  // ids grow
    return device;
  }

 private:
  struct Run {
    explicit Run(int size) : world(size, HandlerContext().deadline), ranks(size) {}
    InProcessWorld world;
    std::vector<std::unique_ptr<Communicator>> ranks;
  };
  const std::vector<int> ordinals_;
  std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<Run>> runs_;
};

// Devices of several processes.
class UnreachableDevices : public SiteDevices {
 public:
  absl::StatusOr<Device> Enter(int, int64_t) override { return Device(); }
};

// Whether the handler is of a library that asks for its device by this id, or one in C++ that gets
// its communicator directly.
bool MayCommunicate(const HandlerEntry& entry) {
  if (entry.functions.empty()) return entry.source != kShipped;
  const int64_t id = SHARDCALL_FFI_DEVICE;
  char bytes[sizeof id];
  std::memcpy(bytes, &id, sizeof id);
  return absl::c_any_of(entry.functions, [&](const void* function) {
    return function != nullptr && ObjectHolds(function, absl::string_view(bytes, sizeof id));
  });
}

// The same for equal calls of equal programs in every process, so that caches of compiled programs
// find them.
int64_t SiteNumber(absl::Span<const int> ordinals, const BaseMesh* mesh, const Instruction& instr,
                   int index) {
  StableHash hash;
  for (int ordinal : ordinals) hash.AddWord(static_cast<uint64_t>(ordinal));
  if (mesh != nullptr) {
    for (int k = 0; k < mesh->num_axes(); ++k) {
      hash.AddWord(static_cast<uint64_t>(mesh->axis_size(k)));
    }
    for (const BaseMesh::NamedAxis& axis : mesh->names()) {
      hash.Add(axis.name).AddWord(static_cast<uint64_t>(AxesSize(axis.refs)));
    }
    for (int64_t p = 0; p < mesh->num_devices(); ++p) {
      hash.AddWord(static_cast<uint64_t>(mesh->order().DeviceAt(p)));
    }
  }
  hash.Add(instr.name).AddWord(static_cast<uint64_t>(index));
  return static_cast<int64_t>(hash.value() >> 1);
}

// `{a = 1 : i64}` with the site's number.
std::string WithSite(absl::string_view config, int64_t number) {
  const std::string site = absl::StrCat("{", kSiteAttribute, " = ", number, " : i64");
  const absl::string_view rest = config.size() > 1 ? config.substr(1) : "}";
  const bool empty = absl::StripAsciiWhitespace(rest) == "}";
  return absl::StrCat(site, empty ? "" : ", ", rest);
}

}  // namespace

absl::StatusOr<std::vector<ExportedTarget>> ExportCommunicating(
    const HandlerRegistry& handlers, absl::string_view platform, absl::Span<const int> ordinals,
    int num_devices, const BaseMesh* mesh, Module* module) {
  std::map<std::string, ExportedTarget> found;
  for (int k = 0; k < module->num_instructions(); ++k) {
    const Instruction& instr = module->instr(InstrId(k));
    if (instr.opcode != Opcode::kCustomCall || KnownTargetOf(instr) != KnownTarget::kNone) continue;
    CustomCallAttrs attrs = instr.as<CustomCallAttrs>();
    if (attrs.api_version != kTypedFfiCall) continue;
    const absl::StatusOr<const HandlerEntry*> entry =
        handlers.Find(attrs.target, platform, instr.backend_config);
    if (!entry.ok() || !MayCommunicate(**entry)) continue;
    if ((*entry)->platform != kHostHandlers) {
      if ((*entry)->functions.empty()) continue;
      return ToStatus(
          {.code = "E140",
           .message = absl::StrCat("the kernel of \"", std::string(attrs.target),
                                   "\" communicates by shardcall_ffi.h, which it "
                                   "cannot on ",
                                   (*entry)->platform, " where another runtime calls it"),
           .where = absl::StrCat("%", instr.name),
           .expected = "a kernel for the host, or one that communicates by itself",
           .fix = "Run the program with shardcall.run, or use NCCL in the kernel"});
    }
    ExportedTarget& target = found[std::string(attrs.target)];
    if (target.function == nullptr) {
      SHARDCALL_ASSIGN_OR_RETURN(const ExportedFunction exported,
                                 ExportHandler(**entry, {num_devices, kTypedFfiCall, "", {}}));
      target = {absl::StrCat(std::string(attrs.target), "@", exported.number), (*entry)->platform,
                reinterpret_cast<const void*>(exported.function)};
    }
    ExportedSite site;
    site.number = SiteNumber(ordinals, mesh, instr, k);
    site.instruction = std::string(instr.name);
    site.num_devices = num_devices;
    if (mesh != nullptr) site.mesh = std::make_shared<const BaseMesh>(*mesh);
    if (ordinals.empty()) {
      site.devices = std::make_shared<UnreachableDevices>();
    } else {
      site.devices =
          std::make_shared<LocalDevices>(std::vector<int>(ordinals.begin(), ordinals.end()));
    }
    Context& context = module->context();
    Instruction& changed = module->mutable_instr(InstrId(k));
    changed.backend_config = context.Intern(WithSite(instr.backend_config, site.number));
    attrs.target = target.name;
    changed.attrs = InternAttributes(context, attrs);
    AddExportedSite(std::move(site));
  }
  std::vector<ExportedTarget> out;
  for (auto& [name, target] : found) out.push_back(std::move(target));
  return out;
}

}  // namespace shardcall
