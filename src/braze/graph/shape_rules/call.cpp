// The table of rules, and typed access to arguments.
#include "braze/graph/shape_rules/call.h"

#include <algorithm>
#include <array>

#include "braze/sym/node.h"

namespace braze::graph {
namespace shape_rules {
namespace {

constexpr std::array<Rule, static_cast<std::size_t>(Op::kCount)> kRules = {
    meta,
#define ATEN(id, schema, effect, shape, lowering, decomposition) shape,
#include "braze/op/aten_ops.def"
#undef ATEN
};

const TensorType kScalarType = op::contiguous(DType::kFloat32, {});
const Sizes kNoSizes;

/// At least 1, or more if nothing can make it smaller: symbols are sizes of 2 and more.
bool is_above_one(const SymExpr& e) {
  if (e.is_constant()) return e.constant() > 1;
  if (sym::constant_of(e) < 0) return false;
  return std::ranges::all_of(sym::terms_of(e), [](const sym::Term& t) {
    return t.coefficient > 0 && std::ranges::all_of(sym::atoms_of(t.monomial), [](const SymExpr& a) {
             return sym::is_kind(a, sym::Kind::kSymbol);
           });
  });
}

}  // namespace

const TensorType* Call::maybe_tensor(std::size_t i) const {
  const auto* v = i < args.size() ? std::get_if<ValueId>(&args[i]) : nullptr;
  return v && !v->is_none() ? &g.type(*v) : nullptr;
}
const TensorType& Call::tensor(std::size_t i) {
  if (const TensorType* t = maybe_tensor(i)) return *t;
  give_up();
  return kScalarType;
}
std::span<const ValueId> Call::list(std::size_t i) {
  if (const auto* l = std::get_if<std::vector<ValueId>>(&args[i])) return *l;
  give_up();
  return {};
}
bool Call::is_none(std::size_t i) const {
  const auto* v = std::get_if<ValueId>(&args[i]);
  return std::holds_alternative<None>(args[i]) || (v && v->is_none());
}
bool Call::is_scalar(std::size_t i) const {
  const Arg& a = args[i];
  return std::holds_alternative<bool>(a) || std::holds_alternative<SymExpr>(a) || std::holds_alternative<double>(a) ||
         std::holds_alternative<Complex>(a);
}
bool Call::flag(std::size_t i) {
  if (const auto* b = std::get_if<bool>(&args[i])) return *b;
  return give_up();
}
std::int64_t Call::integer(std::size_t i) {
  if (const auto* e = std::get_if<SymExpr>(&args[i]); e && e->is_constant()) return e->constant();
  give_up();
  return 0;
}
SymExpr Call::expr(std::size_t i) {
  if (const auto* e = std::get_if<SymExpr>(&args[i])) return *e;
  give_up();
  return 0;
}
const Sizes& Call::exprs(std::size_t i) {
  if (const auto* l = std::get_if<Sizes>(&args[i])) return *l;
  require(is_none(i));
  return kNoSizes;
}
std::vector<std::int64_t> Call::integers(std::size_t i) {
  if (std::holds_alternative<SymExpr>(args[i])) return {integer(i)};
  std::vector<std::int64_t> result;
  for (const SymExpr& e : exprs(i)) {
    if (!require(e.is_constant())) return {};
    result.push_back(e.constant());
  }
  return result;
}
bool Call::mask(std::size_t i, std::size_t bit) {
  const auto* l = std::get_if<std::vector<bool>>(&args[i]);
  if (!l || bit >= l->size()) return give_up();
  return (*l)[bit];
}
std::optional<DType> Call::dtype(std::size_t i) const {
  const auto* d = std::get_if<DType>(&args[i]);
  return d ? std::optional(*d) : std::nullopt;
}
std::string_view Call::text(std::size_t i) const {
  const auto* s = std::get_if<std::string>(&args[i]);
  return s ? std::string_view(*s) : std::string_view{};
}

bool Call::equal(const SymExpr& a, const SymExpr& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  const SymExpr& constant = a.is_constant() ? a : b;
  const SymExpr& other = a.is_constant() ? b : a;
  const bool differs = constant.is_constant() && constant.constant() <= 1 && is_above_one(other);
  if (!differs) give_up();
  return false;
}
bool Call::less(const SymExpr& a, const SymExpr& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant();
  if (a == b) return false;
  if (const auto q = sym::exact_quotient(b, a); q && is_above_one(*q)) return true;
  if (const auto q = sym::exact_quotient(a, b); q && is_above_one(*q)) return false;
  if (a.is_constant() && a.constant() <= 1 && is_above_one(b)) return true;
  if (b.is_constant() && b.constant() <= 2 && is_above_one(a)) return false;
  return give_up();
}
bool Call::equal(const Sizes& a, const Sizes& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!equal(a[i], b[i])) return false;
  return true;
}
std::size_t Call::wrap(std::int64_t dim, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(std::max<std::size_t>(rank, 1));
  if (!require(dim >= -n && dim < n)) return 0;
  return static_cast<std::size_t>(dim < 0 ? dim + n : dim);
}

}  // namespace shape_rules

bool infer_types(const Graph& g, Op op, std::span<const Arg> args, DType default_dtype,
                 std::vector<std::optional<TensorType>>& out) {
  out.clear();
  shape_rules::Call call{g, op, args, default_dtype, out};
  return shape_rules::kRules[static_cast<std::size_t>(op)](call) && call.sure;
}

}  // namespace braze::graph
