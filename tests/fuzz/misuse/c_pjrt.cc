// SPDX-License-Identifier: Apache-2.0
// The C functions of PJRT: engines of plugins and of what is none, options and inputs of
// any kind, programs that are compiled once with arrays of theirs and of others, on a made-up
// plugin that fails in any of its functions.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "shardcall/partitioner/bindings/pjrt/shardcall_c_pjrt.h"
#include "tests/fuzz/misuse/c_arguments.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"
#include "tests/partitioner/bindings/pjrt/fake_backend.h"

namespace shardcall::misuse {
namespace {

constexpr char kProgram[] =
    R"(HloModule m, num_partitions=2, input_output_alias={ {}: (0, {}, may-alias) }
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

// Of a call that gave an error.
void LeftAlone(const void* made) {
  FuzzRequire(made == nullptr, "where there is an error, the argument is left alone", "");
}

class PjrtCalls : private CArguments {
 public:
  explicit PjrtCalls(Caller& c) : CArguments(c) {}
  ~PjrtCalls() {
    for (Shardcall_PjrtArray* array : arrays_) Shardcall_PjrtArray_Destroy(array);
    Shardcall_PjrtExecutable_Destroy(executable_);
    Shardcall_Program_Destroy(program_);
    Shardcall_Module_Destroy(module_);
    Shardcall_PjrtEngine_Destroy(engine_);
    Backend().fails.reset();
    const pjrt::FakeBackend& b = Backend();
    FuzzRequire(b.alive() == 0, "nothing of the plugin's stays alive",
                absl::StrCat(b.errors.load(), " errors, ", b.clients.load(), " clients, ",
                             b.executables.load(), " executables, ", b.buffers.load(), " buffers, ",
                             b.events.load(), " events"));
  }
  void Run() {
    Read();
    const int64_t steps = c_.Int(1, 12);
    for (int64_t k = 0; k < steps; ++k) Step();
  }

