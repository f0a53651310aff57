// Graphs compiled to C++, built by the machine's compiler and run, against the interpreters of loops and of kernels.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "braze/codegen/cpp/prelude.h"
#include "braze/compile/compile.h"
#include "braze/kernel/interpret.h"
#include "braze/loop/interpret.h"
#include "braze/support/check.h"

namespace braze::compile {
namespace {

using loop::Array;
using op::DType;
using Kernel = void (*)(void* const*, const std::int64_t*, std::int64_t, std::int64_t);

const Target kPortable{{}, 2, false, true};

class Unit {
 public:
  explicit Unit(const std::vector<plan::Plan>& plans) {
    std::string folder = "/tmp/braze_kernels_XXXXXX";
    BRAZE_CHECK(mkdtemp(folder.data()), "no temporary folder");
    std::ofstream source(folder + "/k.cpp");
    source << codegen::cpp_prelude(kPortable);
    std::set<std::string> written;
    for (const plan::Plan& p : plans)
      for (const plan::Kernel& k : p.kernels)
        if (written.insert(k.name).second) source << k.source;
    source.close();
    std::string command = "c++ -shared -fPIC";
    for (const std::string& f : codegen::cpp_flags(kPortable)) command += " " + f;
    command += " -O0";  // compiles ten times faster
    const std::string built = command + " " + folder + "/k.cpp -o " + folder + "/k.so";
    BRAZE_CHECK(std::system(built.c_str()) == 0, "{} fails", built);
    library_ = dlopen((folder + "/k.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    BRAZE_CHECK(library_, "{}", dlerror());
    std::system(("rm -r " + folder).c_str());
  }
  ~Unit() { dlclose(library_); }
  Unit(const Unit&) = delete;
  Kernel find(const std::string& name) const { return reinterpret_cast<Kernel>(dlsym(library_, name.c_str())); }

 private:
  void* library_;
};

double get(const std::vector<char>& bytes, DType t, std::size_t k) {
  const auto as = [&]<class T>(T v) {
    std::memcpy(&v, bytes.data() + k * sizeof(T), sizeof(T));
    return static_cast<double>(v);
  };
  if (t == DType::kFloat32) return as(float{});
  if (t == DType::kFloat64) return as(double{});
  if (t == DType::kInt64) return as(std::int64_t{});
  return as(std::uint8_t{});
}

void set(std::vector<char>& bytes, DType t, std::size_t k, double x) {
  const auto as = [&]<class T>(T) {
    const T v = static_cast<T>(x);
    std::memcpy(bytes.data() + k * sizeof(T), &v, sizeof(T));
  };
  if (t == DType::kFloat32) return as(float{});
  if (t == DType::kFloat64) return as(double{});
  if (t == DType::kInt64) return as(std::int64_t{});
  as(std::uint8_t{});
}

using Bytes = std::vector<std::vector<char>>;
using Call = std::function<void(const plan::Kernel&, void* const*, const std::int64_t*, std::int64_t, std::int64_t)>;

Bytes run(const plan::Plan& p, const Bytes& inputs, const Call& call) {
  std::map<std::uint32_t, std::vector<char>> memory;
  for (std::size_t k = 0; k < inputs.size(); ++k) memory[p.inputs[k].index] = inputs[k];
  for (const plan::Step& step : p.steps) {
    if (const auto* a = std::get_if<plan::Alloc>(&step)) {
      const op::TensorType& t = p.buffers[a->buffer.index].type;
      memory[a->buffer.index].assign(static_cast<std::size_t>(t.numel().constant() * op::bytes(t.dtype)), '\x7f');
    } else if (const auto* l = std::get_if<plan::Launch>(&step)) {
      std::vector<void*> pointers;
      for (plan::BufferId b : l->buffers) pointers.push_back(memory.at(b.index).data());
      std::int32_t failed = 0;
      pointers.push_back(&failed);
      std::vector<std::int64_t> integers;
      for (const sym::SymExpr& i : l->integers) integers.push_back(i.constant());
      const std::int64_t extent = l->extent.constant(), middle = extent / 3;  // two chunks
      const plan::Kernel& kernel = p.kernels[l->kernel.index];
      call(kernel, pointers.data(), integers.data(), 0, middle);
      call(kernel, pointers.data(), integers.data(), middle, extent);
      EXPECT_EQ(failed, 0);
    }
  }
  Bytes outputs;
  for (plan::BufferId b : p.outputs) outputs.push_back(memory.at(b.index));
  return outputs;
}

void interpret(const plan::Kernel& k, void* const* p, const std::int64_t* s, std::int64_t begin, std::int64_t end) {
  kernel::interpret(kernel::parse(k.summary), p, s, begin, end);
}

struct Inputs {
  explicit Inputs(const graph::Graph& g) {
    std::mt19937 random(3);
    for (graph::ValueId v : g.inputs) {
      const op::TensorType& t = g.type(v);
      Array a{t, {}};
      const auto n = static_cast<std::size_t>(t.numel().constant());
      std::vector<char> b(n * static_cast<std::size_t>(op::bytes(t.dtype)));
      for (std::size_t k = 0; k < n; ++k) {
        const double x = op::is_floating(t.dtype) ? static_cast<double>(random() % 4001) / 1000 - 2
                                                  : static_cast<double>(random() % (t.dtype == DType::kBool ? 2 : 7));
        set(b, t.dtype, k, x);
        a.elements.push_back({get(b, t.dtype, k), static_cast<std::int64_t>(x)});
      }
      arrays.push_back(std::move(a));
      bytes.push_back(std::move(b));
    }
  }
  std::vector<Array> arrays;
  Bytes bytes;
};

void expect_near(const Bytes& got, const std::vector<Array>& expected, const std::string& what) {
  for (std::size_t r = 0; r < got.size(); ++r) {
    const DType t = expected[r].type.dtype;
    for (std::size_t k = 0; k < expected[r].elements.size(); ++k) {
      const double x = get(got[r], t, k);
      const double y =
          op::is_floating(t) ? expected[r].elements[k].number : static_cast<double>(expected[r].elements[k].integer);
      ASSERT_NEAR(x, y, op::is_floating(t) ? 2e-5 * (1 + std::abs(y)) : 0)
          << what << ", result " << r << " element " << k;
    }
  }
}

std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const char* n : {"1", "7", "31", "1021"}) {
    std::string text = R"(graph @rows_of_N(%x: f32[5, N], %y: f32[N]) -> (f32[5, N], f32[5], f32[N], f32[]) {
      %0: f32[5, N] = aten._softmax(%x, dim=-1, half_to_float=false)
      %1: f32[5, N] = aten.mul.Tensor(%0, %y)
      %2: f32[5] = aten.sum.dim_IntList(%1, dim=[1])
      %3: f32[N] = aten.sum.dim_IntList(%x, dim=[0])
      %4: f32[] = aten.mean(%x)
      return %1, %2, %3, %4 })";
    for (std::size_t at; (at = text.find("N")) != text.npos;) text.replace(at, 1, n);
    all.push_back(text);
  }
  all.emplace_back(R"(graph @columns_in_slots(%x: f32[700, 301]) -> (f32[700, 301], f32[301], f32[]) {
    %0: f32[700, 301] = aten.exp(%x)
    %1: f32[301] = aten.sum.dim_IntList(%0, dim=[0])
    %2: f32[] = aten.sum(%x)
    return %0, %1, %2 })");
  all.emplace_back(
      R"(graph @wide_types_and_masks(%x: f64[3, 31], %i: i64[3, 31], %m: b8[3, 31]) -> (f64[3, 31], i64[3], i64[3, 31], b8[31]) {
    %0: f64[3, 31] = aten.where.self(%m, self=%x, other=0.5)
    %1: i64[3] = aten.sum.dim_IntList(%i, dim=[1])
    %2: i64[3, 31] = aten.remainder.Scalar(%i, other=3)
    %3: b8[31] = aten.any.dim(%m, dim=0)
    return %0, %1, %2, %3 })");
  all.emplace_back(R"(graph @gather_and_scatter(%w: f32[8, 33], %i: i64[9]) -> (f32[9, 33], f32[8, 33]) {
    %0: f32[9, 33] = aten.embedding(%w, %i)
    %1: f32[8, 33] = aten.embedding_dense_backward(%0, indices=%i, num_weights=8, padding_idx=-1, scale_grad_by_freq=false)
    return %0, %1 })");
  all.emplace_back(R"(graph @transpose(%y: f32[133, 170], %x: f32[170, 133]) -> f32[170, 133] {
    %0: f32[170, 133]{1, 170} = aten.t(%y)
    %1: f32[170, 133] = aten.add.Tensor(%0, %x)
    return %1 })");
  all.emplace_back(R"(graph @extremes(%x: f32[4, 70], %i: i64[4, 70]) -> (f32[4], i64[4], i64[70], f32[70]) {
    %0: f32[4] = aten.amax(%x, dim=[1])
    %1: i64[4] = aten.argmax(%x, dim=1)
    %2: i64[70] = aten.argmin(%i, dim=0)
    %3: f32[70] = aten.amin(%x, dim=[0])
    return %0, %1, %2, %3 })");
  all.emplace_back(R"(graph @integer_division(%a: i64[5, 29], %b: i64[5, 29]) -> (i64[5, 29], i64[5, 29]) {
    %0: i64[5, 29] = aten.sub.Scalar(%a, other=3)
    %1: i64[5, 29] = aten.add.Scalar(%b, other=1)
    %2: i64[5, 29] = aten.floor_divide(%0, %1)
    %3: i64[5, 29] = aten.remainder.Tensor(%0, %1)
    return %2, %3 })");
  return all;
}

