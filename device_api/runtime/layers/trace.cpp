// SPDX-License-Identifier: Apache-2.0
// The trace layer: a ring of the last calls, which tells what a dead or failed run did last, and if
// a file was named, all calls as Chrome trace JSON.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "builtin.hpp"

namespace chipdock::runtime {
namespace {

constexpr size_t kRing = 256;
/// 40 bytes each; later calls are counted and not kept.
constexpr size_t kMostInFile = 1u << 20;

uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// Small numbers, in the order threads first called; readable in a viewer.
uint64_t thread_number() {
  static std::atomic<uint64_t> next{1};
  thread_local const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// Trace layers with a file. A process that ends without shutdown still gets its files.
struct Writers {
  std::mutex mutex;
  std::vector<Layer*> layers;
  bool registered = false;
};
Writers& writers() {
  static auto& value = *new Writers;
  return value;
}
void write_all() {
  const std::lock_guard lock(writers().mutex);
  for (Layer* layer : writers().layers) layer->finish();
}

class Trace : public Layer {
 public:
  Trace(std::string file, std::string plugin) : file_(std::move(file)), plugin_(std::move(plugin)) {
    if (file_.empty()) return;
    std::FILE* out = std::fopen(file_.c_str(), "w");
    if (out == nullptr) {
      raise(CHIPDOCK_INVALID_ARGUMENT, "the trace layer cannot write '", file_,
            "'; name a file in a folder that exists and can be written");
    }
    std::fclose(out);
    const std::lock_guard lock(writers().mutex);
    if (!writers().registered) std::atexit(&write_all);
    writers().registered = true;
    writers().layers.push_back(this);
  }
  ~Trace() override {
    const std::lock_guard lock(writers().mutex);
    auto& layers = writers().layers;
    layers.erase(std::remove(layers.begin(), layers.end(), this), layers.end());
  }

  chipdock_status before(const Call&, uint64_t& note) override {
    note = now_ns();
    return CHIPDOCK_OK;
  }

  chipdock_status after(const Call& call, uint64_t note, chipdock_status status) override {
    const CallRecord record{call.slot, status, thread_number(), note, now_ns() - note};
    const std::lock_guard lock(mutex_);
    ring_[calls_ % kRing] = record;
    ++calls_;
    if (!file_.empty() && records_.size() < kMostInFile) records_.push_back(record);
    return status;
  }

  std::vector<CallRecord> ring() const {
    const std::lock_guard lock(mutex_);
    std::vector<CallRecord> list;
    for (uint64_t i = calls_ < kRing ? 0 : calls_ - kRing; i < calls_; ++i) {
      list.push_back(ring_[i % kRing]);
    }
    return list;
  }

  void finish() noexcept override {
    const std::lock_guard lock(mutex_);
    // A forked child must not write over its parent's file.
    if (file_.empty() || written_ == calls_ || getpid() != process_) return;
    std::FILE* out = std::fopen(file_.c_str(), "w");
    if (out == nullptr) {
      std::fprintf(stderr, "chipdock: the trace layer could not write '%s'\n", file_.c_str());
      return;
    }
    write(out);
    std::fclose(out);
    written_ = calls_;
  }

 private:
  void write(std::FILE* out) const {
    std::fprintf(out,
                 "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"plugin\":\"%s\",\"dropped\":%" PRIu64
                 "},\"traceEvents\":[\n",
                 plugin_.c_str(), calls_ - records_.size());
    const char* separator = "";
    for (const CallRecord& record : records_) {
      const SlotInfo& slot = slot_info(record.slot);
      std::fprintf(out,
                   "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,"
                   "\"pid\":%d,\"tid\":%" PRIu64 ",\"args\":{\"status\":\"%s\"}}",
                   separator, slot.name, slot.table, static_cast<double>(record.start_ns) * 1e-3,
                   static_cast<double>(record.duration_ns) * 1e-3, static_cast<int>(getpid()),
                   record.thread, kit::status_name(record.status));
      separator = ",\n";
    }
    std::fprintf(out, "\n]}\n");
  }

  const std::string file_;
  const std::string plugin_;
  const pid_t process_ = getpid();
  mutable std::mutex mutex_;
  CallRecord ring_[kRing] = {};
  uint64_t calls_ = 0;
  uint64_t written_ = UINT64_MAX;  ///< Calls at the last writing.
  std::vector<CallRecord> records_;
};

}  // namespace

std::unique_ptr<Layer> make_trace(const std::string& file, const PluginInfo& plugin) {
  return std::make_unique<Trace>(file, plugin.name);
}

std::vector<CallRecord> trace_ring(const Layer& layer) {
  const auto* trace = dynamic_cast<const Trace*>(&layer);
  return trace == nullptr ? std::vector<CallRecord>() : trace->ring();
}

}  // namespace chipdock::runtime
