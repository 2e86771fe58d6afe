// SPDX-License-Identifier: Apache-2.0
// No shell comes near the text or the paths: the compiler gets an argument vector.
#include "compiler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "chipdock/plugin_kit.hpp"

extern char** environ;

namespace chipdock::plugin::cpu {
namespace {

bool is_program(const std::string& path) {
  struct stat facts{};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string search_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
  }
  return "";
}

/// A folder that is gone, with what was written into it, at the end of its scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/chipdock_cpu_XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      kit::fail(CHIPDOCK_UNAVAILABLE, "no temporary folder ", path_,
                " for the compiler: ", std::strerror(errno), "; set TMPDIR");
    }
  }
  ~TemporaryFolder() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

/// Runs a program with stdout and stderr in `log`; returns whether it ended with 0.
bool run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    kit::fail(CHIPDOCK_UNAVAILABLE, "the compiler ", command[0],
              " could not be run: ", std::strerror(failed));
  }
  int status = 0;
  pid_t got = 0;
  do {
    got = waitpid(child, &status, 0);
  } while (got < 0 && errno == EINTR);
  // ECHILD: the process ignores SIGCHLD, so nobody knows the status. The output file tells.
  return got < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string find_compiler(Language language) {
  const bool cxx = language == Language::kCxx;
  const char* chosen = std::getenv(cxx ? "CXX" : "CC");
  // A variable with options in it, as build systems like, names no program and is passed over.
  if (chosen != nullptr && *chosen != '\0') {
    const std::string found = search_path(chosen);
    if (!found.empty()) return found;
  }
  for (const char* name : {cxx ? "c++" : "cc", cxx ? "g++" : "gcc", cxx ? "clang++" : "clang"}) {
    const std::string found = search_path(name);
    if (!found.empty()) return found;
  }
  return "";
}

Compiled compile_text(Language language, const std::string& compiler, const std::string& text,
                      const std::vector<std::string>& flags) {
  TemporaryFolder folder;
  const std::string source = folder.file(language == Language::kCxx ? "source.cpp" : "source.c");
  const std::string library = folder.file("library.so");
  const std::string log = folder.file("log");
  {
    std::ofstream file(source, std::ios::binary);
    file << text;
    file.flush();
    if (!file) kit::fail(CHIPDOCK_UNAVAILABLE, "no room for ", source, "; set TMPDIR");
  }
  std::vector<std::string> command = {compiler, "-shared", "-fPIC", "-ffp-contract=off"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"-o", library, source, "-lm"});
  const bool ended = run(command, log);
  Compiled result;
  result.log = read_file(log);
  if (!ended || access(library.c_str(), R_OK) != 0) return result;
  result.library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (result.library == nullptr) result.log += dlerror();
  return result;
}

}  // namespace chipdock::plugin::cpu
