// SPDX-License-Identifier: Apache-2.0
// Reads procfs, sysfs and cgroupfs (v2, and v1 where that is mounted).
#include "topology.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace chipdock::plugin::cpu {
namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Value behind the first line of `path` that starts with `key`, blanks and the colon dropped.
std::string field(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t start = line.find_first_not_of(" \t:", key.size());
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

/// "512K" -> 524288.
uint64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (end == nullptr || end == text.c_str()) return 0;
  if (*end == 'K' || *end == 'k') return number << 10;
  if (*end == 'M') return number << 20;
  if (*end == 'G') return number << 30;
  return number;
}

/// Folders of this process's cgroup from its own up to the root; limits of any of them count.
std::vector<std::string> cgroup_folders(const std::string& controller) {
  std::vector<std::string> folders;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    std::string base = "/sys/fs/cgroup";
    if (!names.empty()) {
      if (("," + names + ",").find("," + controller + ",") == std::string::npos) continue;
      base += "/" + controller;
    }
    std::string path = line.substr(second + 1);
    while (true) {
      folders.push_back(path == "/" ? base : base + path);
      const size_t slash = path.rfind('/');
      if (path == "/" || slash == std::string::npos) break;
      path = slash == 0 ? "/" : path.substr(0, slash);
    }
  }
  return folders;
}

/// Whole cpus that the quota allows, at least 1; 0 = no quota.
int quota_cores() {
  double least = 0;
  for (const std::string& folder : cgroup_folders("cpu")) {
    double quota = 0;
    double period = 0;
    std::istringstream v2(read_line(folder + "/cpu.max"));
    if (!(v2 >> quota >> period)) {
      quota = std::atof(read_line(folder + "/cpu.cfs_quota_us").c_str());
      period = std::atof(read_line(folder + "/cpu.cfs_period_us").c_str());
    }
    if (quota <= 0 || period <= 0) continue;
    if (least == 0 || quota / period < least) least = quota / period;
  }
  return least == 0 ? 0 : std::max(1, static_cast<int>(least + 0.5));
}

uint64_t cgroup_memory(const char* v2_name, const char* v1_name, bool smallest) {
  uint64_t found = 0;
  for (const std::string& folder : cgroup_folders("memory")) {
    uint64_t value = parse_size(read_line(folder + "/" + v2_name));
    if (value == 0) value = parse_size(read_line(folder + "/" + v1_name));
    if (value == 0 || value > (uint64_t{1} << 60)) continue;  // v1 writes "no limit" as 2^63.
    if (found == 0 || (smallest && value < found)) found = value;
    if (!smallest) break;
  }
  return found;
}

uint64_t installed_memory() {
  const uint64_t pages = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// FNV-1a from two offsets, set as an RFC 9562 version 8 UUID: stable, and no other machine's.
std::array<uint8_t, 16> machine_uuid(const std::string& product) {
  std::string seed = read_line("/etc/machine-id");
  if (seed.empty()) seed = read_line("/proc/sys/kernel/hostname");
  seed += "/chipdock.cpu/" + product;
  std::array<uint8_t, 16> uuid{};
  for (int half = 0; half < 2; ++half) {
    uint64_t hash = 0xcbf29ce484222325u + static_cast<uint64_t>(half) * 0x9e3779b97f4a7c15u;
    for (const char c : seed) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    for (int i = 0; i < 8; ++i) {
      uuid[static_cast<size_t>(half * 8 + i)] = static_cast<uint8_t>(hash >> (8 * i));
    }
  }
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0f) | 0x80);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3f) | 0x80);
  return uuid;
}

/// Threads worth starting: physical cores in the affinity mask, capped by the cgroup's cpu quota.
int usable_cores() {
  std::set<std::pair<std::string, std::string>> cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int logical = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    logical = CPU_COUNT(&mask);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mask)) continue;
      const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      const std::string core = read_line(folder + "core_id");
      if (!core.empty()) cores.emplace(read_line(folder + "physical_package_id"), core);
    }
  }
  int count = cores.empty() ? logical : static_cast<int>(cores.size());
  const int quota = quota_cores();
  if (quota > 0) count = std::min(count, quota);
  return std::max(1, count);
}

}  // namespace

uint64_t available_memory() {
  uint64_t available = parse_size(field("/proc/meminfo", "MemAvailable")) << 10;
  const uint64_t limit = cgroup_memory("memory.max", "memory.limit_in_bytes", true);
  const uint64_t used = cgroup_memory("memory.current", "memory.usage_in_bytes", false);
  if (limit > 0 && used > 0) available = std::min(available, limit > used ? limit - used : 0);
  return available;
}

Machine read_machine() {
  Machine machine;
  utsname names{};
  if (uname(&names) == 0) {
    machine.architecture = names.machine;
    machine.kernel = std::string(names.sysname) + " " + names.release;
  }
  machine.product = field("/proc/cpuinfo", "model name");
  if (machine.product.empty()) machine.product = machine.architecture + " CPU";
  machine.memory_bytes = installed_memory();
  const uint64_t limit = cgroup_memory("memory.max", "memory.limit_in_bytes", true);
  if (limit > 0) machine.memory_bytes = std::min(machine.memory_bytes, limit);
  machine.l2_bytes = parse_size(read_line("/sys/devices/system/cpu/cpu0/cache/index2/size"));
  machine.cores = static_cast<uint32_t>(usable_cores());
  const std::string nodes = read_line("/sys/devices/system/node/online");
  if (nodes == "0") machine.numa_node = 0;
  machine.uuid = machine_uuid(machine.product);
  return machine;
}

}  // namespace chipdock::plugin::cpu
