#include "tests/store/fault_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace jizi::tuner::testing {
namespace {

constexpr int64_t kSector = 512;

std::string Content(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  std::string content(static_cast<size_t>(in.tellg()), '\0');
  in.seekg(0);
  in.read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

// A write that was not synced yet, or, without bytes, a truncation to `offset`.
struct Pending {
  int64_t offset = 0;
  std::optional<std::string> bytes;
};

struct FileOnDisk {
  std::string synced;
  std::vector<Pending> pending;
};

void Put(std::string& content, int64_t offset, const char* bytes, int64_t count) {
  if (static_cast<int64_t>(content.size()) < offset + count) {
    content.resize(static_cast<size_t>(offset + count), '\0');
  }
  std::memcpy(content.data() + offset, bytes, static_cast<size_t>(count));
}

void Land(std::string& content, const Pending& write, std::mt19937_64& random) {
  if (!write.bytes) {
    if (random() % 2 == 0) content.resize(static_cast<size_t>(write.offset), '\0');
    return;
  }
  const auto size = static_cast<int64_t>(write.bytes->size());
  for (int64_t at = 0; at < size;) {
    const int64_t end = std::min(size, at + kSector - (write.offset + at) % kSector);
    if (random() % 2 == 0) Put(content, write.offset + at, write.bytes->data() + at, end - at);
    at = end;
  }
}

}  // namespace

struct FaultVfs::State {
  sqlite3_vfs vfs{};
  sqlite3_vfs* below = nullptr;
  std::string name;

  mutable Mutex mutex;
  int64_t countdown GUARDED_BY(mutex) = 0;  // 0: no fault is due.
  Fault fault GUARDED_BY(mutex) = Fault::kIoError;
  bool has_fired GUARDED_BY(mutex) = false;
  bool dark GUARDED_BY(mutex) = false;  // After a power loss.
  std::map<std::string, FileOnDisk> files GUARDED_BY(mutex);

  // What the next write answers: SQLITE_OK, or the fault's code.
  int Write(int error) REQUIRES(mutex) {
    if (dark) return error;
    if (countdown == 0 || --countdown > 0) return SQLITE_OK;
    has_fired = true;
    if (fault == Fault::kFull) return SQLITE_FULL;
    if (fault == Fault::kReadOnly) return SQLITE_READONLY;
    dark = fault == Fault::kPowerLoss;
    return error;
  }
  bool IsDark() const {
    const MutexLock lock(mutex);
    return dark;
  }
};

namespace {

struct File {
  sqlite3_file base;
  FaultVfs::State* state;
  const char* path;  // SQLite keeps it until the file is closed; null for a temporary file.
  sqlite3_file* below;
};

File* Of(sqlite3_file* file) {
  return reinterpret_cast<File*>(file);
}
const sqlite3_io_methods& Below(sqlite3_file* file) {
  return *Of(file)->below->pMethods;
}

int Close(sqlite3_file* file) {
  return Below(file).xClose(Of(file)->below);
}
int Read(sqlite3_file* file, void* into, int count, sqlite3_int64 offset) {
  if (Of(file)->state->IsDark()) return SQLITE_IOERR_READ;
  return Below(file).xRead(Of(file)->below, into, count, offset);
}
int WriteAt(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  FaultVfs::State& state = *Of(file)->state;
  const MutexLock lock(state.mutex);
  if (const int code = state.Write(SQLITE_IOERR_WRITE); code != SQLITE_OK) return code;
  if (Of(file)->path != nullptr) {
    state.files[Of(file)->path].pending.push_back(
        {offset, std::string(static_cast<const char*>(bytes), static_cast<size_t>(count))});
  }
  return Below(file).xWrite(Of(file)->below, bytes, count, offset);
}
int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  FaultVfs::State& state = *Of(file)->state;
  const MutexLock lock(state.mutex);
  if (const int code = state.Write(SQLITE_IOERR_TRUNCATE); code != SQLITE_OK) return code;
  if (Of(file)->path != nullptr) {
    state.files[Of(file)->path].pending.push_back({size, std::nullopt});
  }
  return Below(file).xTruncate(Of(file)->below, size);
}
int Sync(sqlite3_file* file, int) {
  FaultVfs::State& state = *Of(file)->state;
  const MutexLock lock(state.mutex);
  if (const int code = state.Write(SQLITE_IOERR_FSYNC); code != SQLITE_OK) return code;
  if (Of(file)->path != nullptr) state.files[Of(file)->path] = {Content(Of(file)->path), {}};
  return SQLITE_OK;  // The real disk is not asked: its caches are no matter here.
}
int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  return Below(file).xFileSize(Of(file)->below, size);
}
int Lock(sqlite3_file* file, int level) {
  return Below(file).xLock(Of(file)->below, level);
}
int Unlock(sqlite3_file* file, int level) {
  return Below(file).xUnlock(Of(file)->below, level);
}
int CheckReserved(sqlite3_file* file, int* held) {
  return Below(file).xCheckReservedLock(Of(file)->below, held);
}
int Control(sqlite3_file* file, int operation, void* argument) {
  return Below(file).xFileControl(Of(file)->below, operation, argument);
}
int SectorSize(sqlite3_file* file) {
  return Below(file).xSectorSize(Of(file)->below);
}
int Characteristics(sqlite3_file*) {
  return 0;
}  // No promises: sectors may tear.
int ShmMap(sqlite3_file* file, int page, int size, int extend, void volatile** into) {
  return Below(file).xShmMap(Of(file)->below, page, size, extend, into);
}
int ShmLock(sqlite3_file* file, int offset, int count, int flags) {
  return Below(file).xShmLock(Of(file)->below, offset, count, flags);
}
void ShmBarrier(sqlite3_file* file) {
  Below(file).xShmBarrier(Of(file)->below);
}
int ShmUnmap(sqlite3_file* file, int remove) {
  return Below(file).xShmUnmap(Of(file)->below, remove);
}

