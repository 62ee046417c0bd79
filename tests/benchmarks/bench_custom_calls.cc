// SPDX-License-Identifier: Apache-2.0
// What custom calls cost: the dispatch of a typed-FFI handler over the bare
// function, a call of a program, partitioning modules of many calls, and how often
// callbacks are asked.
//
//   bench_custom_calls [--json=FILE] [--rounds=N] [--calls=N]
//
// Times are medians over the rounds; exit code 1 where callbacks are asked more
// often than there are distinct calls. Times are only shown.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "shardcall/kernels/ffi/abi_table.h"
#include "shardcall/kernels/ffi/typed_handler.h"
#include "shardcall/partitioner/api/partition.h"
#include "shardcall/partitioner/api/run.h"
#include "shardcall/partitioner/ir/text/parser.h"

namespace shardcall {
namespace {

double Nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// The median over the rounds of what `body` takes, per repetition.
double Measure(int rounds, int64_t repetitions, const std::function<void()>& body) {
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    const double start = Nanoseconds();
    body();
    times.push_back((Nanoseconds() - start) / static_cast<double>(repetitions));
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

// y = 2 x over four elements: what a handler compiled against 0.3 comes to.
abi::Error* Twice(abi::CallFrame* frame) {
  if (frame->extension_start != nullptr) {
    auto* query = reinterpret_cast<abi::MetadataExtension*>(frame->extension_start);
    query->metadata->api_version.minor = 3;
    return nullptr;
  }
  const auto* x = static_cast<const abi::Buffer*>(frame->args.args[0]);
  const auto* y = static_cast<const abi::Buffer*>(frame->rets.rets[0]);
  for (int64_t i = 0; i < x->dims[0]; ++i) {
    static_cast<float*>(y->data)[i] = 2 * static_cast<const float*>(x->data)[i];
  }
  return nullptr;
}

HandlerEntry TwiceEntry() {
  auto entry = MakeTypedEntry("twice", "Host", {nullptr, nullptr, nullptr, Twice}, "benchmark");
  if (!entry.ok()) std::abort();
  return *std::move(entry);
}

// A chain of calls; those of one `kind` in `kinds` are alike.
std::string Calls(int64_t n, int kinds, const char* sharding) {
  std::string text = absl::StrCat(
      "HloModule calls, num_partitions=8\nENTRY main {\n"
      "  v0 = f32[64,32] parameter(0), sharding=",
      sharding, "\n");
  for (int64_t i = 1; i <= n; ++i) {
    absl::StrAppend(&text, i == n ? "  ROOT v" : "  v", i, " = f32[64,32] custom-call(v", i - 1,
                    "), custom_call_target=\"twice\", api_version=API_VERSION_TYPED_FFI, "
                    "backend_config={kind = ",
                    i % kinds, " : i64}\n");
  }
  return text + "}\n";
}

absl::StatusOr<Module> Parsed(const std::string& text) {
  return ParseModule(std::make_shared<const std::string>(text), std::make_shared<Context>(),
                     "bench");
}

struct Counts {
  int64_t infer = 0, propagate = 0, partition = 0;
};

// Callbacks that keep the rows' sharding, and count.
PartitionerCallbacks Counting(Counts* counts) {
  PartitionerCallbacks callbacks;
  callbacks.infer_sharding_from_operands = [counts](const CustomCallView&,
                                                    absl::Span<const Sharding* const> operands)
      -> absl::StatusOr<std::vector<const Sharding*>> {
    ++counts->infer;
    return std::vector<const Sharding*>{operands[0]};
  };
  callbacks.propagate_user_sharding = [counts](
                                          const CustomCallView&, int,
                                          const Sharding* user) -> absl::StatusOr<const Sharding*> {
    ++counts->propagate;
    return user;
  };
  callbacks.partition = [counts](PartitionContext& context) -> absl::Status {
    ++counts->partition;
    const Sharding* s = context.operand_sharding(0);
    const auto x = context.Operand(0, s);
    if (!x.ok()) return x.status();
    const Shape* local = context.builder().shape(x->id);
    const auto y = context.CallTarget({*x}, {local});
    if (!y.ok()) return y.status();
    return context.SetResult(0, (*y)[0], s);
  };
  return callbacks;
}

int Main(int argc, char** argv) {
  std::string json;
  int64_t rounds = 5, calls = 100000;
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (absl::ConsumePrefix(&arg, "--json=")) {
      json = std::string(arg);
    } else if (!((absl::ConsumePrefix(&arg, "--rounds=") && absl::SimpleAtoi(arg, &rounds)) ||
                 (absl::ConsumePrefix(&arg, "--calls=") && absl::SimpleAtoi(arg, &calls))) ||
               rounds < 1 || calls < 1000) {
      std::fprintf(stderr, "usage: bench_custom_calls [--json=FILE] [--rounds=N] [--calls=N]\n");
      return 2;
    }
  }
  std::string out = "{\n";

  // Dispatch.
  constexpr int64_t kRepetitions = 200000;
  const HandlerEntry entry = TwiceEntry();
  float x[4] = {1, 2, 3, 4}, y[4];
  const BufferView operand = {ElementType::kF32, {4}, x}, result = {ElementType::kF32, {4}, y};
  const AttributeMapView attributes = *AttributeMapView::Parse("{kind = 1 : i64}");
  CallSite site;
  HandlerContext context;
  context.target = "twice";
  context.instruction = "call.1";
  context.attributes = &attributes;
  context.call_site = &site;
  int64_t dims[] = {4};
  abi::Buffer in_buffer = {abi::kBufferSize, nullptr, 11, x, 1, dims};
  abi::Buffer out_buffer = {abi::kBufferSize, nullptr, 11, y, 1, dims};
  void* in_pointer = &in_buffer;
  void* out_pointer = &out_buffer;
  abi::CallFrame frame = {};
  frame.args.args = &in_pointer;
  frame.rets.rets = &out_pointer;
  abi::Handler* volatile bare = Twice;
  const double direct = Measure(static_cast<int>(rounds), kRepetitions, [&] {
    for (int64_t i = 0; i < kRepetitions; ++i) bare(&frame);
  });
  bool failed = false;
  const double dispatched = Measure(static_cast<int>(rounds), kRepetitions, [&] {
    for (int64_t i = 0; i < kRepetitions; ++i) {
      if (!entry.host(context, {&operand, 1}, {&result, 1}).ok()) failed = true;
    }
  });
  std::printf("%-44s %10.1f ns\n%-44s %10.1f ns\n%-44s %10.1f ns\n", "the bare function", direct,
              "dispatch of the typed FFI", dispatched, "over the bare function",
              dispatched - direct);
  absl::StrAppend(&out, "  \"bare_ns\": ", direct, ",\n  \"dispatch_ns\": ", dispatched,
                  ",\n  \"over_ns\": ", dispatched - direct, ",\n");

  // A call of a program: its operands, results and layouts, too.
  HandlerRegistry handlers;
  failed |= !handlers.Register(TwiceEntry()).ok();
  constexpr int64_t kChain = 10000;
  std::string text = "HloModule run\nENTRY main {\n  v0 = f32[4] parameter(0)\n";
  for (int64_t i = 1; i <= kChain; ++i) {
    absl::StrAppend(&text, i == kChain ? "  ROOT v" : "  v", i, " = f32[4] custom-call(v", i - 1,
                    "), custom_call_target=\"twice\", api_version=API_VERSION_TYPED_FFI\n");
  }
  absl::StrAppend(&text, "}\n");
  const absl::StatusOr<Module> chain = Parsed(text);
  if (failed || !chain.ok()) {
    std::fprintf(stderr, "the handler or the chain failed: %s\n",
                 std::string(chain.status().message()).c_str());
    return 1;
  }
  const std::vector<Tensor> inputs = {Tensor::FromBytes(ElementType::kF32, {4}, x)};
  const double whole = Measure(static_cast<int>(rounds), kChain,
                               [&] { failed |= !Evaluate(*chain, inputs, &handlers).ok(); });
  std::printf("%-44s %10.1f ns\n", "a call of a program, lowered and run", whole);
  absl::StrAppend(&out, "  \"program_call_ns\": ", whole, ",\n");

  // Partitioning.
  const char* const kSharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}";
  TargetRegistry targets;
  failed |= !targets.RegisterRule("twice", {.rule = "i j -> i j"}).ok();
  PartitionOptions options;
  options.targets = &targets;
  double first = 0;
  absl::StrAppend(&out, "  \"partition\": [");
  for (int64_t n = std::max<int64_t>(1000, calls / 100); n <= calls; n *= 10) {
    const std::string module_text = Calls(n, 7, kSharding);
    std::vector<double> times;
    for (int64_t r = 0; r < rounds; ++r) {
      absl::StatusOr<Module> module = Parsed(module_text);
      if (!module.ok()) return 1;
      const double start = Nanoseconds();
      failed |= !Partition(*std::move(module), options).ok();
      times.push_back((Nanoseconds() - start) / static_cast<double>(n));
    }
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    const double each = times[times.size() / 2];
    if (first == 0) first = each;
    std::printf("%-34s %9lld %10.1f ns each, %.2f times the first\n",
                "partitioning calls by a rule:", static_cast<long long>(n), each, each / first);
    absl::StrAppend(&out, n > calls / 100 && n > 1000 ? ", " : "", "{\"calls\": ", n,
                    ", \"ns_each\": ", each, "}");
  }
  absl::StrAppend(&out, "],\n");

