// SPDX-License-Identifier: Apache-2.0
// Export and import of memory. Shared memory is a memfd; a blob for another process names it by
// process, descriptor and inode, and the importer opens it through /proc, which the system allows
// to one user.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "memory.hpp"

namespace chipdock::plugin::cpu {
namespace {

constexpr char kMagic[8] = {'c', 'h', 'i', 'p', 'c', 'p', 'u', '1'};

/// The blob. Nothing in it is trusted: the opened file must have this inode and size.
struct Blob {
  char magic[8];
  int64_t process;
  int64_t fd;
  uint64_t device;
  uint64_t inode;
  uint64_t size;
};

class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

struct stat stat_of(int fd, const char* what) {
  struct stat facts{};
  kit::require(fstat(fd, &facts) == 0, what, " ", fd,
               " is no open file descriptor: ", std::strerror(errno));
  return facts;
}

std::unique_ptr<chipdock_memory> import_fd(chipdock_device& device, OwnedFd& fd, uint64_t size) {
  const struct stat facts = stat_of(fd.get(), "fd");
  kit::require(facts.st_size > 0 && size <= static_cast<uint64_t>(facts.st_size), "import of ",
               size, " bytes from a file of ", facts.st_size);
  auto memory = std::make_unique<chipdock_memory>(device);
  memory->size = size != 0 ? size : static_cast<uint64_t>(facts.st_size);
  memory->fd = fd.get();
  try {
    map_memory(*memory, whole_pages(memory->size), device.settings.strict);
  } catch (...) {
    memory->fd = -1;  // Still the owner's: an import takes it only on success.
    throw;
  }
  fd.release();
  return memory;
}

std::unique_ptr<chipdock_memory> import_pointer(chipdock_device& device,
                                                const chipdock_external& external) {
  kit::require(external.pointer != nullptr && external.size > 0,
               "import of a NULL pointer or of 0 bytes");
  auto memory = std::make_unique<chipdock_memory>(device);
  memory->kind = chipdock_memory::Kind::kBorrowed;
  memory->size = external.size;
  memory->base = memory->handed = static_cast<char*>(external.pointer);
  if (device.settings.strict) {
    // The address must fault like any other of a strict device.
    memory->mapped = whole_pages(external.size);
    memory->handed = nullptr;
    void* handed = mmap(nullptr, memory->mapped, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (handed == MAP_FAILED) {
      kit::fail(CHIPDOCK_OUT_OF_MEMORY, "mmap of ", memory->mapped,
                " bytes: ", std::strerror(errno));
    }
    memory->handed = static_cast<char*>(handed);
  }
  return memory;
}

std::unique_ptr<chipdock_memory> import_blob(chipdock_device& device,
                                             const chipdock_external& external) {
  Blob blob{};
  kit::require(external.blob != nullptr, "blob is NULL");
  if (external.blob_size < sizeof(blob)) {
    kit::fail(CHIPDOCK_MISMATCH, "an IPC blob of ", external.blob_size,
              " bytes is not of chipdock.cpu");
  }
  std::memcpy(&blob, external.blob, sizeof(blob));
  if (std::memcmp(blob.magic, kMagic, sizeof(kMagic)) != 0) {
    kit::fail(CHIPDOCK_MISMATCH, "the IPC blob was not made by chipdock.cpu");
  }
  const std::string path =
      "/proc/" + std::to_string(blob.process) + "/fd/" + std::to_string(blob.fd);
  OwnedFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd.get() < 0) {
    kit::fail(CHIPDOCK_MISMATCH, "the memory of the IPC blob cannot be opened at ", path, ": ",
              std::strerror(errno),
              "; the exporter must live, keep it allocated and run as the same user");
  }
  const struct stat facts = stat_of(fd.get(), "fd");
  if (facts.st_ino != blob.inode || facts.st_dev != blob.device ||
      blob.size > static_cast<uint64_t>(facts.st_size)) {
    kit::fail(CHIPDOCK_MISMATCH, "the memory of the IPC blob was freed by its exporter");
  }
  return import_fd(device, fd, blob.size);
}

void export_blob(const chipdock_memory& memory, chipdock_external& out) {
  const uint64_t room = out.blob_size;
  out.blob_size = sizeof(Blob);
  out.size = memory.size;
  if (out.blob == nullptr) return;
  kit::require(room >= sizeof(Blob), "an IPC blob needs ", sizeof(Blob), " bytes, given were ",
               room);
  const struct stat facts = stat_of(memory.fd, "fd");
  Blob blob{};
  std::memcpy(blob.magic, kMagic, sizeof(kMagic));
  blob.process = getpid();
  blob.fd = memory.fd;
  blob.device = facts.st_dev;
  blob.inode = facts.st_ino;
  blob.size = memory.size;
  std::memcpy(out.blob, &blob, sizeof(blob));
}

}  // namespace

chipdock_status export_memory(chipdock_device* device, chipdock_memory* memory,
                              chipdock_external* out_external, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    deref(memory, "memory");
    kit::require(out_external != nullptr &&
                     out_external->struct_size >= CHIPDOCK_CPU_FIRST(chipdock_external, size),
                 "out_external is NULL or too small [BASE-5]");
    chipdock_external& out = *out_external;
    if (out.kind == CHIPDOCK_EXTERNAL_POINTER && memory->handed == memory->base) {
      out.pointer = memory->base;
      out.size = memory->size;
      return;
    }
    if (out.kind != CHIPDOCK_EXTERNAL_FD && out.kind != CHIPDOCK_EXTERNAL_IPC) {
      kit::fail(CHIPDOCK_UNSUPPORTED, "export as kind ", out.kind, " is not offered",
                device->settings.strict ? " in strict mode" : "");
    }
    kit::require(memory->fd >= 0,
                 "export needs memory that was allocated with CHIPDOCK_USAGE_SHARED");
    if (out.kind == CHIPDOCK_EXTERNAL_IPC) {
      export_blob(*memory, out);
      return;
    }
    const int fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) kit::fail(CHIPDOCK_OUT_OF_MEMORY, "dup of a descriptor: ", std::strerror(errno));
    out.fd = fd;
    out.size = memory->size;
  });
}

chipdock_status import_memory(chipdock_device* device, const chipdock_external* given,
                              chipdock_memory** out_memory, chipdock_error* error) {
  return kit::guard(error, [&] {
    deref(device, "device");
    chipdock_memory*& out = deref(out_memory, "out_memory");
    const auto external =
        kit::read_struct(given, CHIPDOCK_CPU_FIRST(chipdock_external, size), "external");
    kit::require(external.heap == 0, "heap ", external.heap,
                 " does not exist, there is heap 0 only");
    std::unique_ptr<chipdock_memory> memory;
    if (external.kind == CHIPDOCK_EXTERNAL_FD) {
      OwnedFd fd(external.fd);
      try {
        memory = import_fd(*device, fd, external.size);
      } catch (...) {
        fd.release();  // The caller keeps it.
        throw;
      }
    } else if (external.kind == CHIPDOCK_EXTERNAL_POINTER) {
      memory = import_pointer(*device, external);
    } else if (external.kind == CHIPDOCK_EXTERNAL_IPC) {
      memory = import_blob(*device, external);
    } else {
      kit::fail(CHIPDOCK_UNSUPPORTED, "import of kind ", external.kind, " is unknown");
    }
    out = device->memories.add(std::move(memory));
  });
}

}  // namespace chipdock::plugin::cpu
