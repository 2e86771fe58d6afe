// SPDX-License-Identifier: Apache-2.0
// Reads a layer spec. Every mistake in it is an INVALID_ARGUMENT that shows what would have been
// right.
#include "layers.hpp"

#include <cstdlib>
#include <set>

#include "builtin.hpp"

namespace chipdock::runtime {
namespace {

const std::vector<std::string>& layer_names() {
  static const auto& names = *new std::vector<std::string>{"validate", "trace", "record", "fault",
                                                           "latency",  "mask",  "none"};
  return names;
}

struct Item {
  std::string name;
  std::string value;
  std::string text;  ///< As written, for messages.
};

std::vector<Item> split(const std::string& spec) {
  std::vector<Item> items;
  size_t begin = 0;
  while (begin <= spec.size()) {
    const size_t end = std::min(spec.find(',', begin), spec.size());
    const std::string text = spec.substr(begin, end - begin);
    begin = end + 1;
    const size_t equals = text.find('=');
    Item item{text.substr(0, equals), "", text};
    if (equals != text.npos) item.value = text.substr(equals + 1);
    items.push_back(item);
  }
  return items;
}

void check_item(const Item& item, std::set<std::string>& seen) {
  bool known = false;
  std::string all;
  for (const auto& name : layer_names()) {
    known = known || name == item.name;
    all += (all.empty() ? "" : ", ") + name;
  }
  if (!known) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec has an unknown layer '", item.name, "'",
          did_you_mean(item.name, layer_names()), "; layers are ", all);
  }
  const bool has_equals = item.text.size() > item.name.size();
  const bool wants_value = item.name == "fault" || item.name == "latency" || item.name == "mask" ||
                           item.name == "record";
  if (has_equals ? item.value.empty() || item.name == "validate" || item.name == "none"
                 : wants_value) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item.text, "' ",
          wants_value || item.name == "trace"
              ? "lacks its value, as in fault=memory.alloc:3, "
                "latency=5us, mask=required, record=FILE or trace=FILE"
              : "takes no value");
  }
  const bool repeatable = item.name == "fault" || item.name == "latency";
  if (!seen.insert(item.name).second && !repeatable) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec has '", item.name, "' twice");
  }
}

}  // namespace

std::vector<SlotId> parse_slots(const std::string& pattern, const std::string& item) {
  std::vector<SlotId> slots;
  std::vector<std::string> names = {"*"};
  const bool table = pattern.size() > 2 && pattern.compare(pattern.size() - 2, 2, ".*") == 0;
  const std::string prefix = table ? pattern.substr(0, pattern.size() - 2) : "";
  for (size_t i = 0; i < kSlotCount; ++i) {
    const SlotInfo& slot = slot_info(static_cast<SlotId>(i));
    names.emplace_back(slot.name);
    if (pattern == "*" || pattern == slot.name || (table && prefix == slot.table)) {
      slots.push_back(static_cast<SlotId>(i));
    }
  }
  if (slots.empty()) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item, "' names no slot: '", pattern, "'",
          did_you_mean(pattern, names), "; a slot is table.slot, table.* or *");
  }
  return slots;
}

uint64_t parse_number(const std::string& text, const std::string& item) {
  const bool digits =
      !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == text.npos;
  const uint64_t number = digits ? std::strtoull(text.c_str(), nullptr, 10) : 0;
  if (number == 0) {
    raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec item '", item, "' has '", text,
          "' where a whole number of 1 or more belongs");
  }
  return number;
}

std::unique_ptr<LayerStack> apply_layers(Tables& tables, const std::string& given,
                                         const PluginInfo& plugin) {
  std::string spec = given;
  if (spec.empty()) {
    const char* environment = std::getenv("CHIPDOCK_LAYERS");
    if (environment != nullptr) spec = environment;
  }
  if (spec.empty() || spec == "none") return nullptr;
  const std::vector<Item> items = split(spec);
  std::set<std::string> seen;
  for (const Item& item : items) {
    check_item(item, seen);
    if (item.name == "none") {
      raise(CHIPDOCK_INVALID_ARGUMENT, "layer spec '", spec, "' has 'none' beside other layers");
    }
  }
  const Tables original = tables;
  Tables masked = tables;
  for (const Item& item : items) {
    if (item.name == "mask") apply_mask(masked, item.value);
  }
  std::vector<std::unique_ptr<Layer>> layers;
  for (const Item& item : items) {
    if (item.name == "record") layers.push_back(make_record(item.value));
  }
  for (const Item& item : items) {
    std::unique_ptr<Layer> layer;
    if (item.name == "validate") layer = make_validate(masked, plugin);
    if (item.name == "trace") layer = make_trace(item.value, plugin);
    if (item.name == "fault") layer = make_fault(item.value, plugin);
    if (item.name == "latency") layer = make_latency(item.value);
    if (layer != nullptr) layers.push_back(std::move(layer));
  }
  if (auto infos = make_mask_infos(masked, original)) layers.push_back(std::move(infos));
  if (layers.empty()) {
    tables = masked;
    return nullptr;
  }
  auto stack = std::make_unique<LayerStack>(masked, std::move(layers));
  tables = masked;
  return stack;
}

std::vector<CallRecord> last_calls(const Plugin& plugin) {
  if (plugin.layers() == nullptr) return {};
  for (const auto& layer : plugin.layers()->layers()) {
    std::vector<CallRecord> ring = trace_ring(*layer);
    if (!ring.empty()) return ring;
  }
  return {};
}

}  // namespace chipdock::runtime
