// Linear forms are read off the canonical sums of sym/.
#include "braze/schedule/access.h"

#include <algorithm>

#include "braze/sym/node.h"

namespace braze::schedule {

SymExpr linear_position(const op::TensorType& type, std::span<const SymExpr> indices) {
  SymExpr position, size = 1;
  for (std::size_t d = type.dim(); d-- > 0;) {
    position = position + indices[d] * size;
    size = size * type.sizes[d];
  }
  return position;
}

SymExpr address(const op::TensorType& type, std::span<const SymExpr> indices) {
  SymExpr sum;
  for (std::size_t d = 0; d < type.dim(); ++d) sum = sum + indices[d] * type.strides[d];
  return sum;
}

bool mentions(const SymExpr& e, std::string_view name) {
  const sym::SymNode* node = e.node();
  if (!node) return false;
  if (node->kind == sym::Kind::kSymbol) return node->name == name;
  return std::ranges::any_of(node->operands, [&](const SymExpr& o) { return mentions(o, name); });
}

namespace {

std::optional<std::size_t> position_of(const SymExpr& e, std::span<const std::string> names) {
  if (!sym::is_kind(e, sym::Kind::kSymbol)) return std::nullopt;
  for (std::size_t k = 0; k < names.size(); ++k)
    if (names[k] == e.node()->name) return k;
  return std::nullopt;
}

bool mentions_any(const SymExpr& e, std::span<const std::string> names) {
  return std::ranges::any_of(names, [&](const std::string& n) { return mentions(e, n); });
}

bool add_monomial(Linear& out, const sym::Term& term, std::span<const std::string> names) {
  std::optional<std::size_t> variable;
  SymExpr factor = term.coefficient;
  for (const SymExpr& atom : sym::atoms_of(term.monomial)) {
    if (const auto k = position_of(atom, names)) {
      if (variable) return false;
      variable = k;
    } else {
      if (mentions_any(atom, names)) return false;
      factor = factor * atom;
    }
  }
  if (variable) out.coefficients[*variable] = out.coefficients[*variable] + factor;
  else out.rest = out.rest + factor;
  return true;
}

}  // namespace

std::optional<Linear> linear_in(const SymExpr& e, std::span<const std::string> names) {
  Linear out{std::vector<SymExpr>(names.size()), sym::constant_of(e)};
  for (const sym::Term& term : sym::terms_of(e))
    if (!add_monomial(out, term, names)) return std::nullopt;
  return out;
}

std::vector<std::string> variable_names(const loop::LoopOp& op) {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < op.space.size(); ++k) names.push_back(support::format("i{}", k));
  for (std::size_t k = 0; k < op.reduced.size(); ++k) names.push_back(support::format("r{}", k));
  return names;
}

std::vector<SymExpr> variable_extents(const loop::LoopOp& op) {
  std::vector<SymExpr> extents = op.space;
  extents.insert(extents.end(), op.reduced.begin(), op.reduced.end());
  return extents;
}

SymExpr load_position(const LoopProgram& program, const loop::LoopOp& op, const loop::Scalar& load) {
  const auto names = variable_names(op);
  const auto extents = variable_extents(op);
  sym::Ranges ranges;
  for (std::size_t k = 0; k < names.size(); ++k) ranges.push_back(sym::index_range(names[k], extents[k]));
  return sym::simplify(linear_position(program.tensors[load.tensor.index].type, load.indices), ranges);
}

std::int64_t estimate(const SymExpr& e, const LoopProgram& program) {
  if (const auto c = e.maybe_constant()) return *c;
  return sym::evaluate(e, [&](std::string_view name) {
    for (const graph::Symbol& s : program.symbols)
      if (s.name == name) return s.hint;
    return std::int64_t{1};
  });
}

int weight(loop::ScalarOp op) {
  using loop::ScalarOp;
  switch (op) {
    case ScalarOp::constant:
    case ScalarOp::index:
    case ScalarOp::load:
    case ScalarOp::cast: return 0;
    case ScalarOp::philox: return 40;
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::log:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::erf:
    case ScalarOp::gelu: return 8;
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::reciprocal: return 2;
    case ScalarOp::trunc_div:
    case ScalarOp::floor_div:
    case ScalarOp::mod:
    case ScalarOp::fmod:
    case ScalarOp::pow:
    case ScalarOp::ipow:
    case ScalarOp::atan2:
    case ScalarOp::hypot:
    case ScalarOp::expm1:
    case ScalarOp::log2:
    case ScalarOp::log10:
    case ScalarOp::log1p:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tan:
    case ScalarOp::asin:
    case ScalarOp::acos:
    case ScalarOp::atan:
    case ScalarOp::sinh:
    case ScalarOp::cosh:
    case ScalarOp::asinh:
    case ScalarOp::acosh:
    case ScalarOp::atanh:
    case ScalarOp::erfc:
    case ScalarOp::erfinv:
    case ScalarOp::lgamma:
    case ScalarOp::digamma: return 30;
    default: return 1;
  }
}

int weight(const loop::Body& body) {
  int sum = 0;
  for (const loop::Scalar& s : body.nodes) sum += weight(s.op);
  return sum;
}

}  // namespace braze::schedule
