// SPDX-License-Identifier: Apache-2.0
// Two layers that make trouble on purpose: fault fails the n-th call of a slot, latency delays
// calls.
#include <bitset>
#include <chrono>
#include <thread>

#include "builtin.hpp"
#include "host_services.hpp"

namespace chipdock::runtime {
namespace {

using SlotSet = std::bitset<kSlotCount>;

SlotSet set_of(const std::vector<SlotId>& slots) {
  SlotSet set;
  for (const SlotId slot : slots) set.set(static_cast<size_t>(slot));
  return set;
}

std::vector<std::string> split_colons(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

chipdock_status parse_code(const std::string& name, const std::string& item) {
  std::vector<std::string> names;
  for (chipdock_status code = CHIPDOCK_OK + 1; code <= CHIPDOCK_INTERNAL; ++code) {
    names.emplace_back(kit::status_name(code));
    if (name == names.back()) return code;
  }
  raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item, "' has no status '", name, "'",
        did_you_mean(name, names));
}

bool allocates(SlotId slot) {
  return slot == SlotId::memory_alloc || slot == SlotId::memory_alloc_async ||
         slot == SlotId::memory_host_alloc;
}

class Fault : public Layer {
 public:
  Fault(const SlotSet& slots, uint64_t nth, chipdock_status code)
      : slots_(slots), nth_(nth), code_(code) {}

  chipdock_status before(const Call& call, uint64_t& note) override {
    if (!slots_.test(static_cast<size_t>(call.slot))) return CHIPDOCK_OK;
    if (calls_.fetch_add(1, std::memory_order_relaxed) + 1 != nth_) return CHIPDOCK_OK;
    // What ends a handle ends it also when it fails, so it must reach the plugin: nothing may leak
    // here.
    if (ends_handle(call.slot)) {
      note = 1;
      return CHIPDOCK_OK;
    }
    return fail(call);
  }

  chipdock_status after(const Call& call, uint64_t note, chipdock_status status) override {
    return note == 1 ? fail(call) : status;
  }

 private:
  chipdock_status fail(const Call& call) const {
    chipdock_status code = code_;
    if (code == CHIPDOCK_OK)
      code = allocates(call.slot) ? CHIPDOCK_OUT_OF_MEMORY : CHIPDOCK_INTERNAL;
    const std::string text = std::string(kit::status_name(code)) + ": " +
                             slot_info(call.slot).name + " failed on purpose: call " +
                             std::to_string(nth_) + " of the fault layer";
    chipdock_fail(call.error, code, text.c_str());
    if (code == CHIPDOCK_DEVICE_LOST && call.error != nullptr)
      call.error->scope = CHIPDOCK_SCOPE_DEVICE;
    return code;
  }

  SlotSet slots_;
  uint64_t nth_;
  chipdock_status code_;  ///< OK: the usual one of the slot.
  std::atomic<uint64_t> calls_{0};
};

class Latency : public Layer {
 public:
  Latency(const SlotSet& slots, std::chrono::nanoseconds delay) : slots_(slots), delay_(delay) {}

  chipdock_status before(const Call& call, uint64_t&) override {
    if (!slots_.test(static_cast<size_t>(call.slot))) return CHIPDOCK_OK;
    // Sleeping takes some 60 us more than asked for, so short delays are spun.
    if (delay_ >= std::chrono::milliseconds(1)) {
      std::this_thread::sleep_for(delay_);
      return CHIPDOCK_OK;
    }
    const auto end = std::chrono::steady_clock::now() + delay_;
    while (std::chrono::steady_clock::now() < end) {
    }
    return CHIPDOCK_OK;
  }

  chipdock_status after(const Call&, uint64_t, chipdock_status status) override { return status; }

 private:
  SlotSet slots_;
  std::chrono::nanoseconds delay_;
};

std::chrono::nanoseconds parse_time(const std::string& text, const std::string& item) {
  const size_t unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(unit_at);
  const struct {
    const char* name;
    uint64_t nanoseconds;
  } units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  for (const auto& known : units) {
    if (unit != known.name) continue;
    const uint64_t number = parse_number(text.substr(0, unit_at), item);
    if (number > 60'000'000'000 / known.nanoseconds) break;
    return std::chrono::nanoseconds(number * known.nanoseconds);
  }
  raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item, "' has '", text,
        "' where a time belongs; a time is a whole number with ns, us, ms or s, at most 60s");
}

}  // namespace

std::unique_ptr<Layer> make_fault(const std::string& value, const PluginInfo& plugin) {
  const std::string item = "fault=" + value;
  const std::vector<std::string> parts = split_colons(value);
  if (parts.size() < 2 || parts.size() > 3) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item,
          "' is not SLOT:N or SLOT:N:CODE, as in fault=memory.alloc:3:OUT_OF_MEMORY");
  }
  const uint64_t nth = parse_number(parts[1], item);
  if (parts[0] == "host.allocate") {
    if (parts.size() == 3) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item,
            "' has a code, but a failed host.allocate returns NULL");
    }
    if (plugin.services != nullptr) plugin.services->fail_allocation(nth);
    return nullptr;
  }
  const chipdock_status code = parts.size() == 3 ? parse_code(parts[2], item) : CHIPDOCK_OK;
  return std::make_unique<Fault>(set_of(parse_slots(parts[0], item)), nth, code);
}

std::unique_ptr<Layer> make_latency(const std::string& value) {
  const std::string item = "latency=" + value;
  const size_t colon = value.find(':');
  const std::string slots = colon == value.npos ? "*" : value.substr(0, colon);
  const std::string time = colon == value.npos ? value : value.substr(colon + 1);
  return std::make_unique<Latency>(set_of(parse_slots(slots, item)), parse_time(time, item));
}

}  // namespace chipdock::runtime
