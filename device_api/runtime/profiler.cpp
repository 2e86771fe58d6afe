// SPDX-License-Identifier: Apache-2.0
// See profiler.hpp.
#include "profiler.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <ostream>

#include "error.hpp"
#include "host_queue.hpp"

namespace chipdock::runtime {
namespace {

/// Length of the UTF-8 sequence at `at`, 0 if it is malformed.
size_t utf8_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(at);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                                                      : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

/// Chrome's time unit is the microsecond; three decimals keep the nanoseconds.
std::string microseconds(int64_t ns) {
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000),
                static_cast<long long>(ns % 1000));
  return text;
}

}  // namespace

std::string json_quote(const std::string& text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    const unsigned char lead = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      out += "\\ufffd";
      ++i;
      continue;
    }
    if (lead == '"' || lead == '\\') {
      out += '\\';
      out += text[i];
    } else if (lead < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", lead);
      out += escape;
    } else {
      out.append(text, i, length);
    }
    i += length;
  }
  return out + '"';
}

std::string thread_label() {
  static std::atomic<int> count{0};
  thread_local const int number = ++count;
  return "thread " + std::to_string(number);
}

void Profiler::add(ProfileRecord record) {
  std::lock_guard<std::mutex> lock(mutex_);
  records_.push_back(std::move(record));
}

std::vector<ProfileRecord> Profiler::records() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return records_;
}

size_t Profiler::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return records_.size();
}

void Profiler::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  records_.clear();
}

void Profiler::write_chrome_trace(std::ostream& out) const {
  const std::vector<ProfileRecord> records = this->records();
  std::map<std::string, int> processes;
  std::map<std::pair<std::string, std::string>, int> threads;
  int64_t origin = records.empty() ? 0 : records.front().start_ns;
  for (const ProfileRecord& record : records) {
    origin = std::min(origin, record.start_ns);
    processes.emplace(record.device, static_cast<int>(processes.size()) + 1);
    threads.emplace(std::make_pair(record.device, record.thread),
                    static_cast<int>(threads.size()) + 1);
  }
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* comma = "\n";
  for (const auto& [device, id] : processes) {
    out << comma << "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" << id
        << ",\"args\":{\"name\":" << json_quote(device.empty() ? "host" : device) << "}}";
    comma = ",\n";
  }
  for (const auto& [line, id] : threads) {
    out << comma << "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" << processes[line.first]
        << ",\"tid\":" << id << ",\"args\":{\"name\":" << json_quote(line.second) << "}}";
  }
  for (const ProfileRecord& record : records) {
    out << comma << "{\"ph\":\"X\",\"name\":" << json_quote(record.name)
        << ",\"cat\":" << json_quote(record.category) << ",\"pid\":" << processes[record.device]
        << ",\"tid\":" << threads[{record.device, record.thread}]
        << ",\"ts\":" << microseconds(record.start_ns - origin)
        << ",\"dur\":" << microseconds(record.duration_ns)
        << ",\"args\":{\"correlation_id\":" << record.correlation_id;
    for (const auto& [key, value] : record.args)
      out << ',' << json_quote(key) << ':' << json_quote(value);
    out << "}}";
    comma = ",\n";
  }
  out << "\n]}\n";
}

void Profiler::write_chrome_trace(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) write_chrome_trace(out);
  out.close();
  if (!out) {
    raise(CHIPDOCK_UNAVAILABLE, "the trace file ", path,
          " cannot be written: ", std::strerror(errno));
  }
}

ProfileScope::ProfileScope(Profiler* profiler, const char* name, const char* category,
                           const std::string& device, const std::string& thread,
                           uint64_t correlation_id)
    : profiler_(profiler) {
  if (profiler_ == nullptr) return;
  record_.name = name;
  record_.category = category;
  record_.device = device;
  record_.thread = thread.empty() ? thread_label() : thread;
  record_.correlation_id = correlation_id;
  record_.start_ns = now_ns();
}

ProfileScope::~ProfileScope() {
  if (profiler_ == nullptr) return;
  record_.duration_ns = now_ns() - record_.start_ns;
  profiler_->add(std::move(record_));
}

void ProfileScope::add_arg(std::string key, std::string value) {
  if (profiler_ != nullptr) record_.args.emplace_back(std::move(key), std::move(value));
}

}  // namespace chipdock::runtime
