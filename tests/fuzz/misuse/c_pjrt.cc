// SPDX-License-Identifier: Apache-2.0
// The C functions of PJRT: engines of plugins and of what is none, options and inputs of
// any kind, on a made-up plugin that fails in any of its functions.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "partitioner/bindings/pjrt/shardcall_c_pjrt.h"
#include "tests/fuzz/misuse/c_arguments.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace shardcall::misuse {
namespace {

constexpr char kProgram[] = R"(HloModule m, num_partitions=2
ENTRY e {
  x = f32[8,12] parameter(0), sharding={devices=[2,1]<=[2]}
  ROOT y = f32[8,12] negate(x), sharding={devices=[2,1]<=[2]}
})";
constexpr char kStablehlo[] =
    "module @f {\n  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    return %a : tensor<4xf32>\n  }\n}\n";
constexpr int kFunctions = 118;

pjrt::FakeBackend& Backend() {
  static pjrt::FakeBackend* const backend = [] {
    void* library = dlopen(SHARDCALL_FAKE_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    FuzzRequire(library != nullptr, "the made-up plugin is there", SHARDCALL_FAKE_PJRT_PLUGIN);
    auto* get = reinterpret_cast<void* (*)()>(dlsym(library, "FakePjrtBackend"));
    FuzzRequire(get != nullptr, "the made-up plugin has its backend", "");
    return static_cast<pjrt::FakeBackend*>(get());
  }();
  return *backend;
}

class PjrtCalls : private CArguments {
 public:
  explicit PjrtCalls(Caller& c) : CArguments(c) {}
  ~PjrtCalls() {
    Shardcall_Program_Destroy(program_);
    Shardcall_Module_Destroy(module_);
    Shardcall_PjrtEngine_Destroy(engine_);
    Backend().fails.reset();
    const pjrt::FakeBackend& b = Backend();
    FuzzRequire(b.alive() == 0, "nothing of the plugin's stays alive",
                absl::StrCat(b.errors.load(), " errors, ", b.clients.load(), " clients, ",
                             b.executables.load(), " executables, ", b.buffers.load(),
                             " buffers, ", b.events.load(), " events"));
  }
  void Run() {
    Read();
    const int64_t steps = c_.Int(1, 8);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  const char* Plugin() {
    if (c_.Chance(85)) return SHARDCALL_FAKE_PJRT_PLUGIN;
    static const char* const kNone[] = {"/no/such/file.so", "/dev/null", "/", "libm.so.6", "", "\n"};
    return c_.Chance(10) ? nullptr : c_.Chance(20) ? Text(c_.Name()) : kNone[c_.Int(0, 5)];
  }
  void Prepare() {
    pjrt::FakeBackend& backend = Backend();
    backend.fails.reset();
    if (c_.Chance(30)) backend.fails = static_cast<pjrt::abi::Function>(c_.Int(0, kFunctions - 1));
    backend.code = c_.Chance(80) ? 9 : static_cast<int32_t>(c_.Number());
    backend.results = c_.Chance(90) ? 1 : static_cast<size_t>(c_.Int(0, 3));
    backend.devices = c_.Chance(90) ? 2 : static_cast<int>(c_.Int(0, 4));
    backend.platform = c_.Chance(90) ? "cpu" : c_.Name().c_str();  // up to a NUL
  }
  void Read() {
    const std::string text = c_.Chance(80) ? kProgram : c_.Program("same");
    if (!c_.Ok(Shardcall_Module_Read(text.data(), text.size(), nullptr, &module_))) return;
    c_.Ok(Shardcall_PartitionModule(module_, nullptr, &program_));
  }
  void Create() {
    std::vector<Shardcall_PjrtOption> options(c_.Int(0, 3));
    for (Shardcall_PjrtOption& o : options) {
      o = Sized<Shardcall_PjrtOption>();
      o.name = Text(c_.Chance(50) ? "cpu_device_count" : c_.Name());
      o.value = Text(c_.Chance(50) ? std::to_string(c_.Int(0, 4)) : c_.Name());
    }
    const int32_t count =
        c_.Chance(97) ? static_cast<int32_t>(options.size()) : -static_cast<int32_t>(c_.Int(1, 9));
    Shardcall_PjrtEngine* made = nullptr;
    if (c_.Ok(Shardcall_PjrtEngine_Create(Plugin(), c_.Chance(97) ? options.data() : nullptr, count,
                                          c_.Chance(97) ? &made : nullptr))) {
      Shardcall_PjrtEngine_Destroy(engine_);
      engine_ = made;
      return;
    }
    FuzzRequire(made == nullptr, "where there is an error, the argument is left alone", "");
  }
  void Execute() {
    std::vector<float> data(400, 1);
    const int64_t dims[] = {c_.Chance(90) ? 8 : c_.Number(), c_.Chance(90) ? 12 : c_.Number()};
    Shardcall_Buffer in = Sized<Shardcall_Buffer>();
    in.type = c_.Chance(95) ? 11 : static_cast<int32_t>(c_.Number());
    in.rank = c_.Chance(95) ? 2 : static_cast<int32_t>(c_.Int(-1, 1));
    in.dims = c_.Chance(95) ? dims : nullptr;
    in.data = c_.Chance(95) ? data.data() : nullptr;
    const auto count = c_.Chance(95) ? 1 : static_cast<int32_t>(c_.Int(-2, 1));
    Shardcall_Buffers* out = nullptr;
    if (c_.Ok(Shardcall_Program_RunOnPjrt(c_.Chance(97) ? program_ : nullptr,
                                          c_.Chance(97) ? engine_ : nullptr,
                                          c_.Chance(97) ? &in : nullptr, count,
                                          c_.Chance(97) ? &out : nullptr))) {
      Shardcall_Buffers_Destroy(out);
      return;
    }
    FuzzRequire(out == nullptr, "where there is an error, the argument is left alone", "");
  }
  void Verify() {
    Shardcall_Options options = Sized<Shardcall_Options>();
    options.deadline_s = c_.Chance(80) ? 20 : 1.0 * static_cast<double>(c_.Number());
    Shardcall_Text* json = nullptr;
    if (c_.Ok(Shardcall_Module_VerifyOnPjrt(c_.Chance(97) ? module_ : nullptr,
                                            c_.Chance(80) ? &options : nullptr,
                                            c_.Chance(97) ? engine_ : nullptr, 1,
                                            c_.Chance(97) ? &json : nullptr))) {
      Shardcall_Text_Destroy(json);
      return;
    }
    FuzzRequire(json == nullptr, "where there is an error, the argument is left alone", "");
  }
  void Convert() {
    std::string text = c_.Chance(70) ? kStablehlo : c_.Program("same");
    if (c_.Chance(20)) text = "ML\xefR" + c_.Name();
    if (c_.Chance(20)) text.resize(static_cast<size_t>(c_.Int(0, 40)));
    Shardcall_Text* hlo = nullptr;
    if (c_.Ok(Shardcall_StablehloToHlo(Plugin(), c_.Chance(97) ? text.data() : nullptr, text.size(),
                                       c_.Chance(97) ? &hlo : nullptr))) {
      Shardcall_Text_Destroy(hlo);
      return;
    }
    FuzzRequire(hlo == nullptr, "where there is an error, the argument is left alone", "");
  }
  void Step() {
    Prepare();
    switch (c_.Int(0, 5)) {
      case 0:
      case 1:
        return Create();
      case 2:
      case 3:
        return Execute();
      case 4:
        return Verify();
      default:
        return Convert();
    }
  }

  Shardcall_Module* module_ = nullptr;
  Shardcall_Program* program_ = nullptr;
  Shardcall_PjrtEngine* engine_ = nullptr;
};

}  // namespace

void MisuseCPjrt(Caller& c) { PjrtCalls(c).Run(); }

}  // namespace shardcall::misuse
