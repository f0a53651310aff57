// Compiling, caching and loading kernels, and everything that may go wrong with compilers and cache folders.
#include "braze/toolchain/kernel_library.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "braze/support/error.h"
#include "braze/toolchain/files.h"
#include "braze/toolchain/sha256.h"

namespace braze::toolchain {
namespace {

namespace fs = std::filesystem;

plan::Kernel scale_kernel(const std::string& name, int factor) {
  plan::Kernel k;
  k.name = name;
  k.source = "extern \"C\" void " + name +
             "(void* const* p, const i64* s, i64 b, i64 e) { for (i64 i = b; i < e; i++) ((float*)p[1])[i] = "
             "((float*)p[0])[i] * " +
             std::to_string(factor) + "; }\n";
  k.source_key = sha256(k.source);
  return k;
}

float apply(KernelFunction f, float x) {
  float y = 0;
  void* p[] = {&x, &y};
  f(p, nullptr, 0, 1);
  return y;
}

struct KernelLibraryTest : testing::Test {
  TemporaryDirectory dir;
  Settings settings{{"g++", "clang++"}, 20, dir.path() + "/cache", 64u << 20, 0};

  void SetUp() override { setenv("TMPDIR", dir.path().c_str(), 1); }
  void TearDown() override { unsetenv("TMPDIR"); }
  KernelLibrary library() { return KernelLibrary(settings, {"typedef long i64;\n", {"-std=c++20", "-O1"}}, nullptr); }
  std::string script(const std::string& name, const std::string& body) {
    const std::string path = dir.path() + "/" + name;
    write_file(path, "#!/bin/sh\n" + body);
    chmod(path.c_str(), 0700);
    return path;
  }
  /// As a new file: the old one may be mapped by this process.
  static void overwrite(const fs::path& path, const std::string& bytes) {
    ASSERT_TRUE(write_file(path.string() + ".new", bytes));
    fs::rename(path.string() + ".new", path);
  }
  std::string failure() {
    try {
      library().load(std::vector{scale_kernel("k0", 2)});
    } catch (const support::CompileError& e) {
      return e.what();
    }
    return "no error";
  }
  std::vector<fs::path> units() {
    std::vector<fs::path> paths;
    for (const auto& e : fs::directory_iterator(settings.cache_dir + "/units")) paths.push_back(e.path());
    return paths;
  }
};

TEST_F(KernelLibraryTest, CompilesOnceAndServesFromMemory) {
  KernelLibrary l = library();
  const std::vector kernels = {scale_kernel("k0", 2), scale_kernel("k1", 3), scale_kernel("k0", 2)};
  const auto f = l.load(kernels);
  EXPECT_EQ(apply(f[0], 5), 10);
  EXPECT_EQ(apply(f[1], 5), 15);
  EXPECT_EQ(f[0], f[2]);
  EXPECT_EQ(l.load(kernels), f);
  EXPECT_EQ(l.counts().compiled, 2u);
}

TEST_F(KernelLibraryTest, KernelsMayCallTheMathLibrary) {
  plan::Kernel k;
  k.name = "k_gamma";
  k.source =
      "extern \"C\" float lgammaf(float);\n"
      "extern \"C\" void k_gamma(void* const* p, const i64*, i64, i64) { *(float*)p[1] = lgammaf(*(float*)p[0]); }\n";
  EXPECT_NEAR(apply(library().load(std::vector{k})[0], 5), 3.1780539, 1e-5);
}

TEST_F(KernelLibraryTest, ManyKernelsAreSplitIntoUnits) {
  std::vector<plan::Kernel> kernels;
  for (int i = 0; i < 12; i++) kernels.push_back(scale_kernel("k" + std::to_string(i), i));
  const auto f = library().load(kernels);
  for (int i = 0; i < 12; i++) EXPECT_EQ(apply(f[static_cast<std::size_t>(i)], 2), 2 * i);
}

TEST_F(KernelLibraryTest, AnotherProcessLoadsFromDisk) {
  library().load(std::vector{scale_kernel("k0", 2)});
  settings.time_limit = 1e-9;  // a compile would be killed
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_EQ(l.counts().from_disk, 1u);
}

TEST_F(KernelLibraryTest, ADamagedUnitIsRebuilt) {
  library().load(std::vector{scale_kernel("k0", 2)});
  for (const fs::path& unit : units()) {
    std::string bytes = *read_file(unit);
    bytes[bytes.size() / 2] ^= 1;
    overwrite(unit, bytes);
  }
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_EQ(l.counts().compiled, 1u);
}

TEST_F(KernelLibraryTest, TruncatedFilesAreRebuilt) {
  library().load(std::vector{scale_kernel("k0", 2)});
  for (const char* part : {"/units", "/kernels"})
    for (const auto& e : fs::directory_iterator(settings.cache_dir + part))
      overwrite(e.path(), read_file(e.path())->substr(0, 10));
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_EQ(l.counts().compiled, 1u);
}

TEST_F(KernelLibraryTest, TheCacheIsPrivateAndBounded) {
  settings.cache_bytes = 40000;
  KernelLibrary l = library();
  for (int i = 0; i < 6; i++) l.load(std::vector{scale_kernel("k" + std::to_string(i), i)});
  std::uintmax_t total = 0;
  for (const fs::path& unit : units()) total += fs::file_size(unit);
  EXPECT_LE(total, settings.cache_bytes);
  EXPECT_GT(total, 0u);
  struct stat s;
  ASSERT_EQ(stat(settings.cache_dir.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0700u);
}

TEST_F(KernelLibraryTest, AFolderOpenToOthersIsRefusedWithAWarning) {
  fs::create_directory(settings.cache_dir);
  chmod(settings.cache_dir.c_str(), 0777);
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_NE(l.take_warning().find("writable by others"), std::string::npos);
  EXPECT_EQ(l.take_warning(), "");
}

TEST_F(KernelLibraryTest, AForeignFolderIsRefused) {
  fs::create_directory(settings.cache_dir);
  if (chown(settings.cache_dir.c_str(), 12345, 12345) != 0) settings.cache_dir = geteuid() == 0 ? "" : "/";
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_NE(l.take_warning().find("belongs to user"), std::string::npos);
}

TEST_F(KernelLibraryTest, AFolderThatCannotBeMadeIsRefused) {
  write_file(settings.cache_dir, "a file");
  KernelLibrary l = library();
  EXPECT_EQ(apply(l.load(std::vector{scale_kernel("k0", 2)})[0], 4), 8);
  EXPECT_NE(l.take_warning().find("not a directory"), std::string::npos);
}

TEST_F(KernelLibraryTest, NoCompilerIsAClearError) {
  settings.compilers = {"/nowhere/c++", "no-such-compiler"};
  EXPECT_NE(failure().find("no C++ compiler works (tried /nowhere/c++, no-such-compiler)"), std::string::npos);
}

TEST_F(KernelLibraryTest, ACrashingCompilerNamesTheSavedSource) {
  settings.compilers = {
      script("crash", "case \"$*\" in *--version*) echo crash 1.0; exit 0;; esac\necho boom; kill -SEGV $$\n")};
  const std::string what = failure();
  EXPECT_NE(what.find("killed by signal 11"), std::string::npos) << what;
  EXPECT_NE(what.find("boom"), std::string::npos) << what;
  const std::size_t at = what.find("on /") + 3;
  const std::string source = what.substr(at, what.find(".cpp", at) + 4 - at);
  EXPECT_TRUE(read_file(source).value_or("").find("k0") != std::string::npos) << source;
  fs::remove_all(fs::path(source).parent_path());
}

TEST_F(KernelLibraryTest, AHangingCompilerIsKilled) {
  settings.compilers = {script("hang", "case \"$*\" in *--version*) echo hang 1.0; exit 0;; esac\nsleep 100 & wait\n")};
  settings.time_limit = 0.3;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(failure().find("killed at its time limit"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(KernelLibraryTest, AnInterruptKillsTheCompilerAndPassesOn) {
  struct Interrupted {};
  settings.compilers = {script("slow", "case \"$*\" in *--version*) echo slow 1.0; exit 0;; esac\nsleep 100\n")};
  KernelLibrary l(settings, {}, []() -> bool { throw Interrupted(); });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(l.load(std::vector{scale_kernel("k0", 2)}), Interrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(KernelLibraryTest, BadSourceQuotesTheCompiler) {
  plan::Kernel k = scale_kernel("k0", 2);
  k.source += "nonsense";
  try {
    library().load(std::vector{k});
    FAIL();
  } catch (const support::CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
}

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
}

}  // namespace
}  // namespace braze::toolchain
