// A sum of products, each with its coefficient; parentheses where a sum is inside.
#include "braze/codegen/cpp/index_text.h"

#include "braze/sym/node.h"

namespace braze::codegen {
namespace {

std::string atom_text(const sym::SymExpr& e, const NameText& name_text) {
  const sym::SymNode& node = *e.node();
  const auto call = [&](std::string_view function) {
    std::string text = index_text(node.operands[0], name_text);
    for (std::size_t k = 1; k < node.operands.size(); ++k)
      text = support::format("{}({}, {})", function, text, index_text(node.operands[k], name_text));
    return text;
  };
  switch (node.kind) {
    case sym::Kind::kSymbol: return name_text(node.name);
    case sym::Kind::kFloorDiv: return call("floordiv");
    case sym::Kind::kMod: return call("mod");
    case sym::Kind::kMin: return call("imin");
    case sym::Kind::kMax: return call("imax");
    default: return "(" + index_text(e, name_text) + ")";
  }
}

}  // namespace

std::string index_text(const sym::SymExpr& e, const NameText& name_text) {
  const std::int64_t constant = sym::constant_of(e);
  std::string text;
  for (const sym::Term& term : sym::terms_of(e)) {
    std::string product = term.coefficient == 1 ? "" : support::format("{}l", term.coefficient);
    for (const sym::SymExpr& atom : sym::atoms_of(term.monomial))
      product += (product.empty() ? "" : "*") + atom_text(atom, name_text);
    text += (text.empty() ? "" : " + ") + product;
  }
  if (text.empty() || constant != 0) text += (text.empty() ? "" : " + ") + support::format("{}l", constant);
  return text;
}

}  // namespace braze::codegen
