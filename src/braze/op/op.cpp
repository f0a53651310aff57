// The operator table: aten_ops.def's rows as data, and look-up by name.
#include "braze/op/op.h"

#include <algorithm>
#include <array>

#include "braze/op/schema.h"
#include "braze/support/check.h"
#include "braze/support/hash.h"

namespace braze::op {
namespace {

/// "aten::add.Tensor(Tensor self, ..." -> "aten::add.Tensor".
constexpr std::string_view name_of(std::string_view schema) { return schema.substr(0, schema.find('(')); }

constexpr std::array kOps = {
    OpInfo{"kOther", "", "", Effect::effect, "meta", "library_call", "none"},
#define ATEN(id, schema, effect, shape, lowering, decomposition) \
  OpInfo{#id, name_of(schema), schema, Effect::effect, #shape, #lowering, #decomposition},
#include "braze/op/aten_ops.def"
#undef ATEN
};
constexpr std::size_t kCount = kOps.size();
static_assert(kCount == static_cast<std::size_t>(Op::kCount));

static_assert(std::ranges::all_of(kOps,
                                  [](const OpInfo& row) {
                                    return (row.lowering == "none") != (row.decomposition == "none");
                                  }),
              "a row has a lowering (or library_call) or a decomposition, not both");

struct Entry {
  std::uint64_t hash = 0;
  std::uint16_t op = 0;
};

/// Sorted by hash at compile time: look-up is a binary search and one comparison.
constexpr auto kByHash = [] {
  std::array<Entry, kCount - 1> entries{};
  for (std::size_t i = 1; i < kCount; ++i)
    entries[i - 1] = {support::hash_bytes(kOps[i].name), static_cast<std::uint16_t>(i)};
  std::ranges::sort(entries, {}, &Entry::hash);
  return entries;
}();
static_assert(std::ranges::adjacent_find(kByHash, {}, &Entry::hash) == kByHash.end(),
              "two rows of aten_ops.def have the same name (or, once in a lifetime, the same hash)");

struct Table {
  std::array<Schema, kCount> schemas;
  Table() {
    for (std::size_t i = 1; i < kCount; ++i) schemas[i] = parse_schema(kOps[i].schema);
  }
};

const Schema& schema(Op op) {
  static const Table table;
  return table.schemas[static_cast<std::size_t>(op)];
}

}  // namespace

const OpInfo& info(Op op) {
  BRAZE_CHECK(op < Op::kCount, "no operator has number {}", static_cast<int>(op));
  return kOps[static_cast<std::size_t>(op)];
}

Op find_op(std::string_view qualified_name) {
  const std::uint64_t hash = support::hash_bytes(qualified_name);
  const auto found = std::ranges::lower_bound(kByHash, hash, {}, &Entry::hash);
  if (found == kByHash.end() || found->hash != hash || kOps[found->op].name != qualified_name) return Op::kOther;
  return static_cast<Op>(found->op);
}

std::span<const Parameter> parameters(Op op) { return schema(op).parameters; }
int result_count(Op op) { return static_cast<int>(schema(op).results.size()); }
bool returns_list(Op op) { return schema(op).returns_list; }

}  // namespace braze::op
