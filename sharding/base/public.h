// SPDX-License-Identifier: Apache-2.0
// What libshardcall.so shows: the namespaces of headers that are installed. All else is
// compiled hidden.
#ifndef SHARDCALL_SHARDING_BASE_PUBLIC_H_
#define SHARDCALL_SHARDING_BASE_PUBLIC_H_

#define SHARDCALL_PUBLIC __attribute__((visibility("default")))

#endif  // SHARDCALL_SHARDING_BASE_PUBLIC_H_
