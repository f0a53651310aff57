#include "braze/toolchain/kernel_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "braze/support/check.h"
#include "braze/support/error.h"
#include "braze/toolchain/compiler.h"
#include "braze/toolchain/disk_cache.h"
#include "braze/toolchain/files.h"
#include "braze/toolchain/sha256.h"

namespace braze::toolchain {

namespace {

constexpr std::size_t kKernelsPerUnit = 10;  // fewer: start-up of a compiler costs more than parallelism gains

/// One translation unit: the kernels with these indices.
struct Unit {
  std::vector<std::size_t> kernels;
  std::string source, key;
};

/// Units are linked without libraries: libc is in every process, libm is put into the global scope once.
void* open_object(const std::string& path) {
  static void* const libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_GLOBAL);
  static_cast<void>(libm);
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw support::CompileError(support::format("cannot load compiled kernels: {}", dlerror()));
  return handle;
}

KernelFunction find_symbol(void* handle, const std::string& symbol) {
  void* address = dlsym(handle, symbol.c_str());
  if (address == nullptr) throw support::CompileError(support::format("compiled kernels lack the symbol {}", symbol));
  return reinterpret_cast<KernelFunction>(address);
}

/// Splits by source size into as many units as are worth a compiler each, biggest kernels first.
std::vector<Unit> bundle(std::span<const plan::Kernel> kernels, std::vector<std::size_t> missing) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = missing.size() < kKernelsPerUnit ? 1 : std::min(cores, missing.size());
  std::ranges::stable_sort(missing, std::ranges::greater{}, [&](std::size_t i) { return kernels[i].source.size(); });
  std::vector<Unit> units(count);
  std::vector<std::size_t> load(count);
  for (const std::size_t i : missing) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(load) - load.begin());
    units[least].kernels.push_back(i);
    load[least] += kernels[i].source.size();
  }
  return units;
}

}  // namespace

struct KernelLibrary::State {
  State(Settings s, Dialect d, bool (*i)()) : settings(std::move(s)), dialect(std::move(d)), interrupted(i) {}

  void prepare();
  std::string key_of(const plan::Kernel& k) const { return sha256(key_prefix + k.name + "\n" + k.source); }
  std::optional<KernelFunction> find_on_disk(const std::string& key);
  void compile(std::span<const plan::Kernel> kernels, const std::vector<std::string>& keys,
               const std::vector<std::size_t>& missing);
  void* handle_of(const std::string& object);

  const Settings settings;
  const Dialect dialect;
  bool (*const interrupted)();
  std::mutex mutex;
  std::optional<Compiler> compiler;
  std::optional<DiskCache> disk;
  std::string key_prefix, warning;
  std::map<std::string, KernelFunction> functions;  // by content key
  std::map<std::string, void*> handles;             // by path
  Counts counts;
};

/// Finds compiler and cache on first use; a missing compiler is looked for again by the next call.
void KernelLibrary::State::prepare() {
  if (!disk) {
    disk.emplace(settings.cache_dir, settings.cache_bytes);
    if (!disk->refusal().empty()) warning = "kernels are not kept on disk: " + disk->refusal();
  }
  if (compiler) return;
  compiler = find_compiler(settings, dialect.flags);
  key_prefix = sha256(compiler->identity + "\n" + dialect.prelude);
}

void* KernelLibrary::State::handle_of(const std::string& object) {
  auto [at, fresh] = handles.try_emplace(object, nullptr);
  if (fresh) {
    try {
      at->second = open_object(object);
    } catch (...) {
      handles.erase(at);
      throw;
    }
  }
  return at->second;
}

std::optional<KernelFunction> KernelLibrary::State::find_on_disk(const std::string& key) {
  const auto found = disk->find(key);
  if (!found) return std::nullopt;
  try {
    return find_symbol(handle_of(found->object), found->symbol);
  } catch (const support::CompileError&) {  // whole but unusable: built again
    return std::nullopt;
  }
}

void KernelLibrary::State::compile(std::span<const plan::Kernel> kernels, const std::vector<std::string>& keys,
                                   const std::vector<std::size_t>& missing) {
  std::vector<Unit> units = bundle(kernels, missing);
  TemporaryDirectory work;
  std::vector<Job> jobs;
  for (Unit& u : units) {
    u.source = dialect.prelude;
    for (const std::size_t i : u.kernels) u.source += "\n" + kernels[i].source;
    u.key = sha256(compiler->identity + "\n" + u.source);
    jobs.push_back({work.path() + "/" + u.key.substr(0, 16) + ".cpp", work.path() + "/" + u.key.substr(0, 16) + ".so"});
    if (!write_file(jobs.back().source, u.source)) throw support::CompileError("cannot write " + jobs.back().source);
  }
  try {
    compile_all(*compiler, jobs, settings, interrupted);
  } catch (const support::CompileError&) {
    work.keep();  // the message names the source
    throw;
  }
  for (std::size_t n = 0; n < units.size(); n++) {
    const auto kept = disk->store(units[n].key, jobs[n].object);
    void* handle = handle_of(kept.value_or(jobs[n].object));
    if (!kept) handles.erase(jobs[n].object);  // the path ends with `work`, the mapping stays
    for (const std::size_t i : units[n].kernels) {
      functions.emplace(keys[i], find_symbol(handle, kernels[i].name));
      if (kept) disk->store_kernel(keys[i], units[n].key, kernels[i].name);
    }
  }
  counts.compiled += missing.size();
  disk->trim();
}

KernelLibrary::KernelLibrary(Settings settings, Dialect dialect, bool (*interrupted)())
    : state_(std::make_unique<State>(std::move(settings), std::move(dialect), interrupted)) {}
KernelLibrary::~KernelLibrary() = default;

std::vector<KernelFunction> KernelLibrary::load(std::span<const plan::Kernel> kernels) {
  if (kernels.empty()) return {};
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  s.prepare();
  std::vector<std::string> keys;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < kernels.size(); i++) {
    keys.push_back(s.key_of(kernels[i]));
    if (s.functions.contains(keys[i])) {
      s.counts.from_memory++;
    } else if (const auto f = s.find_on_disk(keys[i])) {
      s.functions.emplace(keys[i], *f);
      s.counts.from_disk++;
    } else if (std::ranges::find(keys.begin(), keys.end() - 1, keys[i]) == keys.end() - 1) {
      missing.push_back(i);
    }
  }
  if (!missing.empty()) s.compile(kernels, keys, missing);
  std::vector<KernelFunction> functions;
  for (const std::string& key : keys) functions.push_back(s.functions.at(key));
  return functions;
}

KernelLibrary::Counts KernelLibrary::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

std::string KernelLibrary::take_warning() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->warning, "");
}

}  // namespace braze::toolchain
