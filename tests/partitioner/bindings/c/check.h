// SPDX-License-Identifier: Apache-2.0
/* Checks for test programs in C. A failed one is printed, and main returns 1. */
#ifndef SHARDCALL_TESTS_PARTITIONER_BINDINGS_C_CHECK_H_
#define SHARDCALL_TESTS_PARTITIONER_BINDINGS_C_CHECK_H_

#include <stdio.h>
#include <string.h>

#include "shardcall/partitioner/bindings/c/shardcall_c.h"

static int failures = 0;

#define CHECK_THAT(condition)                                                 \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ++failures;                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

/* No error. */
#define CHECK_OK(call)                                                                       \
  do {                                                                                       \
    Shardcall_Error* check_error = (call);                                                   \
    if (check_error != NULL) {                                                               \
      ++failures;                                                                            \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, Shardcall_Error_Text(check_error)); \
      Shardcall_Error_Destroy(check_error);                                                  \
    }                                                                                        \
  } while (0)

/* An error with that code whose text has that part. */
#define CHECK_FAILS(call, code, part)                                                         \
  do {                                                                                        \
    Shardcall_Error* check_error = (call);                                                    \
    if (strcmp(Shardcall_Error_Code(check_error), code) != 0 ||                               \
        strstr(Shardcall_Error_Text(check_error), part) == NULL) {                            \
      ++failures;                                                                             \
      fprintf(stderr, "%s:%d: expected %s with \"%s\", have: %s\n", __FILE__, __LINE__, code, \
              part, Shardcall_Error_Text(check_error));                                       \
    }                                                                                         \
    Shardcall_Error_Destroy(check_error);                                                     \
  } while (0)

static inline Shardcall_Module* Read(const char* text) {
  Shardcall_Module* module = NULL;
  CHECK_OK(Shardcall_Module_Read(text, strlen(text), "test.hlo", &module));
  return module;
}

/* Whether `text`, which is destroyed, has that part. */
static inline int TextHas(Shardcall_Text* text, const char* part) {
  const int has = strstr(Shardcall_Text_Data(text), part) != NULL;
  if (!has) fprintf(stderr, "no \"%s\" in:\n%s\n", part, Shardcall_Text_Data(text));
  Shardcall_Text_Destroy(text);
  return has;
}

#endif /* SHARDCALL_TESTS_PARTITIONER_BINDINGS_C_CHECK_H_ */
