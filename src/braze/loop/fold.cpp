// What reductions mean, value by value; in any order of arrival.
#include <cmath>

#include "braze/loop/interpret.h"

namespace braze::loop {
namespace {

/// a before b in the order of a maximum (sign 1) or minimum (-1): NaN comes first.
bool is_better(Number a, Number b, DType type, int sign) {
  if (!op::is_floating(type)) return sign > 0 ? a.integer > b.integer : a.integer < b.integer;
  if (std::isnan(b.number)) return false;
  return std::isnan(a.number) || (sign > 0 ? a.number > b.number : a.number < b.number);
}

void choose(int sign, DType type, Folding& f, Number x, std::int64_t at) {
  if (!f.empty) {
    if (is_better(f.value, x, type, sign)) return;
    if (!is_better(x, f.value, type, sign) && at >= f.best) return;  // the first of equals
  }
  f = {x, at, false};
}

}  // namespace

Folding neutral(Fold fold, DType type) {
  if (fold == Fold::prod || fold == Fold::all) return {{1, 1}};
  if (fold == Fold::max) return {{-INFINITY, type == DType::kBool ? 0 : INT64_MIN}};
  if (fold == Fold::min) return {{INFINITY, INT64_MAX}};
  return {};
}

void fold_in(Fold fold, DType type, Folding& f, Number x, std::int64_t at) {
  const Number pair[] = {f.value, x};
  const DType types[] = {type, type};
  const bool is_bool = type == DType::kBool;
  switch (fold) {
    case Fold::sum: f.value = evaluate(is_bool ? ScalarOp::bit_or : ScalarOp::add, type, pair, types); break;
    case Fold::prod: f.value = evaluate(is_bool ? ScalarOp::bit_and : ScalarOp::mul, type, pair, types); break;
    case Fold::any: f.value.integer |= x.integer != 0; break;
    case Fold::all: f.value.integer &= x.integer != 0; break;
    case Fold::max:
    case Fold::argmax: return choose(1, type, f, x, at);
    case Fold::min:
    case Fold::argmin: return choose(-1, type, f, x, at);
  }
  f.empty = false;
}

}  // namespace braze::loop
