// SPDX-License-Identifier: Apache-2.0
// Tensors that do not fit, and programs that are run with them.
#include <mutex>

#include "shardcall/partitioner/api/executable.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"
#include "shardcall/partitioner/runtime/io/npz.h"
#include "shardcall/sharding/base/status.h"
#include "tests/fuzz/misuse/misuse.h"
#include "tests/fuzz/require.h"

namespace shardcall::misuse {
namespace {

absl::Status Copies(Caller& c, absl::Span<const BufferView> in, absl::Span<const BufferView> out) {
  if (!c.MayThrow()) return absl::UnknownError("");
  for (size_t k = 0; k < out.size(); ++k) {
    if (out[k].data == nullptr) continue;
    char* to = static_cast<char*>(out[k].data);
    for (int64_t i = 0; i < out[k].byte_size(); ++i) {
      const bool has = k < in.size() && i < in[k].byte_size();
      to[i] = has ? static_cast<const char*>(in[k].data)[i] : 0;
    }
  }
  return absl::OkStatus();
}

template <typename T>
Tensor Make(Caller& c, ElementType type, std::vector<int64_t> dims, int64_t count) {
  const std::vector<T> values(static_cast<size_t>(count));
  const absl::StatusOr<Tensor> made = Tensor::Create(type, dims, values);
  const Tensor other = Tensor::From(type, dims, values);
  const bool ok = c.Ok(made);
  FuzzRequire(other.type() == (ok ? type : ElementType::kInvalid), "From makes what Create makes",
              "");
  return other;
}

Tensor AnyTensor(Caller& c) {
  static const std::vector<std::vector<int64_t>> kFits = {{8, 12}, {12}};
  const std::vector<int64_t> dims = c.Chance(80) ? c.random().Pick(kFits) : c.Dims();
  int64_t count = 1;
  for (int64_t d : dims) count *= d > 0 && d < 100 && count < 10000 ? d : 1;
  if (c.Chance(5)) count = c.Int(0, 200);
  const ElementType type = c.Chance(80) ? ElementType::kF32 : c.Type();
  switch (c.Int(0, 9)) {
    case 0: return Make<double>(c, type, dims, count);
    case 1: return Make<int32_t>(c, type, dims, count);
    case 2: return Make<uint16_t>(c, type, dims, count);
    case 3: return Tensor();
    case 4: return Tensor::Token();
    case 5: {
      Tensor gone = Make<float>(c, type, dims, count);
      const Tensor taken = std::move(gone);
      return gone;  // NOLINT: what was moved from
    }
    default: return Make<float>(c, type, dims, count);
  }
}

}  // namespace

void MisuseRuns(Caller& c) {
  HandlerRegistry handlers;
  TargetRegistry targets;
  HandlerEntry entry;
  entry.target = "t";
  entry.host = [&c](const HandlerContext& context, absl::Span<const BufferView> in,
                    absl::Span<const BufferView> out) {
    // The devices of a run share the caller.
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    return context.num_devices > 1 ? absl::OkStatus() : Copies(c, in, out);
  };
  c.Ok(handlers.Register(entry));
  c.Ok(targets.RegisterRule("t", {.rule = "a b -> a b"}));
  const auto parse = [&] {
    return ParseModule(std::make_shared<const std::string>(c.Program(c.Chance(95) ? "t" : "u")),
                       std::make_shared<Context>(), "program");
  };
  std::vector<Tensor> inputs(c.Chance(90) ? 2 : c.Int(0, 4));
  for (size_t k = 0; k < inputs.size(); ++k) {
    inputs[k] = c.Chance(85)
                    ? Make<float>(c, ElementType::kF32,
                                  k == 0 ? std::vector<int64_t>{8, 12} : std::vector<int64_t>{12},
                                  k == 0 ? 96 : 12)
                    : AnyTensor(c);
  }
  auto module = parse();
  if (!c.Ok(module)) return;
  if (c.Chance(50)) {
    c.Ok(Evaluate(*module, inputs, c.Chance(80) ? &handlers : nullptr));
    const auto program = Compile(*std::move(module), {.handlers = &handlers});
    if (!c.Ok(program)) return;
    for (int k = 0; k < 3; ++k) c.Ok(program->Execute(inputs));
    // Registering more leaves what was compiled as it is.
    for (int k = 0; k < 20; ++k) {
      entry.target = std::string(1, static_cast<char>('a' + k)) + "more";
      c.Ok(handlers.Register(entry));
    }
    c.Ok(program->Execute(inputs));
    return;
  }
  RunOptions options;
  options.partition.targets = &targets;
  options.partition.num_partitions = c.Chance(90) ? 4 : c.Int(0, 3);
  options.handlers = c.Chance(80) ? &handlers : nullptr;
  const auto program = Partition(*std::move(module), options.partition);
  if (!c.Ok(program)) return;
  c.Ok(RunPartitioned(**program, inputs, options, nullptr));
}

}  // namespace shardcall::misuse