  // Callbacks: 7 kinds of calls.
  Counts counts;
  TargetRegistry counted;
  failed |= !counted.RegisterCustomCallPartitioner("twice", Counting(&counts)).ok();
  options.targets = &counted;
  constexpr int kKinds = 7;
  absl::StatusOr<Module> module = Parsed(Calls(1000, kKinds, kSharding));
  if (!module.ok()) return 1;
  const absl::Status status = Partition(*std::move(module), options).status();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 1;
  }
  std::printf("1000 calls of %d kinds: infer %lld, propagate %lld, partition %lld times\n", kKinds,
              static_cast<long long>(counts.infer), static_cast<long long>(counts.propagate),
              static_cast<long long>(counts.partition));
  absl::StrAppend(&out, "  \"callbacks\": {\"calls\": 1000, \"kinds\": ", kKinds,
                  ", \"infer\": ", counts.infer, ", \"propagate\": ", counts.propagate,
                  ", \"partition\": ", counts.partition, "}\n}\n");
  // The last call is distinct: its result is the program's, and whole.
  failed |= counts.infer > kKinds || counts.propagate > kKinds || counts.partition > kKinds + 1;
  if (!json.empty()) std::ofstream(json) << out;
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace shardcall

int main(int argc, char** argv) { return shardcall::Main(argc, argv); }
