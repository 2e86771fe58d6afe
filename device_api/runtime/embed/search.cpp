// SPDX-License-Identifier: Apache-2.0
// From a path to plugin libraries: a library, a plugin.toml, a folder with one, or a folder of such
// folders. Of a manifest only the key `library` is read here; identity comes from the library.
#include <dirent.h>
#include <sys/stat.h>

#include <fstream>

#include "embed/embed.hpp"

namespace chipdock::embed {
namespace {

constexpr const char* kManifest = "plugin.toml";

enum class Kind { kNone, kFile, kFolder };

Kind kind_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return Kind::kNone;
  return S_ISDIR(status.st_mode) ? Kind::kFolder : Kind::kFile;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The value of `library = "…"` in the table [plugin]; "" if there is none.
std::string library_key(const std::string& manifest) {
  std::ifstream file(manifest);
  std::string line;
  bool in_plugin = false;
  while (std::getline(file, line)) {
    line = trimmed(line);
    if (line.rfind('[', 0) == 0) in_plugin = line.rfind("[plugin]", 0) == 0;
    const size_t equals = line.find('=');
    if (!in_plugin || equals == std::string::npos) continue;
    if (trimmed(line.substr(0, equals)) != "library") continue;
    const std::string value = trimmed(line.substr(equals + 1));
    const char quote = value.empty() ? '\0' : value[0];
    const size_t end = quote == '"' || quote == '\'' ? value.find(quote, 1) : std::string::npos;
    return end == std::string::npos ? "" : value.substr(1, end - 1);
  }
  return "";
}

std::string library_of(const std::string& manifest) {
  std::string library = library_key(manifest);
  if (library.empty()) {
    runtime::raise(CHIPDOCK_INVALID_ARGUMENT, manifest,
                   " has no library in its table [plugin]; it is the file name of the plugin");
  }
  if (library[0] == '/') return library;
  return manifest.substr(0, manifest.rfind('/') + 1) + library;
}

/// Names of the entries of a folder, sorted, without hidden ones.
std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), &closedir);
  if (open == nullptr) return names;
  while (const dirent* entry = readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe): own DIR
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_manifest(const std::string& path) {
  constexpr size_t kSuffix = 5;
  return path.size() > kSuffix && path.compare(path.size() - kSuffix, kSuffix, ".toml") == 0;
}

}  // namespace

std::vector<std::string> libraries_of(const std::string& path) {
  if (kind_of(path) != Kind::kFolder) return {is_manifest(path) ? library_of(path) : path};
  const std::string own = path + "/" + kManifest;
  if (kind_of(own) == Kind::kFile) return {library_of(own)};
  std::vector<std::string> found;
  for (const std::string& name : entries_of(path)) {
    std::string item = path;
    item.append("/").append(name);
    const std::string nested = item + "/" + kManifest;
    if (kind_of(item) == Kind::kFile && is_manifest(item)) found.push_back(library_of(item));
    if (kind_of(nested) == Kind::kFile) found.push_back(library_of(nested));
  }
  return found;
}

}  // namespace chipdock::embed
