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

#include "braze/graph/passes.h"
#include "braze/support/text.h"

namespace {

using namespace braze;
using support::format;

/// What the stages hand on. Text: the end of a pipeline.
using Program = std::variant<graph::Graph, std::string>;

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

constexpr Stage kStages[] = {
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
  if (run_pass(graph::kGraphPasses, p, name)) return;
  throw std::runtime_error(format("no stage is named {}; braze-opt list names them", name));
}

Program parse(std::string_view text) {
  graph::Graph g = graph::parse(text);
  verify(g, "parse");
  return g;
}

std::string print(const Program& p) {
  if (const auto* g = std::get_if<graph::Graph>(&p)) return to_text(*g);
  return std::get<std::string>(p);
}

int list() {
  for (const Stage& s : kStages) std::cout << format("{:16} {}\n", s.name, s.summary);
  for (const auto& pass : graph::kGraphPasses) std::cout << format("{:16} {}\n", pass.name, pass.summary);
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
