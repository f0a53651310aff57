#include "braze/autograd/min_cut.h"

#include <algorithm>

#include "braze/support/check.h"

namespace braze::autograd {

void FlowNetwork::add_edge(std::size_t from, std::size_t to, std::int64_t capacity) {
  first_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  first_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool FlowNetwork::build_levels(std::size_t source, std::size_t sink) {
  level_.assign(first_.size(), -1);
  std::vector<std::size_t> queue = {source};
  level_[source] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (std::size_t e : first_[queue[i]])
      if (edges_[e].capacity > 0 && level_[edges_[e].to] < 0) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink] >= 0;
}

// One augmenting path of the level graph, walked without recursion: graphs are thousands of nodes deep.
std::int64_t FlowNetwork::push(std::size_t source, std::size_t sink) {
  std::vector<std::size_t> path;
  for (std::size_t at = source; at != sink;) {
    if (next_[at] == first_[at].size()) {
      if (path.empty()) return 0;
      at = edges_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
      continue;
    }
    const std::size_t e = first_[at][next_[at]];
    if (edges_[e].capacity > 0 && level_[edges_[e].to] == level_[at] + 1) {
      path.push_back(e);
      at = edges_[e].to;
    } else {
      ++next_[at];
    }
  }
  std::int64_t flow = kInfinite;
  for (std::size_t e : path) flow = std::min(flow, edges_[e].capacity);
  for (std::size_t e : path) {
    edges_[e].capacity -= flow;
    edges_[e ^ 1].capacity += flow;
  }
  return flow;
}

std::vector<bool> FlowNetwork::source_side(std::size_t source, std::size_t sink) {
  while (build_levels(source, sink)) {
    next_.assign(first_.size(), 0);
    while (const std::int64_t flow = push(source, sink))
      BRAZE_CHECK(flow < kInfinite / 2, "no finite cut: a value that must be kept may not be");
  }
  std::vector<bool> reaches(first_.size());  // the sink, backwards along edges with capacity left
  std::vector<std::size_t> queue = {sink};
  reaches[sink] = true;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (std::size_t e : first_[queue[i]])
      if (edges_[e ^ 1].capacity > 0 && !reaches[edges_[e].to]) {
        reaches[edges_[e].to] = true;
        queue.push_back(edges_[e].to);
      }
  reaches.flip();
  return reaches;
}

}  // namespace braze::autograd
