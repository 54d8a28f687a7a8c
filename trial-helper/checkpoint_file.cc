#include "trial-helper/checkpoint_file.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/utf8.h"
#include "proto/client.h"
#include "trial-helper/trial_files.h"

namespace jizi::helper {
namespace {

namespace fs = std::filesystem;

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Status FileError(const std::string& what, const std::string& path) {
  const int error = errno;
  const std::string text = what + " " + path + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) {
    return Error(StatusCode::kResourceExhausted, text,
                 {"DISK_FULL", path, "make room on that disk; the older checkpoint is kept"});
  }
  if (error == ENOENT) return Error(StatusCode::kNotFound, text, {"NO_FILE", path, ""});
  if (error == ELOOP || error == ENOTDIR) {
    return Error(StatusCode::kInvalidArgument, text,
                 {"LINK", path, "a checkpoint's path may hold no links"});
  }
  return Error(StatusCode::kInternal, text, {"FILE", path, ""});
}

Status Outside(const std::string& path, const std::string& folder) {
  return Error(StatusCode::kInvalidArgument,
               "the checkpoint " + path + " does not lie beneath the trial's folder " + folder,
               {"OUTSIDE", path, "write it beneath trial->Directory()"});
}

// A file beneath a folder: the folder that it stands in, opened link by link, and its name there.
struct Beneath {
  Descriptor folder;
  std::string name;
  std::string relative;
};

StatusOr<Beneath> OpenBeneath(const std::string& folder, const std::string& path) {
  const fs::path given(path);
  const fs::path relative =
      given.is_absolute()
          ? given.lexically_normal().lexically_relative(fs::path(folder).lexically_normal())
          : given.lexically_normal();
  if (relative.empty() || !relative.has_filename() || relative == "." ||
      *relative.begin() == "..") {
    return Outside(path, folder);
  }
  Descriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (at.get() < 0) return FileError("cannot open the trial's folder", folder);
  for (const fs::path& part : relative.parent_path()) {
    Descriptor next(
        openat(at.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (next.get() < 0) return FileError("cannot open the folder of", path);
    at = std::move(next);
  }
  return Beneath{std::move(at), relative.filename().string(), relative.string()};
}

StatusOr<Descriptor> OpenFile(const Beneath& where) {
  // Not blocking: a pipe of that name must not hold the training run.
  Descriptor file(openat(where.folder.get(), where.name.c_str(),
                         O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return FileError("cannot open", where.relative);
  struct stat status{};
  if (fstat(file.get(), &status) != 0) return FileError("cannot read", where.relative);
  if (!S_ISREG(status.st_mode)) {
    return Error(StatusCode::kInvalidArgument, where.relative + " is no ordinary file",
                 {"NO_FILE", where.relative, "write the checkpoint as one file"});
  }
  return file;
}

// Size and digest of an open file.
StatusOr<v1::Checkpoint> Digest(int fd, const std::string& path) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  CHECK(context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  v1::Checkpoint checkpoint;
  std::vector<unsigned char> buffer(size_t{1} << 20);
  int64_t bytes = 0;
  while (true) {
    const ssize_t n = pread(fd, buffer.data(), buffer.size(), bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FileError("cannot read", path);
    if (n == 0) break;
    EVP_DigestUpdate(context.get(), buffer.data(), static_cast<size_t>(n));
    bytes += n;
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  checkpoint.set_path(path);
  checkpoint.set_bytes(bytes);
  checkpoint.set_sha256(hex);
  return checkpoint;
}

// Syncs the file and its folder, and digests it.
StatusOr<v1::Checkpoint> MakeDurable(const Beneath& where, int64_t step) {
  const Descriptor file = TRY(OpenFile(where));
  if (fsync(file.get()) != 0) return FileError("cannot sync", where.relative);
  v1::Checkpoint checkpoint = TRY(Digest(file.get(), where.relative));
  if (checkpoint.bytes() == 0) {
    return Error(StatusCode::kInvalidArgument, "the checkpoint " + where.relative + " is empty",
                 {"EMPTY", where.relative, "see that its writer succeeds, or throws"});
  }
  checkpoint.set_step(step);
  return checkpoint;
}

StatusOr<v1::Checkpoint> WriteAndRename(const std::string& folder, const std::string& name,
                                        int64_t step,
                                        const std::function<void(const std::string&)>& writer) {
  Beneath temporary = TRY(OpenBeneath(folder, "checkpoints/." + name + ".tmp"));
  const auto give_up = [&](Status status) {
    unlinkat(temporary.folder.get(), temporary.name.c_str(), 0);
    return status;
  };
  // What a killed attempt left there; also a link that somebody put there.
  unlinkat(temporary.folder.get(), temporary.name.c_str(), 0);
  try {
    writer((fs::path(folder) / temporary.relative).string());
  } catch (const std::exception& error) {
    return give_up(Error(StatusCode::kInternal, std::string("its writer threw: ") + error.what(),
                         {"WRITER", name, ""}));
  }
  StatusOr<v1::Checkpoint> checkpoint = MakeDurable(temporary, step);
  if (!checkpoint.ok()) return give_up(checkpoint.status());
  struct statvfs disk{};
  if (fstatvfs(temporary.folder.get(), &disk) == 0 && disk.f_blocks > 0 && disk.f_bavail == 0) {
    // Streams swallow ENOSPC: a file on a disk without one free block is not to be trusted. File
    // systems that keep no count of blocks (some of FUSE, a tmpfs without a limit) report none.
    errno = ENOSPC;
    return give_up(FileError("cannot trust", temporary.relative));
  }
  if (renameat(temporary.folder.get(), temporary.name.c_str(), temporary.folder.get(),
               name.c_str()) != 0 ||
      fsync(temporary.folder.get()) != 0) {
    return give_up(FileError("cannot rename", temporary.relative));
  }
  checkpoint->set_path("checkpoints/" + name);
  return checkpoint;
}

}  // namespace

StatusOr<v1::Checkpoint> WriteCheckpoint(const std::string& folder, int64_t step, int attempt,
                                         const std::function<void(const std::string&)>& writer) {
  std::error_code ignored;
  MakePrivateFolder(folder);  // A failure shows when the folder is opened.
  if (mkdir((folder + "/checkpoints").c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError("cannot make", folder + "/checkpoints");
  }
  // Never over a registered one: its digest would no longer be right.
  const std::string stem = "step-" + std::to_string(step) + "-attempt-" + std::to_string(attempt);
  std::string name = stem;
  for (int again = 2; fs::exists(fs::symlink_status(folder + "/checkpoints/" + name, ignored));
       ++again) {
    name = stem + "-" + std::to_string(again);
  }
  return WriteAndRename(folder, name, step, writer);
}

StatusOr<v1::Checkpoint> AdoptCheckpoint(const std::string& folder, int64_t step,
                                         const std::string& path) {
  const Beneath where = TRY(OpenBeneath(folder, path));
  if (!IsUtf8(where.relative)) {
    return Error(StatusCode::kInvalidArgument, "the checkpoint's path " + path + " is no UTF-8",
                 {"NO_UTF8", path, "the service could not be told of it: use another name"});
  }
  v1::Checkpoint checkpoint = TRY(MakeDurable(where, step));
  if (fsync(where.folder.get()) != 0) return FileError("cannot sync the folder of", path);
  return checkpoint;
}

StatusOr<std::string> VerifyCheckpoint(const std::string& folder,
                                       const v1::Checkpoint& checkpoint) {
  const Beneath where = TRY(OpenBeneath(folder, checkpoint.path()));
  const Descriptor file = TRY(OpenFile(where));
  const v1::Checkpoint found = TRY(Digest(file.get(), where.relative));
  if (found.bytes() != checkpoint.bytes() || found.sha256() != checkpoint.sha256()) {
    return Error(StatusCode::kInvalidArgument,
                 "the checkpoint " + folder + "/" + where.relative +
                     " is not the one that was registered (" + std::to_string(found.bytes()) +
                     " bytes, registered " + std::to_string(checkpoint.bytes()) + ")",
                 {"CHECKPOINT_CHANGED", where.relative, "restore it, or retry the trial afresh"});
  }
  return (fs::path(folder) / where.relative).string();
}

}  // namespace jizi::helper
