// SPDX-License-Identifier: Apache-2.0
// An allocator in place of the C library's, for LD_PRELOAD. Memory that another one gave ends
// the process.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA ((size_t)64 << 30)
#define CLASSES 40  // the powers of two

typedef struct Block {
  struct Block* next;  // of the free ones of its class
  size_t class;
} Block;
// Stands before what is given out, which need not begin where the block does.
typedef struct {
  Block* block;
  size_t size;
} Header;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *arena, *end;
static Block* unused[CLASSES];

static void* Allocate(size_t size, size_t alignment) {
  const size_t wanted = sizeof(Block) + sizeof(Header) + alignment + size;
  if (alignment < 16) alignment = 16;
  if (wanted < size || wanted > ARENA / 2) return NULL;
  size_t class = 6;
  while (((size_t)1 << class) < wanted + 16) ++class;
  pthread_mutex_lock(&mutex);
  if (arena == NULL) {
    end = arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) abort();
  }
  Block* block = unused[class];
  if (block != NULL) {
    unused[class] = block->next;
  } else if ((size_t)(arena + ARENA - end) >= (size_t)1 << class) {
    block = (Block*)end;
    end += (size_t)1 << class;
  }
  pthread_mutex_unlock(&mutex);
  if (block == NULL) return NULL;
  block->class = class;
  char* const first = (char*)block + sizeof(Block) + sizeof(Header);
  char* const given = (char*)(((uintptr_t)first + alignment - 1) & ~(uintptr_t)(alignment - 1));
  ((Header*)given)[-1] = (Header){block, size};
  return given;
}

static Header* HeaderOf(void* given) {
  if ((char*)given < arena || (char*)given >= end) abort();  // of another allocator
  return (Header*)given - 1;
}

void* malloc(size_t size) { return Allocate(size, 16); }
void free(void* given) {
  if (given == NULL) return;
  Block* const block = HeaderOf(given)->block;
  pthread_mutex_lock(&mutex);
  block->next = unused[block->class];
  unused[block->class] = block;
  pthread_mutex_unlock(&mutex);
}
void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  void* const given = Allocate(bytes, 16);
  return given == NULL ? NULL : memset(given, 0, bytes);
}
void* realloc(void* given, size_t size) {
  void* const larger = Allocate(size, 16);
  if (given == NULL || larger == NULL) return larger;
  const size_t before = HeaderOf(given)->size;
  memcpy(larger, given, before < size ? before : size);
  free(given);
  return larger;
}
void* memalign(size_t alignment, size_t size) { return Allocate(size, alignment); }
void* aligned_alloc(size_t alignment, size_t size) { return Allocate(size, alignment); }
int posix_memalign(void** given, size_t alignment, size_t size) {
  *given = Allocate(size, alignment);
  return *given == NULL ? ENOMEM : 0;
}
size_t malloc_usable_size(void* given) { return given == NULL ? 0 : HeaderOf(given)->size; }
