// braze-opt "stage | stage" < text: reads a program of any level, runs the stages, prints what results.
//
// A stage is a pass of the level at hand or a step to another level; to add one, add a row to kStages (or a pass to its
// layer's list). `braze-opt list` prints them all.
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <variant>

#include "braze/autograd/joint_graph.h"
#include "braze/codegen/cpp/prelude.h"
#include "braze/compile/compile.h"
#include "braze/graph/passes.h"
#include "braze/kernel/tile.h"
#include "braze/loop/passes.h"
#include "braze/schedule/schedule.h"
#include "braze/support/text.h"

namespace {

using namespace braze;
using support::format;

/// What the stages hand on. Text: the end of a pipeline.
using Program = std::variant<graph::Graph, loop::LoopProgram, std::string>;

struct Stage {
  std::string_view name;
  std::string_view summary;
  Program (*apply)(Program);
};

template <class IR>
IR take(Program p, std::string_view stage) {
  if (IR* ir = std::get_if<IR>(&p)) return std::move(*ir);
  throw std::runtime_error(format("{} does not apply to what the stage before it gives", stage));
}

loop::LoopProgram take_loops(Program p) {
  if (auto* l = std::get_if<loop::LoopProgram>(&p)) return std::move(*l);
  return loop::lower(take<graph::Graph>(std::move(p), "lower"), {.checks = true});
}

/// As compile does: lowered graphs go through the loop passes; loops are taken as they are.
loop::LoopProgram optimised(Program p) {
  const bool lowered = std::holds_alternative<loop::LoopProgram>(p);
  loop::LoopProgram loops = take_loops(std::move(p));
  support::Observer o;
  if (!lowered) support::run_all<loop::LoopProgram>(loop::kLoopPasses, loops, o);
  return loops;
}

const support::Target& target() {
  static const support::Target t{
      {"avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"}, 2, false, true};
  return t;
}

std::string fused(Program p) {
  support::Observer o;
  return to_text(schedule::fuse(optimised(std::move(p)), target(), o));
}

std::string refusals(Program p) {
  support::Observer o;
  schedule::fuse(optimised(std::move(p)), target(), o);
  std::string text;
  for (const std::string& r : o.refusals) text += r + "\n";
  return text;
}

std::string times(Program p) {
  support::Observer o;
  const plan::Plan made = compile::compile(take<graph::Graph>(std::move(p), "times"), target(), o);
  std::string text = format("{} kernels, {} steps\n", made.kernels.size(), made.steps.size());
  for (const auto& t : o.times) text += format("{:10} {:.2f} ms\n", t.name, t.seconds * 1e3);
  return text;
}

plan::Plan planned(Program p) {
  support::Observer o;
  plan::Plan made = compile::compile_loops(optimised(std::move(p)), target(), o);
  verify(made, "plan");
  return made;
}

std::string kernels(Program p) {
  std::string text;
  for (const plan::Kernel& k : planned(std::move(p)).kernels) text += k.summary;
  return text;
}

std::string cpp(Program p) {
  std::string text;
  for (const plan::Kernel& k : planned(std::move(p)).kernels) text += k.source;
  return text;
}

std::string partitioned(Program p) {
  return to_text(autograd::partition(autograd::read_joint(take<graph::Graph>(std::move(p), "partition"))));
}

constexpr Stage kStages[] = {
    {"partition", "forward and backward of a joint graph",
     [](Program p) { return Program(partitioned(std::move(p))); }},
    {"lower", "graph to loops, checks allowed", [](Program p) { return Program(take_loops(std::move(p))); }},
    {"library", "graph to loops, what needs a check stays a library call",
     [](Program p) { return Program(loop::lower(take<graph::Graph>(std::move(p), "library"))); }},
    {"fuse", "groups of loop operators that share a kernel", [](Program p) { return Program(fused(std::move(p))); }},
    {"refusals", "why operators are not fused", [](Program p) { return Program(refusals(std::move(p))); }},
    {"kernels", "kernel IR", [](Program p) { return Program(kernels(std::move(p))); }},
    {"cpp", "C++ of the kernels, without the prelude", [](Program p) { return Program(cpp(std::move(p))); }},
    {"plan", "the host program", [](Program p) { return Program(to_text(planned(std::move(p)))); }},
    {"times", "where compiling takes its time", [](Program p) { return Program(times(std::move(p))); }},
    {"prelude", "the text in front of generated C++", [](Program) { return Program(codegen::cpp_prelude(target())); }},
    {"parse", "reads and prints; every pipeline starts with it", [](Program p) { return p; }},
};

template <class IR, std::size_t N>
bool run_pass(const std::array<support::Pass<IR>, N>& passes, Program& p, std::string_view name) {
  for (const auto& pass : passes) {
    if (pass.name != name) continue;
    IR ir = take<IR>(std::move(p), name);
    pass.apply(ir);
    verify(ir, name);
    p = std::move(ir);
    return true;
  }
  return false;
}

void run(Program& p, const std::string& name) {
  for (const Stage& stage : kStages)
    if (stage.name == name) return void(p = stage.apply(std::move(p)));
  if (run_pass(graph::kGraphPasses, p, name) || run_pass(loop::kLoopPasses, p, name)) return;
  throw std::runtime_error(format("no stage is named {}; braze-opt list names them", name));
}

bool is_loops(std::string_view text) {
  support::Scanner in(text);
  return in.peek("loops");
}

Program parse(std::string_view text) {
  if (is_loops(text)) {
    loop::LoopProgram p = loop::parse(text);
    verify(p, "parse");
    return p;
  }
  graph::Graph g = graph::parse(text);
  verify(g, "parse");
  return g;
}

std::string print(const Program& p) {
  if (const auto* g = std::get_if<graph::Graph>(&p)) return to_text(*g);
  if (const auto* l = std::get_if<loop::LoopProgram>(&p)) return to_text(*l);
  return std::holds_alternative<std::string>(p) ? std::get<std::string>(p) : std::string();
}

int list() {
  for (const Stage& s : kStages) std::cout << format("{:16} {}\n", s.name, s.summary);
  for (const auto& pass : graph::kGraphPasses) std::cout << format("{:16} {}\n", pass.name, pass.summary);
  for (const auto& pass : loop::kLoopPasses) std::cout << format("{:16} {}\n", pass.name, pass.summary);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string pipeline = argc > 1 ? argv[1] : "parse";
  if (pipeline == "list") return list();
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  Program program = parse(text);
  std::istringstream words(pipeline);
  for (std::string word; words >> word;)
    if (word != "|") run(program, word);
  std::cout << print(program);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "braze-opt: " << error.what() << '\n';
  return 1;
}
