// SPDX-License-Identifier: Apache-2.0
// Version ranges instead of equality, tables of any minor, and no trust in what came back: the
// plugin may be older, newer or wrong, and each case has its own text.
#include "negotiate.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace chipdock::runtime {
namespace {

// Tables hold some dozens of pointers. More than this is a wrong size and not a newer plugin.
constexpr uint32_t kLargestTable = 1u << 16;

std::string version_text(uint32_t version) {
  return std::to_string(CHIPDOCK_VERSION_MAJOR(version)) + "." +
         std::to_string(CHIPDOCK_VERSION_MINOR(version));
}

/// Options as the ABI wants them; holds the arrays while query runs.
class OptionArray {
 public:
  explicit OptionArray(const Options& options) {
    entries_.reserve(options.size());
    for (const auto& [key, value] : options) {
      entries_.push_back({sizeof(chipdock_option), 0, key.c_str(), value.c_str()});
    }
    for (const auto& entry : entries_) pointers_.push_back(&entry);
  }
  uint32_t count() const { return static_cast<uint32_t>(pointers_.size()); }
  const chipdock_option* const* data() const {
    return pointers_.empty() ? nullptr : pointers_.data();
  }

 private:
  std::vector<chipdock_option> entries_;
  std::vector<const chipdock_option*> pointers_;
};

/// One call of plugin code; an exception of a bad C++ plugin becomes INTERNAL. [BASE-9]
template <class Body>
chipdock_status guarded(const std::string& what, Body&& body) {
  try {
    return body();
  } catch (const std::exception& thrown) {
    raise(CHIPDOCK_INTERNAL, what, " let an exception out (", thrown.what(), ") [BASE-9]");
  } catch (...) {
    raise(CHIPDOCK_INTERNAL, what, " let an exception out [BASE-9]");
  }
}

[[noreturn]] void raise_mismatch(const std::string& path, uint32_t version,
                                 const std::string& plugin_text) {
  std::string speaks = "another ABI major";
  std::string fix = "install versions of chipdock and of the plugin that belong together";
  if (version != 0) {
    speaks = "ABI " + version_text(version);
    fix = version > CHIPDOCK_ABI_VERSION ? "update chipdock, the plugin is newer than this host"
                                         : "update the plugin, this host no longer speaks its ABI";
  }
  raise(CHIPDOCK_VERSION_MISMATCH, "plugin ", path, " speaks ", speaks, ", this host speaks ",
        version_text(kOldestAbi), " to ", version_text(CHIPDOCK_ABI_VERSION), "; ", fix,
        plugin_text.empty() ? "" : " (the plugin said: " + plugin_text + ")");
}

/// Asks a plugin that refused our range which version it speaks, by a query without limits. Only
/// the first two fields of its instance have a layout that all versions share. 0 if it does not
/// say.
uint32_t version_of_refusing(chipdock_plugin_query_fn query, const chipdock_host& host) noexcept {
  try {
    chipdock_query_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.abi_min = 0;
    desc.abi_max = UINT32_MAX;
    ErrorRecord error;
    chipdock_plugin* instance = nullptr;
    if (query(&host, &desc, &instance, &error) != CHIPDOCK_OK || instance == nullptr) return 0;
    return instance->struct_size >= 2 * sizeof(uint32_t) ? instance->abi_version : 0;
  } catch (...) {
    return 0;
  }
}

std::string show(const char* text) {
  return text == nullptr ? "NULL" : "'" + std::string(text) + "'";
}

bool made_of(std::string_view text, std::string_view extra) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || extra.find(c) != extra.npos;
  });
}

bool valid_id(const char* id) {
  if (id == nullptr || strnlen(id, 64) > 63) return false;
  const std::string_view text(id);
  const size_t dot = text.find('.');
  return made_of(text, "_.-") && dot != text.npos && dot > 0 && dot + 1 < text.size();
}

bool valid_name(const char* name) {
  if (name == nullptr || strnlen(name, 64) > 63) return false;
  return *name >= 'a' && *name <= 'z' && made_of(name, "_");
}

/// Copies what the plugin has of a table; slots it has not are NULL.
template <class Table>
Table copy_table(const void* given, const std::string& what) {
  chipdock_table_header header;
  std::memcpy(&header, given, sizeof(header));
  if (header.struct_size == 0 || (header.major == 0 && header.minor == 0)) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what, " has struct_size ", header.struct_size,
          " and version ", header.major, ".", header.minor,
          ": it was left zero; fill it with CHIPDOCK_TABLE");
  }
  const uint32_t size = header.struct_size;
  if (size < sizeof(header) || size > kLargestTable || size % sizeof(void*) != 0) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what, " says it is ", size,
          " bytes long, which no table is (", "this host's has ", sizeof(Table),
          "); fill its header with CHIPDOCK_TABLE [BASE-1]");
  }
  Table table{};
  std::memcpy(&table, given, std::min<size_t>(size, sizeof(Table)));
  table.header.struct_size = sizeof(Table);
  return table;
}

class TableReader {
 public:
  TableReader(chipdock_plugin* plugin, const std::string& who, std::vector<std::string>& notes)
      : plugin_(plugin), who_(who), notes_(notes) {}

