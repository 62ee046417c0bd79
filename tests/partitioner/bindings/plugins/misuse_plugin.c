// SPDX-License-Identifier: Apache-2.0
// A target whose partition callback misuses what it is given, as attribute `mode` says,
// looks at no code, and then does the right thing.
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

#define CONTEXT const Shardcall_PartitionContext*

static void WithoutContext(CONTEXT c) {
  const Shardcall_Value x = {0};
  Shardcall_Value y = {0};
  Shardcall_Shape shape = SHARDCALL_INIT(Shardcall_Shape);
  c->operand_sharding(0, 0);
  c->result_sharding(0, 0);
  c->operand(0, 0, 0, &y);
  c->shape(0, x, &shape);
  c->call_target(0, &x, 0, &y);
  c->call_target_with(0, "{}", 2, &x, 0, &y);
  c->add_program(0, "", 0, &x, 1, &y, 1);
  c->partition_id(0, &y);
  c->axis_index(0, 0, &y);
  c->all_reduce(0, x, "add", 0, &y);
  c->all_gather(0, x, 0, 0, &y);
  c->reduce_scatter(0, x, 0, "add", 0, &y);
  c->all_to_all(0, x, 0, 0, 0, &y);
  c->collective_permute(0, x, 0, 0, 0, 0, &y);
  c->reshard(0, x, &shape, 0, 0, &y);
  c->set_result(0, 0, x, 0);
}

static void WithoutView(const Shardcall_CallView* v) {
  int64_t i = 0;
  double f = 0;
  int b = 0;
  const char* s = 0;
  size_t n = 0;
  v->get_int(0, "mode", &i);
  v->get_float(0, "mode", &f);
  v->get_bool(0, "mode", &b);
  v->get_string(0, "mode", &s, &n);
  v->parse_sharding(0, "[{}]", 1);
  v->replicated(0, 1);
  v->with_dim(0, 0, 0, 0);
  v->with_partial(0, 0, "add", 0);
  v->sharding_text(0, 0);
  v->sharding_rank(0, 0);
  v->num_shards(0, 0, 0);
  v->set_message(0, "nobody");
}

static int Partition(CONTEXT c, void* data) {
  (void)data;
  const Shardcall_CallView* v = c->call;
  const char* const typo[] = {"no_such_axis", 0};
  const char* const none[] = {0};
  const Shardcall_Sharding* whole = v->replicated(v, 1);
  Shardcall_Value x, y, other;
  int64_t mode = 0;
  v->get_int(v, "mode", &mode);
  if (c->operand(c, 0, whole, &x) != 0) return 13;
  if (mode == 1) v->with_dim(v, v->with_dim(v, whole, 0, typo), 0, none);
  if (mode == 2) v->sharding_text(v, 0);
  if (mode == 3) v->sharding_rank(v, 0);
  if (mode == 4) v->num_shards(v, 0, 0);
  if (mode == 5) v->with_partial(v, 0, "add", none);
  if (mode == 6) c->all_reduce(c, x, "frob", none, &other);
  if (mode == 7) c->add_program(c, "garbage", 7, &x, 1, &other, 1);
  if (mode == 8) WithoutContext(c);
  if (mode == 9) WithoutView(v);
  if (c->call_target(c, &x, &whole, &y) != 0) return 13;
  return c->set_result(c, 0, y, whole);
}

static int Copy(const Shardcall_Call* call, void* data) {
  (void)data;
  int64_t i = 0;
  call->get_int(0, "mode", &i);
  call->set_message(0, "nobody");
  call->device(0);
  for (int64_t k = 0; k < call->operands[0].dims[0]; ++k) {
    ((float*)call->results[0].data)[k] = ((const float*)call->operands[0].data)[k];
  }
  return 0;
}

static int Register(const Shardcall_Registrar* registrar) {
  Shardcall_Partitioner partitioner = SHARDCALL_INIT(Shardcall_Partitioner);
  partitioner.partition = Partition;
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
  target.name = "misuse";
  target.partitioner = &partitioner;
  target.handler = Copy;
  return registrar->register_target(registrar, &target);
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
  plugin.version_major = SHARDCALL_C_MAJOR;
  plugin.version_minor = SHARDCALL_C_MINOR;
  plugin.name = "misuse";
  plugin.register_targets = Register;
  return &plugin;
}
