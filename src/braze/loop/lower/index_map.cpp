// Composition of index maps, and the row-major arithmetic of reshapes.
#include "braze/loop/lower/index_map.h"

#include <charconv>

#include "braze/support/check.h"

namespace braze::loop {
namespace {

std::vector<SymExpr> vars(std::span<const SymExpr> extents, SymExpr (*var)(std::size_t)) {
  std::vector<SymExpr> all(extents.size());
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (!extents[k].is_value(1)) all[k] = var(k);
  }
  return all;
}

/// The position of a space variable's name; nothing for other symbols.
std::optional<std::size_t> position_of(std::string_view name) {
  if (name.size() < 2 || name[0] != 'i') return std::nullopt;
  std::size_t position = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), position);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return position;
}

template <class At>
SymExpr substitute_at(const SymExpr& e, std::size_t count, const At& at, const sym::Ranges& ranges) {
  if (e.is_constant()) return e;
  SymExpr result = sym::substitute(e, [&](std::string_view name) -> std::optional<SymExpr> {
    const auto position = position_of(name);
    if (!position) return std::nullopt;
    BRAZE_CHECK(*position < count, "index {} in {} of {} dimensions", name, to_text(e), count);
    return at(*position);
  });
  return sym::simplify(result, ranges);
}

/// Dimensions [from_begin, from_end) hold the same data as [to_begin, to_end): their sizes have equal products.
struct Block {
  std::size_t from_begin, from_end, to_begin, to_end;
};

/// The finest split into blocks: where the products of the sizes to the right are equal.
std::vector<Block> match_blocks(std::span<const SymExpr> from, std::span<const SymExpr> to) {
  std::vector<SymExpr> right(to.size() + 1, SymExpr(1));  // right[j]: the product of to[j..]
  for (std::size_t j = to.size(); j-- > 0;) right[j] = to[j] * right[j + 1];
  std::vector<Block> blocks;
  std::size_t from_end = from.size(), to_end = to.size();
  SymExpr product = 1;
  for (std::size_t f = from.size(); f-- > 0;) {
    product = product * from[f];
    std::size_t j = to_end;
    while (j > 0 && right[j] != product) --j;
    if (right[j] != product) continue;
    blocks.push_back({f, from_end, j, to_end});
    from_end = f;
    to_end = j;
  }
  if (from_end > 0 || to_end > 0) blocks.push_back({0, from_end, 0, to_end});
  return blocks;
}

void split_linear(const SymExpr& linear, std::span<const SymExpr> from, std::size_t begin, std::size_t end,
                  const sym::Ranges& ranges, IndexMap& map) {
  SymExpr stride = 1;
  for (std::size_t k = end; k-- > begin;) {
    if (from[k].is_value(1)) {
      map[k] = Index::of(0);
      continue;
    }
    SymExpr index = floor_div(linear, stride);
    stride = stride * from[k];
    bool outermost = true;  // all dimensions before it have extent 1
    for (std::size_t j = begin; j < k; ++j) outermost = outermost && from[j].is_value(1);
    if (!outermost) index = mod(index, from[k]);
    map[k] = Index::of(sym::simplify(index, ranges));
  }
}

void map_block(const Block& block, std::span<const SymExpr> from, std::span<const SymExpr> to,
               const sym::Ranges& ranges, IndexMap& map) {
  SymExpr linear = 0, stride = 1;
  std::size_t used = 0, last = 0;
  for (std::size_t k = block.to_end; k-- > block.to_begin;) {
    if (!to[k].is_value(1)) {
      linear = linear + space_var(k) * stride;
      ++used;
      last = k;
    }
    stride = stride * to[k];
  }
  std::size_t wide = 0, target = 0;
  for (std::size_t k = block.from_begin; k < block.from_end; ++k) {
    map[k] = Index::of(0);
    if (!from[k].is_value(1)) {
      ++wide;
      target = k;
    }
  }
  if (wide == 0) return;
  if (wide == 1) map[target] = used == 1 ? Index::of_var(last) : Index::of(linear);
  else split_linear(linear, from, block.from_begin, block.from_end, ranges, map);
}

}  // namespace

IndexMap identity_map(std::span<const SymExpr> sizes) {
  IndexMap map(sizes.size());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (!sizes[k].is_value(1)) map[k] = Index::of_var(k);
  }
  return map;
}

std::vector<SymExpr> space_vars(std::span<const SymExpr> extents) { return vars(extents, space_var); }
std::vector<SymExpr> reduced_vars(std::span<const SymExpr> extents) { return vars(extents, reduced_var); }

SymExpr apply(const SymExpr& content, std::span<const SymExpr> at, const sym::Ranges& ranges) {
  return substitute_at(content, at.size(), [&](std::size_t k) { return at[k]; }, ranges);
}

std::vector<SymExpr> apply(const IndexMap& map, std::span<const SymExpr> at, const sym::Ranges& ranges) {
  std::vector<SymExpr> result;
  result.reserve(map.size());
  for (const Index& index : map) {
    result.push_back(index.var >= 0 ? at[static_cast<std::size_t>(index.var)] : apply(index.expr, at, ranges));
  }
  return result;
}

IndexMap compose(const IndexMap& outer, const IndexMap& inner, const sym::Ranges& ranges) {
  IndexMap result;
  result.reserve(outer.size());
  for (const Index& index : outer) {
    if (index.var >= 0) {
      result.push_back(inner[static_cast<std::size_t>(index.var)]);
      continue;
    }
    const auto at = [&](std::size_t k) { return inner[k].to_expr(); };
    result.push_back(Index::of(substitute_at(index.expr, inner.size(), at, ranges)));
    for (std::size_t k = 0; k < inner.size(); ++k) {  // a plain variable again
      if (inner[k].var >= 0 && result.back().var < 0 && result.back().expr == inner[k].to_expr())
        result.back() = inner[k];
    }
  }
  return result;
}

void add_ranges(sym::Ranges& ranges, std::span<const SymExpr> space, std::span<const SymExpr> reduced) {
  for (std::size_t k = 0; k < space.size(); ++k) ranges.push_back(sym::index_range("i" + std::to_string(k), space[k]));
  for (std::size_t k = 0; k < reduced.size(); ++k)
    ranges.push_back(sym::index_range("r" + std::to_string(k), reduced[k]));
}

bool has_arithmetic(const IndexMap& map) {
  for (const Index& index : map) {
    if (index.var < 0 && !index.expr.is_constant()) return true;
  }
  return false;
}

IndexMap reshape_map(std::span<const SymExpr> from, std::span<const SymExpr> to, const sym::Ranges& ranges) {
  IndexMap map(from.size());
  for (const Block& block : match_blocks(from, to)) map_block(block, from, to, ranges, map);
  return map;
}

IndexMap broadcast_map(std::span<const SymExpr> from, std::span<const SymExpr> to) {
  IndexMap map(from.size());
  const std::size_t lead = to.size() - from.size();
  for (std::size_t k = 0; k < from.size(); ++k) {
    if (!from[k].is_value(1)) map[k] = Index::of_var(lead + k);
  }
  return map;
}

}  // namespace braze::loop
