// The table of rules: operator -> function. What has no rule is a library call.
#include <array>

#include "braze/loop/lower/lowering.h"

namespace braze::loop {
namespace {

using Table = std::array<Rule, static_cast<std::size_t>(Op::kCount)>;

Table make_table() {
  Table table{};
  for (const auto rows :
       {pointwise_rules(), activation_rules(), reduction_rules(), view_rules(), index_rules(), gather_rules(),
        factory_rules(), softmax_rules(), norm_rules(), batch_norm_rules(), loss_rules()}) {
    for (const RuleRow& row : rows) table[static_cast<std::size_t>(row.op)] = row.rule;
  }
  return table;
}

}  // namespace

Rule find_rule(Op op) {
  static const Table table = make_table();
  return table[static_cast<std::size_t>(op)];
}

}  // namespace braze::loop
