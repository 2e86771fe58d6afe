// SPDX-License-Identifier: Apache-2.0
// Parsing of settings.
#include "options.hpp"

#include <cstdlib>
#include <cstring>
#include <string>

#include "abi.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr int kMaxDevices = 256;
constexpr int kMaxThreads = 4096;

int64_t parse_number(const char* text, const char* where, int64_t low, int64_t high) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text, &end, 10);
  kit::require(end != text && *end == '\0' && value >= low && value <= high, where, "=", text,
               " is not a whole number from ", low, " to ", high);
  return value;
}

bool parse_switch(const char* text, const char* where) {
  if (std::strcmp(text, "1") == 0 || std::strcmp(text, "true") == 0) return true;
  kit::require(std::strcmp(text, "0") == 0 || std::strcmp(text, "false") == 0, where, "=", text,
               " is neither 0 nor 1");
  return false;
}

uint64_t parse_bytes(const char* text, const char* where) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  const std::string unit = end;
  int shift = unit.empty() || unit == "B" ? 0 : -1;
  if (unit == "KiB") shift = 10;
  if (unit == "MiB") shift = 20;
  if (unit == "GiB") shift = 30;
  const bool valid = end != text && *text != '-' && shift >= 0 && number > 0 &&
                     number <= (uint64_t{1} << 62 >> (shift > 0 ? shift : 0));
  kit::require(valid, where, "=", text, " is not a size like 1048576, 64MiB or 2GiB");
  return number << shift;
}

/// Value of a variable, or NULL if it is unset or empty.
const char* environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Settings settings_from_environment(int default_threads) {
  Settings settings;
  settings.threads = default_threads;
  settings.isa = parse_isa(std::getenv("CHIPDOCK_CPU_ISA"), "CHIPDOCK_CPU_ISA");
  if (const char* text = environment("CHIPDOCK_CPU_DEVICES")) {
    settings.devices = static_cast<int>(parse_number(text, "CHIPDOCK_CPU_DEVICES", 0, kMaxDevices));
  }
  if (const char* text = environment("CHIPDOCK_CPU_THREADS")) {
    settings.threads = static_cast<int>(parse_number(text, "CHIPDOCK_CPU_THREADS", 1, kMaxThreads));
  }
  if (const char* text = environment("CHIPDOCK_CPU_STRICT")) {
    settings.strict = parse_switch(text, "CHIPDOCK_CPU_STRICT");
  }
  if (const char* text = environment("CHIPDOCK_CPU_MEMORY")) {
    settings.memory_limit = parse_bytes(text, "CHIPDOCK_CPU_MEMORY");
  }
  return settings;
}

void apply_options(const chipdock_option* const* options, uint32_t count, bool opening,
                   Settings& settings) {
  kit::require(count == 0 || options != nullptr, count, " options were announced and NULL given");
  for (uint32_t i = 0; i < count; ++i) {
    const auto option =
        kit::read_struct(options[i], CHIPDOCK_CPU_FIRST(chipdock_option, value), "option");
    kit::require(option.key != nullptr && option.value != nullptr, "option ", i,
                 " has a NULL key or value");
    const std::string key = option.key;
    if (key == "threads") {
      settings.threads = static_cast<int>(parse_number(option.value, "threads", 1, kMaxThreads));
    } else if (key == "isa") {
      settings.isa = parse_isa(option.value, "isa");
    } else if (key == "memory") {
      settings.memory_limit = parse_bytes(option.value, "memory");
    } else if (key == "strict") {
      const bool strict = parse_switch(option.value, "strict");
      if (opening && strict != settings.strict) {
        kit::fail(CHIPDOCK_FAILED_PRECONDITION, "strict=", option.value,
                  " contradicts this plugin instance; set CHIPDOCK_CPU_STRICT=", option.value,
                  " or the option strict of query, before the devices are described");
      }
      settings.strict = strict;
    } else if (key == "devices" && !opening) {
      settings.devices = static_cast<int>(parse_number(option.value, "devices", 0, kMaxDevices));
    } else {
      kit::fail(CHIPDOCK_INVALID_ARGUMENT, "option ", key,
                " is unknown; use threads, isa, memory, strict", opening ? "" : " or devices");
    }
  }
}

}  // namespace chipdock::plugin::cpu
