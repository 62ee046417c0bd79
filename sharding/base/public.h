// SPDX-License-Identifier: Apache-2.0
// Marks the namespaces of installed headers, whose symbols libshardcall.so exports. All other
// symbols have hidden visibility, and are declared in the inner namespace shardcall::internal.
#ifndef SHARDCALL_SHARDING_BASE_PUBLIC_H_
#define SHARDCALL_SHARDING_BASE_PUBLIC_H_

#define SHARDCALL_PUBLIC __attribute__((visibility("default")))

#endif  // SHARDCALL_SHARDING_BASE_PUBLIC_H_