  /// A table of major 0 is dropped when versions do not meet; one of 1.x may not be.
  template <class Table>
  void read(const char* name, uint16_t major, uint16_t minor, Table& out) {
    const std::string what = "plugin " + who_ + ": table " + name;
    ErrorRecord error;
    const void* given = nullptr;
    const chipdock_status status = guarded(what + ": get_table", [&] {
      return plugin_->get_table(plugin_, name, CHIPDOCK_VERSION(major, minor), &given, &error);
    });
    if (status == CHIPDOCK_UNSUPPORTED) return;
    if (status == CHIPDOCK_VERSION_MISMATCH) {
      mismatch(what, major, minor, "another major");
      return;
    }
    check(status, error, what + ": get_table");
    if (given == nullptr) {
      raise(CHIPDOCK_INTERNAL, what, ": get_table returned OK and a NULL table [BASE-8]");
    }
    Table table = copy_table<Table>(given, what);
    // Any change of a 0.x table moves its minor, so both sides need the same one (ABI.md, section
    // 1).
    if (table.header.major != major || (major == 0 && table.header.minor != minor)) {
      mismatch(what, major, minor,
               version_text(CHIPDOCK_VERSION(table.header.major, table.header.minor)));
      return;
    }
    out = table;
  }

 private:
  void mismatch(const std::string& what, uint16_t major, uint16_t minor, const std::string& has) {
    const std::string text = what + " has version " + has + ", this host speaks " +
                             version_text(CHIPDOCK_VERSION(major, minor));
    if (major != 0) {
      raise(CHIPDOCK_VERSION_MISMATCH, text,
            "; install versions of chipdock and of the plugin that belong together");
    }
    notes_.push_back(text + "; it is not used");
  }

  chipdock_plugin* plugin_;
  const std::string& who_;
  std::vector<std::string>& notes_;
};

}  // namespace

chipdock_plugin* negotiate(chipdock_plugin_query_fn query, const chipdock_host& host,
                           const Options& options, const std::string& path) {
  const OptionArray array(options);
  chipdock_query_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.abi_min = kOldestAbi;
  desc.abi_max = CHIPDOCK_ABI_VERSION;
  desc.option_count = array.count();
  desc.options = array.data();
  ErrorRecord error;
  chipdock_plugin* plugin = nullptr;
  const std::string what = "plugin " + path + ": query";
  const chipdock_status status =
      guarded(what, [&] { return query(&host, &desc, &plugin, &error); });
  if (status == CHIPDOCK_VERSION_MISMATCH) {
    raise_mismatch(path, version_of_refusing(query, host), error.text);
  }
  check(status, error, what);
  if (plugin == nullptr) raise(CHIPDOCK_INTERNAL, what, " returned OK and a NULL plugin [BASE-8]");
  if (plugin->struct_size < 2 * sizeof(uint32_t)) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what, " returned a chipdock_plugin of struct_size ",
          plugin->struct_size, "; set it to sizeof(chipdock_plugin) [BASE-1]");
  }
  const uint32_t version = plugin->abi_version;
  if (version == 0) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what,
          " returned abi_version 0; set it to CHIPDOCK_ABI_VERSION [PLG-3]");
  }
  if (version < kOldestAbi ||
      CHIPDOCK_VERSION_MAJOR(version) > CHIPDOCK_VERSION_MAJOR(CHIPDOCK_ABI_VERSION)) {
    raise_mismatch(path, version, "");
  }
  constexpr size_t kFirstSize = offsetof(chipdock_plugin, state) + sizeof(void*);
  if (plugin->struct_size < kFirstSize) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what, " returned a chipdock_plugin of struct_size ",
          plugin->struct_size, ", the smallest there is has ", kFirstSize, " [BASE-4]");
  }
  if (plugin->get_table == nullptr) {
    raise(CHIPDOCK_FAILED_PRECONDITION, what, " returned a plugin without get_table");
  }
  return plugin;
}

Identity read_identity(const chipdock_plugin& plugin, const std::string& path) {
  if (!valid_id(plugin.id)) {
    raise(CHIPDOCK_FAILED_PRECONDITION, "plugin ", path, " has id ", show(plugin.id),
          "; an id is vendor.plugin of [a-z0-9_.-], at most 63 bytes [PLG-4]");
  }
  const std::string who = std::string(plugin.id) + " (" + path + ")";
  if (!valid_name(plugin.name)) {
    raise(CHIPDOCK_FAILED_PRECONDITION, "plugin ", who, " has name ", show(plugin.name),
          "; a name is [a-z][a-z0-9_]*, at most 63 bytes");
  }
  if (plugin.version == nullptr || *plugin.version == '\0') {
    raise(CHIPDOCK_FAILED_PRECONDITION, "plugin ", who,
          " has no version; give one as PEP 440 says");
  }
  Identity identity{plugin.id, plugin.name, plugin.version, {}};
  std::copy(std::begin(plugin.uuid), std::end(plugin.uuid), identity.uuid.begin());
  if (std::all_of(identity.uuid.begin(), identity.uuid.end(),
                  [](uint8_t byte) { return byte == 0; })) {
    raise(CHIPDOCK_FAILED_PRECONDITION, "plugin ", who,
          " has a uuid of zeros; make one once, for example with uuidgen [PLG-4]");
  }
  return identity;
}

Tables read_tables(chipdock_plugin* plugin, const std::string& who,
                   std::vector<std::string>& notes) {
  Tables tables;
  TableReader reader(plugin, who, notes);
#define CHIPDOCK_READ(NAME, name) \
  reader.read("chipdock." #name, CHIPDOCK_##NAME##_MAJOR, CHIPDOCK_##NAME##_MINOR, tables.name)
  CHIPDOCK_READ(DEVICE, device);
  CHIPDOCK_READ(MEMORY, memory);
  CHIPDOCK_READ(STREAM, stream);
  CHIPDOCK_READ(EVENT, event);
  CHIPDOCK_READ(KERNEL, kernel);
  CHIPDOCK_READ(GRAPH, graph);
  CHIPDOCK_READ(COMPILE, compile);
  CHIPDOCK_READ(CCL, ccl);
  CHIPDOCK_READ(PROFILER, profiler);
#undef CHIPDOCK_READ
  return tables;
}

}  // namespace chipdock::runtime