// One unit for all: the compiler reads the prelude once.
TEST(Kernels, LoopsKernelsAndCodeAgree) {
  struct Checking : support::Observer {
    bool checks() const override { return true; }
  } o;
  std::vector<graph::Graph> graphs;
  std::vector<plan::Plan> plans;
  for (const std::string& text : texts()) {
    graphs.push_back(graph::parse(text));
    plans.push_back(compile(graphs.back(), kPortable, o));
  }
  const Unit unit(plans);
  const Call compiled = [&](const plan::Kernel& k, void* const* p, const std::int64_t* s, std::int64_t begin,
                            std::int64_t end) { unit.find(k.name)(p, s, begin, end); };
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const Inputs inputs(graphs[g]);
    const auto expected = loop::interpret(loop::lower(graphs[g], {.checks = true}), inputs.arrays);
    expect_near(run(plans[g], inputs.bytes, interpret), expected, graphs[g].name + " in kernel IR");
    expect_near(run(plans[g], inputs.bytes, compiled), expected, graphs[g].name + " compiled");
  }
}

TEST(Kernels, ChecksSetTheFlag) {
  support::Observer o;
  const plan::Plan p = compile(graph::parse(R"(graph @f(%a: i64[40], %b: i64[40]) -> i64[40] {
    %0: i64[40] = aten.floor_divide(%a, %b)
    return %0 })"),
                               kPortable, o);
  const auto& l = std::get<plan::Launch>(p.steps.at(1));
  ASSERT_TRUE(l.checks);
  std::vector<std::int64_t> memory(40, 1);
  memory[39] = 0;
  std::int32_t failed = 0;
  std::vector<void*> pointers(l.buffers.size(), memory.data());
  pointers.push_back(&failed);
  interpret(p.kernels[0], pointers.data(), nullptr, 0, 39);
  EXPECT_EQ(failed, 0);
  interpret(p.kernels[0], pointers.data(), nullptr, 39, 40);
  EXPECT_EQ(failed, 1);
}

}  // namespace
}  // namespace braze::compile
