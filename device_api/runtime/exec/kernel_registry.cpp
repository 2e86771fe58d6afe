// SPDX-License-Identifier: Apache-2.0
#include "exec/kernel_registry.hpp"

#include <algorithm>
#include <cstdio>

#include "kernel_rules.hpp"

namespace chipdock::runtime {
namespace {

/// Empty if the dtypes fit, else what does not.
std::string dtype_mismatch(const chipdock_kernel& kernel, bool input, uint32_t count,
                           const chipdock_value* const* values) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == nullptr) continue;
    const chipdock_dtype_rule* rule =
        find_rule(kernel.dtype_rules, kernel.dtype_rule_count, input, i);
    if (rule == nullptr) continue;
    const auto* end = rule->dtypes + rule->count;
    const bool fits = std::any_of(rule->dtypes, end, [&](chipdock_dtype allowed) {
      return kit::operator==(allowed, values[i]->dtype);
    });
    if (!fits) {
      return std::string(input ? "input " : "output ") + std::to_string(i) + " is " +
             kit::dtype_name(values[i]->dtype);
    }
  }
  return "";
}

/// Empty if the layouts fit, else what does not.
std::string layout_mismatch(const chipdock_kernel& kernel, bool input, uint32_t count,
                            const chipdock_value* const* values) {
  for (uint32_t i = 0; i < count; ++i) {
    if (values[i] == nullptr || values[i]->layout == 0) continue;
    if (admits_layout(kernel, input, i, values[i]->layout)) continue;
    return std::string(input ? "input " : "output ") + std::to_string(i) + " is in layout " +
           std::to_string(values[i]->layout);
  }
  return "";
}

bool any_layout(uint32_t count, const chipdock_value* const* values) {
  return std::any_of(values, values + count,
                     [](const chipdock_value* v) { return v != nullptr && v->layout != 0; });
}

std::string key_of(const char* domain, const char* op) {
  return std::string(domain != nullptr ? domain : "") + ":" + op;
}

std::string hex(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof(text), "%x", value);
  return text;
}

}  // namespace

uint32_t unknown_flags(const chipdock_kernel& kernel) {
  constexpr uint32_t kKnown = CHIPDOCK_KERNEL_CAPTURABLE | CHIPDOCK_KERNEL_SYNCHRONIZES |
                              CHIPDOCK_KERNEL_ACCEPTS_STRIDES | CHIPDOCK_KERNEL_DETERMINISTIC;
  return kernel.flags & ~kKnown;
}

bool KernelRegistry::Candidate::operator<(const Candidate& other) const {
  if (score != other.score) return score > other.score;
  if (kernel->priority != other.kernel->priority) return kernel->priority > other.kernel->priority;
  return kernel->since_version > other.kernel->since_version;
}

KernelInstance::~KernelInstance() {
  // Plans outlive the plugin when a process ends: there is nothing left to destroy then.
  if (!device_->callable()) return;
  ErrorRecord error;  // nothing can be done about a failing destroy; the handle is gone either way
  device_->tables().kernel.destroy(handle_, &error);
}

KernelRegistry::KernelRegistry(std::shared_ptr<Device> device) : device_(std::move(device)) {
  const auto& table = device_->tables().kernel;
  if (table.list == nullptr) return;
  const chipdock_kernel* const* kernels = nullptr;
  uint64_t count = 0;
  ErrorRecord error;
  device_->check_call(table.list(device_->handle(), &kernels, &count, &error), error,
                      "kernel.list");
  for (uint64_t i = 0; i < count; ++i) {
    by_op_[key_of(kernels[i]->domain, kernels[i]->op)].push_back(kernels[i]);
    if (unknown_flags(*kernels[i]) != 0) continue;
    ++count_;
    if (table.layout_size != nullptr) note_layouts(*kernels[i]);
  }
}

void KernelRegistry::note_layouts(const chipdock_kernel& kernel) {
  for (uint32_t r = 0; r < kernel.layout_rule_count; ++r) {
    const chipdock_layout_rule& rule = *kernel.layout_rules[r];
    for (uint32_t i = 0; i < rule.count; ++i) {
      const uint32_t layout = rule.layouts[i];
      const bool known = std::find(layouts_.begin(), layouts_.end(), layout) != layouts_.end();
      if (layout != 0 && !known) layouts_.push_back(layout);
    }
  }
}

const std::vector<const chipdock_kernel*>& KernelRegistry::kernels_for(const IrNode& node) const {
  static const std::vector<const chipdock_kernel*> kNone;
  const auto found = by_op_.find(key_of(node.domain.c_str(), node.op.c_str()));
  return found == by_op_.end() ? kNone : found->second;
}

std::string KernelRegistry::mismatch(const chipdock_kernel& kernel,
                                     const chipdock_node& node) const {
  if (const uint32_t unknown = unknown_flags(kernel); unknown != 0) {
    return "left out, it has flags 0x" + hex(unknown) +
           " that this host does not know; update chipdock [BASE-11]";
  }
  if (node.since_version < kernel.since_version ||
      (kernel.until_version != 0 && node.since_version > kernel.until_version)) {
    return "serves versions " + std::to_string(kernel.since_version) + " to " +
           (kernel.until_version != 0 ? std::to_string(kernel.until_version) : "newest") +
           ", the node has " + std::to_string(node.since_version);
  }
  std::string text = dtype_mismatch(kernel, true, node.input_count, node.inputs);
  if (text.empty()) text = dtype_mismatch(kernel, false, node.output_count, node.outputs);
  if (text.empty()) text = layout_mismatch(kernel, true, node.input_count, node.inputs);
  if (text.empty()) text = layout_mismatch(kernel, false, node.output_count, node.outputs);
  return text;
}

