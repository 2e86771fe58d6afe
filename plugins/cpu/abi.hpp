// SPDX-License-Identifier: Apache-2.0
// The C ABI as this plugin sees it: also the tables that are not frozen yet.
#ifndef CHIPDOCK_PLUGIN_CPU_ABI_HPP_
#define CHIPDOCK_PLUGIN_CPU_ABI_HPP_

#ifndef CHIPDOCK_UNSTABLE
#define CHIPDOCK_UNSTABLE
#endif
#ifndef CHIPDOCK_PLUGIN_BUILD
#define CHIPDOCK_PLUGIN_BUILD
#endif

#include "chipdock/chipdock.h"
#include "chipdock/plugin_kit.hpp"

/// Size of a struct when it was first published, told by its last field then. [BASE-4]
#define CHIPDOCK_CPU_FIRST(type, field) (offsetof(type, field) + sizeof(decltype(type::field)))

#endif  // CHIPDOCK_PLUGIN_CPU_ABI_HPP_
