// Common subexpressions: a pure or view node whose like stands above it becomes that one.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "braze/graph/edit.h"
#include "braze/graph/passes.h"
#include "braze/support/hash.h"

namespace braze::graph {
namespace {

std::uint64_t hash_bits(double d) { return support::mix(std::bit_cast<std::uint64_t>(d)); }

struct Hash {
  std::uint64_t operator()(None) const { return 1; }
  std::uint64_t operator()(ValueId v) const { return support::mix(v.index); }
  std::uint64_t operator()(bool b) const { return b ? 3 : 2; }
  std::uint64_t operator()(const SymExpr& e) const { return sym::hash(e); }
  std::uint64_t operator()(double d) const { return hash_bits(d); }
  std::uint64_t operator()(Complex c) const { return support::combine(hash_bits(c.real), hash_bits(c.imag)); }
  std::uint64_t operator()(const std::string& s) const { return support::hash_bytes(s); }
  template <class T>
  std::uint64_t operator()(const std::vector<T>& list) const {
    std::uint64_t h = list.size();
    for (const auto& item : list) h = support::combine(h, (*this)(static_cast<const T&>(item)));
    return h;
  }
  std::uint64_t operator()(DType t) const { return static_cast<std::uint64_t>(t); }
  std::uint64_t operator()(Device d) const {
    return static_cast<std::uint64_t>(d.kind) * 64 + static_cast<std::uint64_t>(d.index + 1);
  }
  std::uint64_t operator()(Layout l) const { return static_cast<std::uint64_t>(l); }
  std::uint64_t operator()(MemoryFormat f) const { return static_cast<std::uint64_t>(f); }
  std::uint64_t operator()(Opaque o) const { return o.index; }
};

std::uint64_t hash_of(const Node& node) {
  std::uint64_t h = static_cast<std::uint64_t>(node.op);
  for (const Arg& a : node.args) h = support::combine(h, support::combine(a.index(), std::visit(Hash{}, a)));
  return h;
}

/// Equal, and equal bits for doubles: 0.0 is not -0.0.
bool same_args(const Node& a, const Node& b) {
  return std::ranges::equal(a.args, b.args, [](const Arg& x, const Arg& y) {
    if (const auto *p = std::get_if<double>(&x), *q = std::get_if<double>(&y); p && q)
      return std::bit_cast<std::uint64_t>(*p) == std::bit_cast<std::uint64_t>(*q);
    return x == y;
  });
}

class Merger {
 public:
  explicit Merger(Graph& g) : g_(g), owners_(g), replacement_(g.values.size()), is_output_(g.values.size()) {
    for (ValueId v : g.outputs)
      if (!v.is_none()) is_output_[v.index] = true;
  }

  void run() {
    std::unordered_multimap<std::uint64_t, std::size_t> seen;
    for (std::size_t n = 0; n < g_.nodes.size(); ++n) {
      Node& node = g_.nodes[n];
      for_each_operand(node, [&](ValueId& v) {
        if (!replacement_[v.index].is_none()) v = replacement_[v.index];
      });
      if (!is_removable(node)) continue;
      const std::uint64_t h = hash_of(node);
      const auto [begin, end] = seen.equal_range(h);
      const auto found = std::find_if(begin, end, [&](const auto& e) { return may_merge(g_.nodes[e.second], node); });
      if (found == end) seen.emplace(h, n);
      else merge(g_.nodes[found->second], node);
    }
    replace_uses(g_, replacement_);
    eliminate_dead_code(g_);
  }

 private:
  bool may_merge(const Node& first, const Node& second) const {
    if (first.op != second.op || first.results.size() != second.results.size() || !same_args(first, second))
      return false;
    for (std::size_t i = 0; i < first.results.size(); ++i) {
      const ValueId a = first.results[i], b = second.results[i];
      if (a.is_none() != b.is_none()) return false;
      if (a.is_none()) continue;
      if (!(g_.type(a) == g_.type(b)) || (is_output_[a.index] && is_output_[b.index])) return false;
      if (op::info(first.op).effect == op::Effect::pure && owners_.is_seen(a) && owners_.is_seen(b)) return false;
    }
    return true;
  }

  void merge(const Node& first, const Node& second) {
    for (std::size_t i = 0; i < first.results.size(); ++i) {
      const ValueId a = first.results[i], b = second.results[i];
      if (a.is_none()) continue;
      replacement_[b.index] = a;
      if (owners_.is_seen(b)) owners_.mark_seen(a);
      is_output_[a.index] = is_output_[a.index] || is_output_[b.index];
    }
  }

  Graph& g_;
  OutputStorage owners_;
  std::vector<ValueId> replacement_;
  std::vector<bool> is_output_;
};

}  // namespace

void merge_common_nodes(Graph& g) { Merger(g).run(); }

}  // namespace braze::graph