constexpr sqlite3_io_methods kMethods = {
    2,        Close,         Read,    WriteAt,    Truncate,        Sync,   FileSize, Lock,
    Unlock,   CheckReserved, Control, SectorSize, Characteristics, ShmMap, ShmLock,  ShmBarrier,
    ShmUnmap, nullptr,       nullptr};

FaultVfs::State& StateOf(sqlite3_vfs* vfs) {
  return *static_cast<FaultVfs::State*>(vfs->pAppData);
}

int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  FaultVfs::State& state = StateOf(vfs);
  file->pMethods = nullptr;
  if (state.IsDark()) return SQLITE_CANTOPEN;
  auto* below = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(File));
  const std::string before = path == nullptr ? std::string() : Content(path);
  const int code = state.below->xOpen(state.below, path, below, flags, out_flags);
  if (code != SQLITE_OK) return code;
  Of(file)->state = &state;
  Of(file)->path = path;
  Of(file)->below = below;
  file->pMethods = &kMethods;
  if (path != nullptr) {
    const MutexLock lock(state.mutex);
    state.files.try_emplace(path, FileOnDisk{before, {}});
  }
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* path, int) {
  FaultVfs::State& state = StateOf(vfs);
  const MutexLock lock(state.mutex);
  if (const int code = state.Write(SQLITE_IOERR_DELETE); code != SQLITE_OK) return code;
  state.files.erase(path);
  return state.below->xDelete(state.below, path, 0);
}

int Access(sqlite3_vfs* vfs, const char* path, int flags, int* answer) {
  return StateOf(vfs).below->xAccess(StateOf(vfs).below, path, flags, answer);
}
int FullPathname(sqlite3_vfs* vfs, const char* path, int size, char* into) {
  return StateOf(vfs).below->xFullPathname(StateOf(vfs).below, path, size, into);
}
int Randomness(sqlite3_vfs* vfs, int size, char* into) {
  return StateOf(vfs).below->xRandomness(StateOf(vfs).below, size, into);
}
int Sleep(sqlite3_vfs* vfs, int microseconds) {
  return StateOf(vfs).below->xSleep(StateOf(vfs).below, microseconds);
}
int CurrentTime(sqlite3_vfs* vfs, double* time) {
  return StateOf(vfs).below->xCurrentTime(StateOf(vfs).below, time);
}

}  // namespace

FaultVfs::FaultVfs() : state_(std::make_unique<State>()) {
  static std::atomic<int> made{0};
  State& state = *state_;
  state.below = sqlite3_vfs_find(nullptr);
  state.name = "fault" + std::to_string(made++);
  state.vfs.iVersion = 1;
  state.vfs.szOsFile = static_cast<int>(sizeof(File)) + state.below->szOsFile;
  state.vfs.mxPathname = state.below->mxPathname;
  state.vfs.zName = state.name.c_str();
  state.vfs.pAppData = &state;
  state.vfs.xOpen = Open;
  state.vfs.xDelete = Delete;
  state.vfs.xAccess = Access;
  state.vfs.xFullPathname = FullPathname;
  state.vfs.xRandomness = Randomness;
  state.vfs.xSleep = Sleep;
  state.vfs.xCurrentTime = CurrentTime;
  sqlite3_vfs_register(&state.vfs, 0);
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&state_->vfs);
}

const std::string& FaultVfs::name() const {
  return state_->name;
}

void FaultVfs::FailAt(int64_t k, Fault fault) {
  const MutexLock lock(state_->mutex);
  state_->countdown = k;
  state_->fault = fault;
  state_->has_fired = false;
}

bool FaultVfs::fired() const {
  const MutexLock lock(state_->mutex);
  return state_->has_fired;
}

void FaultVfs::Reboot(uint64_t seed) {
  std::mt19937_64 random(seed);
  const MutexLock lock(state_->mutex);
  for (auto& [path, file] : state_->files) {
    for (const Pending& write : file.pending) Land(file.synced, write, random);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << file.synced;
  }
  state_->files.clear();
  state_->countdown = 0;
  state_->dark = false;
}

}  // namespace jizi::tuner::testing
