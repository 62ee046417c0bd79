// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "shardcall/partitioner/api/version.h"
#include "shardcall/partitioner/runtime/execute/watched_threads.h"
#include "shardcall/partitioner/runtime/out_of_memory.h"
#include "shardcall/partitioner/tools/command.h"
#include "shardcall/partitioner/tools/crash_report.h"
#include "shardcall/sharding/base/whole_file.h"
#include "shardcall/sharding/codes.h"

namespace shardcall {
inline namespace internal {
namespace {

void PrintUsage(std::FILE* out) {
  std::fprintf(out,
               "shardcall: partitions HLO programs with custom calls, and runs them\n\n"
               "usage: shardcall VERB IN [--flag=value ...]     IN: a file, or - for stdin\n\n");
  for (const Verb& v : Verbs()) {
    std::fprintf(out, "  %-10s %s\n", std::string(v.name).c_str(), std::string(v.help).c_str());
  }
  std::fprintf(
      out,
      "\nshardcall VERB --help tells more, shardcall help E101 what a code means.\n"
      "Exit status: 0 done, 1 the input is at fault, 2 usage, 3 outputs differ or a contract is\n"
      "broken, 4 the environment lacks something\n");
}

void PrintHelp(const Verb& v) {
  std::printf("usage: shardcall %s %s\n\n%s\n\n", std::string(v.name).c_str(),
              std::string(v.synopsis).c_str(), std::string(v.help).c_str());
  for (const FlagSpec& f : v.flags) {
    std::string left = (f.name.size() > 1 ? "--" : "-") + std::string(f.name);
    if (!f.value.empty()) left += (f.name.size() > 1 ? "=" : " ") + std::string(f.value);
    std::printf("  %-34s %s\n", left.c_str(), std::string(f.help).c_str());
  }
  std::printf("\nexample:\n  %s\n", std::string(v.example).c_str());
}

// Help for `help E101` and `help partition`.
int HelpWith(const std::string& topic) {
  if (const CodeInfo* info = FindCode(topic)) {
    std::printf("%s  %s\n\nfor example\n  %s %s\n\nfix\n  %s\n", std::string(info->code).c_str(),
                std::string(info->about).c_str(), std::string(info->code).c_str(),
                std::string(info->example).c_str(), std::string(info->fix).c_str());
    return kExitOk;
  }
  for (const Verb& v : Verbs()) {
    if (topic != v.name) continue;
    PrintHelp(v);
    return kExitOk;
  }
  std::fprintf(stderr, "shardcall: there is no verb and no code \"%s\"\n\n", topic.c_str());
  PrintUsage(stderr);
  return kExitUsage;
}

int Main(const std::vector<std::string>& args) {
  if (args.empty()) {
    PrintUsage(stderr);
    return kExitUsage;
  }
  if (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
    if (args[0] == "help" && args.size() > 1) return HelpWith(args[1]);
    PrintUsage(stdout);
    return kExitOk;
  }
  if (args[0] == "--version") {
    std::printf("shardcall %s\n", kVersion);
    return kExitOk;
  }
  for (const Verb& v : Verbs()) {
    if (args[0] != v.name) continue;
    const std::vector<std::string> rest(args.begin() + 1, args.end());
    for (const std::string& a : rest) {
      if (a == "--help" || a == "-h") {
        PrintHelp(v);
        return kExitOk;
      }
    }
    absl::StatusOr<Flags> flags = Flags::Parse(rest, v.flags);
    if (!flags.ok()) return FailUsage(flags.status());
    return v.run(*flags);
  }
  std::fprintf(stderr, "shardcall: unknown verb \"%s\"\n\n", args[0].c_str());
  PrintUsage(stderr);
  return kExitUsage;
}

}  // namespace
}  // namespace internal
}  // namespace shardcall

int main(int argc, char** argv) {
  shardcall::ReportCrashes();
  shardcall::RemovePartFilesOnSignals();
  int code = shardcall::kExitInput;
  const auto run = [&]() -> absl::Status {
    code = shardcall::Main(std::vector<std::string>(argv + 1, argv + argc));
    return absl::OkStatus();
  };
  const absl::Status status = shardcall::WithinMemory("", run);
  if (!status.ok()) code = shardcall::Fail(status);
  // Report output that is lost because standard output is full or closed.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == shardcall::kExitOk) {
    code = shardcall::Fail(shardcall::FileError("E061", "standard output", "written"));
  }
  if (shardcall::ThreadsLeftBehind() > 0) {
    // Exit without destructors, since those threads still use static objects.
    std::fflush(nullptr);
    std::_Exit(code);
  }
  return code;
}