 private:
  const char* Plugin() {
    if (c_.Chance(85)) return SHARDCALL_FAKE_PJRT_PLUGIN;
    static const char* const kNone[] = {"/no/such/file.so", "/dev/null", "/",
                                        "libm.so.6",        "",          "\n"};
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
    LeftAlone(made);
  }
  // An array of the program's, mostly.
  Shardcall_Buffer Input(const int64_t* dims, float* data) {
    Shardcall_Buffer in = Sized<Shardcall_Buffer>();
    in.type = c_.Chance(95) ? 11 : static_cast<int32_t>(c_.Number());
    in.rank = c_.Chance(95) ? 2 : static_cast<int32_t>(c_.Int(-1, 1));
    in.dims = c_.Chance(95) ? dims : nullptr;
    in.data = c_.Chance(95) ? data : nullptr;
    return in;
  }
  void Execute() {
    std::vector<float> data(400, 1);
    const int64_t dims[] = {c_.Chance(90) ? 8 : c_.Number(), c_.Chance(90) ? 12 : c_.Number()};
    const Shardcall_Buffer in = Input(dims, data.data());
    const auto count = c_.Chance(95) ? 1 : static_cast<int32_t>(c_.Int(-2, 1));
    Shardcall_Buffers* out = nullptr;
    if (c_.Ok(Shardcall_Program_RunOnPjrt(
            c_.Chance(97) ? program_ : nullptr, c_.Chance(97) ? engine_ : nullptr,
            c_.Chance(97) ? &in : nullptr, count, c_.Chance(97) ? &out : nullptr))) {
      Shardcall_Buffers_Destroy(out);
      return;
    }
    LeftAlone(out);
  }
  void Compile() {
    Shardcall_PjrtExecutable* made = nullptr;
    if (c_.Ok(Shardcall_Program_CompileForPjrt(c_.Chance(97) ? program_ : nullptr,
                                               c_.Chance(97) ? engine_ : nullptr,
                                               c_.Chance(97) ? &made : nullptr))) {
      Shardcall_PjrtExecutable_Destroy(executable_);
      executable_ = made;
      return;
    }
    LeftAlone(made);
  }
  void Put() {
    std::vector<float> data(400, 1);
    const int64_t dims[] = {c_.Chance(90) ? 8 : c_.Number(), 12};
    const Shardcall_Buffer in = Input(dims, data.data());
    Shardcall_PjrtArray* made = nullptr;
    if (c_.Ok(Shardcall_PjrtExecutable_Put(c_.Chance(97) ? executable_ : nullptr,
                                           c_.Chance(90) ? 0 : static_cast<int32_t>(c_.Number()),
                                           c_.Chance(97) ? &in : nullptr,
                                           c_.Chance(97) ? &made : nullptr))) {
      arrays_.push_back(made);
      return;
    }
    LeftAlone(made);
  }
  // One of the arrays, taken out of the list; null if there is none.
  Shardcall_PjrtArray* TakeArray() {
    if (arrays_.empty() || c_.Chance(3)) return nullptr;
    std::swap(arrays_[c_.Int(0, static_cast<int64_t>(arrays_.size()) - 1)], arrays_.back());
    Shardcall_PjrtArray* const array = arrays_.back();
    arrays_.pop_back();
    return array;
  }
  void ExecuteOnArrays() {
    const int32_t num_inputs = c_.Chance(90) ? Shardcall_PjrtExecutable_NumInputs(executable_)
                                             : static_cast<int32_t>(c_.Int(0, 3));
    const int32_t num_outputs = c_.Chance(90) ? Shardcall_PjrtExecutable_NumOutputs(executable_)
                                              : static_cast<int32_t>(c_.Int(0, 3));
    std::vector<Shardcall_PjrtArray*> inputs, outputs(num_outputs, nullptr);
    for (int32_t k = 0; k < num_inputs; ++k) inputs.push_back(TakeArray());
    const bool twice = inputs.size() > 1 && c_.Chance(20);
    Shardcall_PjrtArray* const hidden = twice ? std::exchange(inputs[1], inputs[0]) : nullptr;
    c_.Ok(Shardcall_PjrtExecutable_Execute(
        c_.Chance(97) ? executable_ : nullptr, c_.Chance(97) ? inputs.data() : nullptr,
        c_.Chance(97) ? num_inputs : -num_inputs, c_.Chance(50) ? 1 : 0,
        c_.Chance(97) ? outputs.data() : nullptr, c_.Chance(97) ? num_outputs : -num_outputs));
    if (twice) inputs[1] = hidden;
    for (const auto& list : {inputs, outputs}) {
      for (Shardcall_PjrtArray* array : list) {
        if (array != nullptr) arrays_.push_back(array);
      }
    }
  }
  void ToHost() {
    Shardcall_PjrtArray* const array = TakeArray();
    Shardcall_Buffers* out = nullptr;
    if (c_.Ok(Shardcall_PjrtArray_ToHost(array, c_.Chance(97) ? &out : nullptr))) {
      FuzzRequire(Shardcall_Buffers_Count(out) == 1, "an array is one buffer", "");
      Shardcall_Buffers_Destroy(out);
    } else {
      LeftAlone(out);
    }
    if (c_.Chance(50)) return Shardcall_PjrtArray_Destroy(array);
    if (array != nullptr) arrays_.push_back(array);
  }
  void Verify() {
    Shardcall_Options options = Sized<Shardcall_Options>();
    options.deadline_s = c_.Chance(80) ? 20 : 1.0 * static_cast<double>(c_.Number());
    Shardcall_Text* json = nullptr;
    if (c_.Ok(Shardcall_Module_VerifyOnPjrt(
            c_.Chance(97) ? module_ : nullptr, c_.Chance(80) ? &options : nullptr,
            c_.Chance(97) ? engine_ : nullptr, 1, c_.Chance(97) ? &json : nullptr))) {
      Shardcall_Text_Destroy(json);
      return;
    }
    LeftAlone(json);
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
    LeftAlone(hlo);
  }
  void Step() {
    Prepare();
    switch (c_.Int(0, 11)) {
      case 0:
      case 1: return Create();
      case 2:
      case 3: return Execute();
      case 4: return Verify();
      case 5: return Compile();
      case 6:
      case 7: return Put();
      case 8:
      case 9: return ExecuteOnArrays();
      case 10: return ToHost();
      default: return Convert();
    }
  }

  Shardcall_Module* module_ = nullptr;
  Shardcall_Program* program_ = nullptr;
  Shardcall_PjrtEngine* engine_ = nullptr;
  Shardcall_PjrtExecutable* executable_ = nullptr;
  std::vector<Shardcall_PjrtArray*> arrays_;
};

}  // namespace

void MisuseCPjrt(Caller& c) { PjrtCalls(c).Run(); }

}  // namespace shardcall::misuse
