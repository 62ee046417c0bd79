// SPDX-License-Identifier: Apache-2.0
// Plugins with one fault each, chosen by a macro.
#include "shardcall/partitioner/bindings/c/shardcall_c.h"

#ifdef BAD_UNDEFINED
int nobody_has_this(void);
int uses_it(void) { return nobody_has_this(); }
#endif

#ifdef BAD_START_CRASH
#include <signal.h>
__attribute__((constructor)) static void Start(void) { raise(SIGSEGV); }
#endif

// For a while, so that a test can see what becomes of it.
#if defined(BAD_HANG) || defined(BAD_ENTRY_HANG) || defined(BAD_START_HANG)
#include <time.h>
static void Hang(void) {
  const struct timespec second = {1, 0};
  nanosleep(&second, 0);
}
#endif
#ifdef BAD_START_HANG
__attribute__((constructor)) static void Start(void) { Hang(); }
#endif

#ifndef BAD_NO_ENTRY
static int Register(const Shardcall_Registrar* registrar) {
  Shardcall_Target target = SHARDCALL_INIT(Shardcall_Target);
#ifdef BAD_TWO_RULES
  target.name = "t";
  target.rule = "a -> a";
  target.has_batch_dims = 1;
#endif
#ifdef BAD_NO_REGISTRAR
  target.name = "t";
  target.rule = "a -> a";
  registrar->register_target(0, &target);
  return 0;
#endif
#ifdef BAD_HANG
  target.name = "before";
  target.rule = "a -> a";
  registrar->register_target(registrar, &target);
  Hang();
  target.name = "after";
#endif
#ifdef BAD_CRASH
  *(volatile int*)0 = 1;
#endif
  registrar->register_target(registrar, &target);  // nobody looks at what it returns
  return 0;
}

const Shardcall_Plugin* shardcall_plugin(void) {
  static Shardcall_Plugin plugin = SHARDCALL_INIT(Shardcall_Plugin);
#ifdef BAD_ENTRY_HANG
  Hang();
#endif
#ifdef BAD_ENTRY_CRASH
  *(volatile int*)0 = 1;
#endif
  plugin.version_major = SHARDCALL_C_MAJOR;
#ifdef BAD_VERSION
  plugin.version_minor = SHARDCALL_C_MINOR + 1;
#else
  plugin.version_minor = SHARDCALL_C_MINOR;
#endif
  plugin.name = "bad_plugin";
  plugin.register_targets = Register;
#ifdef BAD_NULL
  return 0;
#endif
  return &plugin;
}
#endif
