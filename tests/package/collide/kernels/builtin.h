// SPDX-License-Identifier: Apache-2.0
// A header of the project's own.
#ifndef COLLIDE_KERNELS_BUILTIN_H_
#define COLLIDE_KERNELS_BUILTIN_H_

#define COLLIDE_KERNELS_BUILTIN 1

#endif  // COLLIDE_KERNELS_BUILTIN_H_
