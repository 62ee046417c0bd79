// SPDX-License-Identifier: Apache-2.0
// The table of verbs: names, flags, help.
#include "shardcall/partitioner/tools/command.h"

namespace shardcall {
inline namespace internal {

const std::vector<FlagSpec>& PartitionFlags() {
  static const auto* const kFlags = new std::vector<FlagSpec>{
      {"num-partitions", "N", "devices; may be left out where the module says it",
       FlagSpec::Kind::kInteger},
      {"remesh", "AXIS=SIZE,...", "other sizes for mesh axes; x0 is the first that has no name"},
      {"no-propagate", "", "what is unannotated is replicated"},
      {"allow-replicate", "TARGET,...", "custom-call targets that may be gathered, or all"},
      {"plugin", "FILE", "a plugin (.so) or a manifest (.json); may be repeated"},
      {"max-reshard-bytes", "N", "fail where one reshard, fetch or broadcast sends more",
       FlagSpec::Kind::kInteger},
      {"max-memory", "SIZE", "fail where a device would need more, as 16GiB",
       FlagSpec::Kind::kBytes},
      {"conflicts", "ORDER",
       "which of two factors takes an axis: cheapest (default), wait, larger, smaller"},
      {"search", "none|small|all",
       "for which programs the shardings of unannotated values are chosen together by cost: small "
       "(default), those of up to 350 instructions; without effect beside an order of --conflicts"},
      {"strict-partial", "",
       "sums over devices are reduced before they are multiplied, divided or used in a dot"},
      {"cost", "NAME,NAME=N,...",
       "the machine: host, h100, tpu_v5p; bandwidth, flops, memory per second; latency; trips; "
       "host_devices, network and network_latency; or bandwidth.AXIS, latency.AXIS; what its "
       "backend has: collectives=NAME+NAME, groups=any|even|grid"},
      {"converter", "FILE",
       "the PJRT plugin for StableHLO that needs one; default: one that is found"},
      {"max-input", "SIZE", "most that is read of a program or manifest, as 512MB; default 4GiB",
       FlagSpec::Kind::kBytes},
  };
  return *kFlags;
}

namespace {

// The flags of run and verify for execution.
std::vector<FlagSpec> ExecutionFlags() {
  return Joined(
      {{"backend", "NAME", "inprocess (default), mpi, nccl, pjrt"},
       {"pjrt-plugin", "FILE", "of --backend=pjrt: the plugin that runs it"},
       {"pjrt-option", "NAME=VALUE", "what the plugin's client is made with; may be repeated"},
       {"random-constants", "SEED", "small integers where the text left out values, {...}",
        FlagSpec::Kind::kInteger},
       {"own-shards-only", "",
        "mpi, nccl: each rank has its own --inputs, which need hold only its shards"},
       {"no-overlap", "", "devices do not compute while a collective is under way"},
       {"deadline", "SECONDS", "longest that all of it may take; default: no limit",
        FlagSpec::Kind::kNumber},
       {"wait", "SECONDS", "longest wait for another device or a kernel; default --deadline, or 60",
        FlagSpec::Kind::kNumber}},
      PartitionFlags());
}

}  // namespace

std::vector<FlagSpec> Joined(std::vector<FlagSpec> a, const std::vector<FlagSpec>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const std::vector<Verb>& Verbs() {
  static const auto* const kVerbs = new std::vector<Verb>{
      {"print",
       "IN [-o OUT]",
       "parse, verify, print canonical text",
       "shardcall print model.hlo -o canonical.hlo",
       {{"o", "OUT", "where to write, binary if it ends in .pb; default stdout"},
        {"short", "", "without % before names, signatures and metadata"},
        {"no-metadata", "", "without metadata and the tables of source lines"},
        {"plugin", "FILE", "a plugin (.so) or a manifest (.json); may be repeated"},
        {"converter", "FILE",
         "the PJRT plugin for StableHLO that needs one; default: one that is found"},
        {"max-input", "SIZE", "most that is read of a program or manifest, as 512MB; default 4GiB",
         FlagSpec::Kind::kBytes}},
       RunPrint},
      {"propagate", "IN [--num-partitions=N] [-o OUT]",
       "the same program with the decided sharding on every instruction",
       "shardcall propagate model.hlo --num-partitions=8 --trace",
       Joined(
           {{"o", "OUT", "where to write, binary if it ends in .pb; default stdout"},
            {"named", "", "shardings in mesh form"},
            {"trace", "", "where each sharding came from, and conflicts, in place of the program"},
            {"whole-reasons", "",
             "--trace: every step from the origin, not the first and last 8 of a long way"},
            {"rules", "", "each op's rule, in place of the program"},
            {"allow-output", "1,0,..", "which flat results may be given a sharding"},
            {"allow-parameters", "1,0,..", "which flat parameters may be given one"}},
           PartitionFlags()),
       RunPropagate},
      {"partition", "IN [--num-partitions=N] [-o OUT] [--report=FILE.json]",
       "the per-device SPMD program",
       "shardcall partition model.hlo --num-partitions=8 -o local.hlo --report=report.json",
       Joined({{"o", "OUT", "where to write, binary if it ends in .pb; default stdout"},
               {"report", "FILE.json", "collectives, bytes, times, fallbacks"},
               {"overlap", "", "collectives as pairs with computation between their ends, as run"},
               {"dump", "DIR", "the text of every stage, numbered"}},
              PartitionFlags()),
       RunPartition},
      {"run", "IN [--num-partitions=N] [--inputs=F.npz | --random-inputs=SEED]",
       "partition, execute on N devices, gather",
       "shardcall run model.hlo --num-partitions=8 --inputs=in.npz --outputs=out.npz",
       Joined({{"inputs", "F.npz", "arg0, arg1, ... in parameter order"},
               {"random-inputs", "SEED", "small integers", FlagSpec::Kind::kInteger},
               {"outputs", "F.npz", "out0, out1, ...; tuples flattened"}},
              ExecutionFlags()),
       RunRun},
      {"verify", "IN [--num-partitions=N] [--seed=S]",
       "partitioned against unpartitioned on exact inputs; JSON on stdout",
       "shardcall verify model.hlo --num-partitions=8",
       Joined({{"seed", "S", "of the random inputs; default 0", FlagSpec::Kind::kInteger},
               {"inputs", "F.npz", "these inputs in place of random ones"}},
              ExecutionFlags()),
       RunVerify},
      {"check-rule",
       "[CALL.hlo] --target=NAME [--plugin=FILE] [--seed=S] [--vjp]",
       "prove a target's sharding rule by its kernel; JSON on stdout, status 3 if it does not hold",
       "shardcall check-rule --target=rms_norm",
       {{"target", "NAME", "of the custom call"},
        {"plugin", "FILE", "a plugin (.so) or a manifest (.json); may be repeated"},
        {"inputs", "F.npz", "arg0, arg1, ... of the program's call in place of random operands"},
        {"deadline", "SECONDS", "longest that a kernel may take; default 20",
         FlagSpec::Kind::kNumber},
        {"vjp", "", "hold the target's VJP against finite differences, and check its rule"},
        {"seed", "S", "of the random inputs; default 0", FlagSpec::Kind::kInteger},
        {"converter", "FILE",
         "the PJRT plugin for StableHLO that needs one; default: one that is found"},
        {"max-input", "SIZE", "most that is read of a program or manifest, as 512MB; default 4GiB",
         FlagSpec::Kind::kBytes}},
       RunCheckRule},
      {"compile", "IN --pjrt-plugin=FILE --topology=1x1x8 [--target-config=FILE] [-o OUT]",
       "partition, and compile by a PJRT plugin for devices that need not be there; memory as JSON",
       "shardcall compile model.hlo --pjrt-plugin=xla_cuda_plugin.so --topology=1x1x8 "
       "--target-config=h100.txtpb -o model.bin",
       Joined(
           {{"pjrt-plugin", "FILE", "the plugin that compiles"},
            {"topology", "SHAPE", "slices x hosts x devices, as the plugin reads it"},
            {"target-config", "FILE", "text of XLA's GpuTargetConfigProto: the kind of GPU"},
            {"pjrt-option", "NAME=VALUE", "what else the topology is made with; may be repeated"},
            {"o", "OUT", "where to write what was compiled, for the plugin to load"}},
           PartitionFlags()),
       RunCompile},
      {"explain", "IN [--num-partitions=N] [--format=text|json|html] [--expect=CONTRACT]",
       "every collective: bytes, who asked for it, from -> to, why",
       "shardcall explain model.hlo --num-partitions=8 --expect=\"all-gather=0, bytes<=1GiB\"",
       Joined({{"format", "text|json|html", "default text"},
               {"expect", "CONTRACT", "fail with status 3 where the totals break it"},
               {"whole-reasons", "",
                "every step of why a value is sharded so, not the first and last 8 of a long way"},
               {"o", "OUT", "where to write; default stdout"}},
              PartitionFlags()),
       RunExplain},
      {"reshard",
       "--shape=f32[64,32] --from=SHARDING --to=SHARDING --num-partitions=N",
       "the plan of one reshard, its bytes and peak memory, the lower bound",
       "shardcall reshard --shape=f32[64,32] --from='{devices=[8,1]<=[8]}' "
       "--to='{devices=[1,8]<=[8]}' --num-partitions=8",
       {{"shape", "SHAPE", "global shape"},
        {"from", "SHARDING", "as in HLO text"},
        {"to", "SHARDING", "as in HLO text"},
        {"num-partitions", "N", "devices", FlagSpec::Kind::kInteger}},
       RunReshard},
      {"targets",
       "[--plugin=FILE]",
       "custom-call targets that are registered",
       "shardcall targets",
       {{"plugin", "FILE", "a plugin (.so) or a manifest (.json); may be repeated"},
        {"max-input", "SIZE", "most that is read of a manifest, as 512MB; default 4GiB",
         FlagSpec::Kind::kBytes}},
       RunTargets},
  };
  return *kVerbs;
}

}  // namespace internal
}  // namespace shardcall
