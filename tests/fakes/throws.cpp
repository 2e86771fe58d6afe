// SPDX-License-Identifier: Apache-2.0
// Breaks BASE-9: exceptions leave it. From query with the option "throw"="query", else from count.
#define FAKE_ID "chipdock.throws"
#include <stdexcept>
#include <string>

#include "fake.h"

namespace {

chipdock_status CHIPDOCK_CALL throwing_count(chipdock_plugin*, int32_t*, chipdock_error*) {
  throw std::runtime_error("the vendor's library was moved");
}

}  // namespace

#undef FAKE_COUNT
#define FAKE_COUNT throwing_count
#undef FAKE_QUERY_HOOK
#define FAKE_QUERY_HOOK \
  if (desc->option_count != 0 && std::string(desc->options[0]->value) == "query") throw 42;

FAKE_PLUGIN()