std::vector<KernelRegistry::Candidate> KernelRegistry::candidates(const chipdock_node& node,
                                                                  KernelChoice& choice) const {
  const auto& table = device_->tables().kernel;
  const auto found = by_op_.find(key_of(node.domain, node.op));
  if (found == by_op_.end()) {
    choice.reason = device_->name() + " has no kernel for " + node.op;
    return {};
  }
  const bool laid_out =
      any_layout(node.input_count, node.inputs) || any_layout(node.output_count, node.outputs);
  std::vector<Candidate> candidates;
  for (const chipdock_kernel* kernel : found->second) {
    const std::string name = kernel->name != nullptr ? kernel->name : kernel->op;
    if (const std::string why = mismatch(*kernel, node); !why.empty()) {
      choice.reason.append(name).append(": ").append(why).append("\n");
      continue;
    }
    ErrorRecord error;
    int32_t answer = CHIPDOCK_SUPPORTS_NO;
    device_->check_call(table.supports(device_->handle(), kernel, &node, &answer, &error), error,
                        ("kernel.supports " + name).c_str());
    if (answer == CHIPDOCK_SUPPORTS_NEEDS_SHAPE && !laid_out) {
      choice.needs_shape = true;
      choice.reason += name + ": decides when shapes are known\n";
      continue;
    }
    if (answer != CHIPDOCK_SUPPORTS_YES) {
      choice.reason += name + ": " + (error.text[0] != '\0' ? error.text : "declined") + "\n";
      continue;
    }
    double score = 0;
    if (table.score != nullptr) {
      device_->check_call(table.score(device_->handle(), kernel, &node, &score, &error), error,
                          ("kernel.score " + name).c_str());
    }
    candidates.push_back({kernel, score});
  }
  std::stable_sort(candidates.begin(), candidates.end());
  return candidates;
}

std::optional<double> KernelRegistry::best_score(const chipdock_node& node) const {
  KernelChoice choice;
  const std::vector<Candidate> accepting = candidates(node, choice);
  if (accepting.empty()) return std::nullopt;
  return accepting.front().score;
}

KernelChoice KernelRegistry::choose(const chipdock_node& node) const {
  KernelChoice choice;
  const auto& table = device_->tables().kernel;
  const std::vector<Candidate> accepting = candidates(node, choice);
  if (choice.needs_shape) return choice;
  // A kernel may still refuse in create, where it sees attributes in full; the next one is tried
  // then.
  for (const Candidate& candidate : accepting) {
    const char* name =
        candidate.kernel->name != nullptr ? candidate.kernel->name : candidate.kernel->op;
    chipdock_kernel_instance* handle = nullptr;
    ErrorRecord error;
    const chipdock_status status =
        table.create(device_->handle(), candidate.kernel, &node, &handle, &error);
    if (status == CHIPDOCK_UNSUPPORTED) {
      choice.reason += std::string(name) + ": " + error.text + "\n";
      continue;
    }
    device_->check_call(status, error, (std::string("kernel.create ") + name).c_str());
    if (handle == nullptr) {
      raise(CHIPDOCK_INTERNAL, device_->name(), " kernel.create ", name,
            " returned OK with NULL [BASE-8]");
    }
    choice.instance = std::make_shared<KernelInstance>(device_, *candidate.kernel, handle);
    choice.reason += std::string(name) + ": chosen, score " + std::to_string(candidate.score) +
                     ", priority " + std::to_string(candidate.kernel->priority) + "\n";
    break;
  }
  return choice;
}

NodeDescription::NodeDescription(const IrNode& node, std::vector<Value> inputs,
                                 std::vector<Value> outputs, int32_t math_mode)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
  fill(inputs_, input_values_, input_pointers_);
  fill(outputs_, output_values_, output_pointers_);
  node_.struct_size = sizeof(chipdock_node);
  node_.since_version = node.since_version;
  node_.domain = node.domain.c_str();
  node_.op = node.op.c_str();
  node_.attribute_count = node.attributes.count();
  node_.attributes = node.attributes.data();
  node_.input_count = static_cast<uint32_t>(input_pointers_.size());
  node_.inputs = input_pointers_.data();
  node_.output_count = static_cast<uint32_t>(output_pointers_.size());
  node_.outputs = output_pointers_.data();
  node_.math_mode = math_mode;
}

void NodeDescription::fill(std::vector<Value>& from, std::vector<chipdock_value>& values,
                           std::vector<const chipdock_value*>& pointers) {
  values.resize(from.size());
  pointers.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].given) continue;
    chipdock_value& value = values[i];
    value.struct_size = sizeof(chipdock_value);
    value.dtype = from[i].dtype;
    value.layout = from[i].layout;
    value.rank = from[i].known ? static_cast<int32_t>(from[i].dims.size()) : -1;
    value.dims = from[i].dims.data();
    value.constant = from[i].constant;
    value.constant_size = from[i].constant_size;
    pointers[i] = &value;
  }
}

}  // namespace chipdock::runtime
