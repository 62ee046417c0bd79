// SPDX-License-Identifier: Apache-2.0
// What the plugin that wraps a plugin adds to a compilation: converting, partitioning and
// writing, apart from XLA's own.
//
//   bench_take_over --plugin=xla_cpu_pjrt.so [--rounds=20] PROGRAM.mlir...
//
// Programs are MLIR as a framework hands them over (JAX: module_to_bytecode, or as_text of
// a lowered function). First quartiles in milliseconds, by the clock and, where other
// processes take the cores, by what all threads computed. Converting is work that XLA does
// in any case when it is given MLIR.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "shardcall/partitioner/bindings/pjrt/compile_options.h"
#include "shardcall/partitioner/bindings/pjrt/pjrt_client.h"
#include "shardcall/partitioner/bindings/pjrt/program_source.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/take_over.h"
#include "shardcall/partitioner/bindings/pjrt_wrapper/wrapper_settings.h"
#include "shardcall/partitioner/ir/stablehlo/stablehlo_input.h"

namespace shardcall {
inline namespace internal {
namespace pjrt {
namespace {

// Of the rounds of one thing.
class Times {
 public:
  // Runs it once more.
  template <typename Work>
  absl::Status Add(const Work& work) {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t computed = std::clock();
    SHARDCALL_RETURN_IF_ERROR(work());
    clock_.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
            .count());
    computed_.push_back(1e3 * static_cast<double>(std::clock() - computed) / CLOCKS_PER_SEC);
    return absl::OkStatus();
  }
  std::string ToString() const {
    return absl::StrFormat("%.2f ms (computing %.2f)", FirstQuartile(clock_),
                           FirstQuartile(computed_));
  }

 private:
  static double FirstQuartile(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 4];
  }
  std::vector<double> clock_, computed_;
};

absl::Status Run(const std::string& path, const std::shared_ptr<const Client>& client,
                 const Registry& registry, int rounds) {
  std::ifstream in(path, std::ios::binary);
  const std::string code((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const int64_t said = StablehloPartitions(code);
  const std::string options = PlainOptions(said > 0 ? said : 8, /*shardy=*/true, /*spmd=*/true);
  const Converter converter(&client->plugin(), client->platform(), client->handle(), nullptr);
  const TakeOverContext context{.plugin = &client->plugin(),
                                .converter = &converter,
                                .platform = client->platform(),
                                .registry = &registry,
                                .allow_replicate = {},
                                .framework_handlers = {}};
  Times convert, partition, all;
  std::string hlo;
  for (int k = 0; k < rounds; ++k) {
    SHARDCALL_RETURN_IF_ERROR(convert.Add([&]() -> absl::Status {
      SHARDCALL_ASSIGN_OR_RETURN(hlo, converter.ToHlo(code, options));
      return absl::OkStatus();
    }));
    SHARDCALL_RETURN_IF_ERROR(partition.Add([&] {
      return TakeOver({.format = kHloFormat, .code = hlo, .options = options}, context).status();
    }));
    SHARDCALL_RETURN_IF_ERROR(all.Add([&] {
      return TakeOver({.format = kMlirFormat, .code = code, .options = options}, context).status();
    }));
  }
  std::printf("%s: %zu bytes, converted in %s, taken over as HLO in %s, all %s\n", path.c_str(),
              code.size(), convert.ToString().c_str(), partition.ToString().c_str(),
              all.ToString().c_str());
  return absl::OkStatus();
}

absl::Status Main(int argc, char** argv) {
  std::string plugin;
  int rounds = 20;
  std::vector<std::string> programs;
  for (int k = 1; k < argc; ++k) {
    absl::string_view arg = argv[k];
    if (absl::ConsumePrefix(&arg, "--plugin="))
      plugin = std::string(arg);
    else if (absl::ConsumePrefix(&arg, "--rounds="))
      (void)absl::SimpleAtoi(arg, &rounds);
    else
      programs.emplace_back(arg);
  }
  SHARDCALL_ASSIGN_OR_RETURN(std::shared_ptr<const Plugin> opened, Plugin::Open(plugin));
  SHARDCALL_ASSIGN_OR_RETURN(const std::shared_ptr<const Client> client,
                             Client::Create(std::move(opened), 8));
  Registry registry;
  SHARDCALL_RETURN_IF_ERROR(FillRegistry({}, &registry));
  for (const std::string& path : programs) {
    SHARDCALL_RETURN_IF_ERROR(Run(path, client, registry, rounds));
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace pjrt
}  // namespace internal
}  // namespace shardcall

int main(int argc, char** argv) {
  const absl::Status status = shardcall::pjrt::Main(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
