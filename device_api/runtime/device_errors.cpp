// SPDX-License-Identifier: Apache-2.0
// Errors of a device: how a failed call becomes an exception that names its operation, what is
// sticky, and how a plugin's asynchronous report finds its Device or Stream. [DEV-7] [STR-3]
#include <cstring>
#include <utility>

#include "device_state.hpp"
#include "stream.hpp"

namespace chipdock::runtime {
namespace {

/// Open devices of the process by plugin and handle. Never destroyed: a plugin's thread may report
/// while the process's static objects go.
struct Registry {
  std::mutex mutex;
  std::map<std::pair<void*, chipdock_device*>, Device*> devices;
};

Registry& registry() {
  static Registry* const instance = new Registry();
  return *instance;
}

bool has_name(const std::string& text) { return text.find("(operation ") != std::string::npos; }

}  // namespace

void OperationNames::note(uint64_t id, const char* name) {
  Slot& slot = slots_[id % kSlots];
  char text[kWords * 8] = {};
  for (size_t i = 0; i + 1 < sizeof text && name[i] != '\0'; ++i) text[i] = name[i];
  // One writer at a time: two whose ids share the slot would mix their words. The later one gives
  // way; its name is not found, which find() may always answer.
  if (slot.id.exchange(kBusy, std::memory_order_acquire) == kBusy) return;
  // Release on each word: a reader that sees a new word sees kBusy, or a later id, too. No fences:
  // TSan does not know them.
  for (size_t i = 0; i < kWords; ++i) {
    uint64_t word;
    std::memcpy(&word, text + i * 8, 8);
    slot.words[i].store(word, std::memory_order_release);
  }
  slot.id.store(id, std::memory_order_release);
}

std::string OperationNames::find(uint64_t id) const {
  const Slot& slot = slots_[id % kSlots];
  if (id == 0 || id == kBusy || slot.id.load(std::memory_order_acquire) != id) return "";
  char text[kWords * 8];
  for (size_t i = 0; i < kWords; ++i) {
    const uint64_t word = slot.words[i].load(std::memory_order_acquire);
    std::memcpy(text + i * 8, &word, 8);
  }
  if (slot.id.load(std::memory_order_relaxed) != id) return "";
  return std::string(text, strnlen(text, sizeof text));
}

void Device::State::enter(Device& device) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().devices[{device.plugin_.get(), device.handle_}] = &device;
}

void Device::State::leave(Device& device) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().devices.erase({device.plugin_.get(), device.handle_});
}

void Device::note_operation(uint64_t correlation_id, const char* what) {
  state_->names.note(correlation_id, what);
}

std::string Device::operation_name(uint64_t correlation_id) const {
  return state_->names.find(correlation_id);
}

bool Device::callable() const noexcept {
  try {
    plugin_->check_usable();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void Device::raise_failed() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  throw Error(*state_->cause);
}

void Device::fail(const Error& error) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->cause) state_->cause = std::make_shared<Error>(error);
  failed_.store(true, std::memory_order_release);
}

void Device::raise_call(chipdock_status status, const chipdock_error& error, const char* slot) {
  try {
    check(status, error, name_ + " " + slot);
  } catch (const Error& plain) {
    std::string text = plain.what();
    const std::string operation = operation_name(plain.correlation_id());
    if (!operation.empty() && !has_name(text)) {
      text += " (operation " + operation + ", correlation id " +
              std::to_string(plain.correlation_id()) + ")";
    }
    const bool lost =
        plain.code() == CHIPDOCK_DEVICE_LOST || plain.code() == CHIPDOCK_RESET_REQUIRED;
    const int32_t scope = lost && plain.scope() < CHIPDOCK_SCOPE_DEVICE
                              ? static_cast<int32_t>(CHIPDOCK_SCOPE_DEVICE)
                              : plain.scope();
    const Error full(plain.code(), text, plain.vendor_code(), scope, plain.correlation_id());
    if (scope >= CHIPDOCK_SCOPE_DEVICE) fail(full);
    throw full;
  }
  raise(CHIPDOCK_INTERNAL, name_, " ", slot, " failed without a status");
}

/// Runs on a thread of the plugin: it owns nothing here, so that no destructor that calls the
/// plugin back can run. Devices and streams stay alive while the locks are held, since their
/// destructors leave first.
void Device::report(void* plugin, chipdock_device* handle, chipdock_stream* stream,
                    const chipdock_error& error) {
  std::lock_guard<std::mutex> lock(registry().mutex);
  for (const auto& [key, device] : registry().devices) {
    if (key.first == plugin && (handle == nullptr || key.second == handle)) {
      device->take_report(stream, error);
    }
  }
}

void Device::take_report(chipdock_stream* stream, const chipdock_error& error) {
  try {
    check(error.code, error, name_ + " reported");
  } catch (const Error& plain) {
    std::string text = plain.what();
    const std::string operation = operation_name(plain.correlation_id());
    if (!operation.empty()) {
      text += " (operation " + operation + ", correlation id " +
              std::to_string(plain.correlation_id()) + ")";
    }
    const Error full(plain.code(), text, plain.vendor_code(), plain.scope(),
                     plain.correlation_id());
    if (full.scope() >= CHIPDOCK_SCOPE_DEVICE || stream == nullptr) {
      fail(full);
      return;
    }
    std::lock_guard<std::mutex> lock(state_->mutex);
    for (const auto& entry : state_->streams) {
      if (entry.first->handle() == stream) entry.first->fail(full);
    }
  }
}

}  // namespace chipdock::runtime
