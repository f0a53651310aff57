// Minimum cut of a flow network (Dinic's algorithm: level graph, blocking flows).
#pragma once

#include <cstdint>
#include <vector>

namespace braze::autograd {

class FlowNetwork {
 public:
  static constexpr std::int64_t kInfinite = std::int64_t{1} << 60;

  explicit FlowNetwork(std::size_t nodes) : first_(nodes) {}
  void add_edge(std::size_t from, std::size_t to, std::int64_t capacity);

  /// Of all minimum cuts the one nearest to the sink: true for nodes from which the sink cannot be reached any more.
  /// InternalError if every cut has infinite weight.
  std::vector<bool> source_side(std::size_t source, std::size_t sink);

 private:
  struct Edge {
    std::size_t to;
    std::int64_t capacity;
  };
  bool build_levels(std::size_t source, std::size_t sink);
  std::int64_t push(std::size_t source, std::size_t sink);

  std::vector<std::vector<std::size_t>> first_;  ///< edge indices by node; edge e's reverse is e ^ 1
  std::vector<Edge> edges_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;
};

}  // namespace braze::autograd
