// Building scalar bodies: terms with operators, equal nodes merged as they are made.
//
//   BodyBuilder b;  Term x = b.load(t, DType::kFloat32, {i0});  b.yield(x * sigmoid(x));
//
// A term remembers its builder; operands of one operator have one type (constants adapt: `x * 0.5`).
#pragma once

#include <span>

#include "braze/loop/loop.h"

namespace braze::loop {

class BodyBuilder;

struct Term {
  BodyBuilder* builder = nullptr;
  ScalarId id;
  DType type() const;
};

class BodyBuilder {
 public:
  BodyBuilder() = default;
  BodyBuilder(const BodyBuilder&) = delete;  // terms point here

  Term constant(double value, DType type);  ///< rounded to the type; truncated for integers
  Term integer(std::int64_t value, DType type);
  Term index(const SymExpr& e);  ///< i64; a constant if e is one
  Term load(TensorId tensor, DType type, std::vector<SymExpr> indices);
  Term load_if(Term mask, TensorId tensor, DType type, std::vector<SymExpr> indices);
  Term op(ScalarOp op, std::span<const Term> operands);  ///< type by the operator's rule
  Term cast(Term x, DType type);                         ///< x itself if it has the type; b8: x != 0
  Term add(Scalar node);                                 ///< as it is, merged with an equal one
  void yield(Term x);
  void check(Term condition);

  const Scalar& at(ScalarId id) const { return body_.nodes[id.index]; }
  const Body& body() const { return body_; }
  Body take() { return std::move(body_); }

 private:
  Body body_;
};

inline DType Term::type() const { return builder->at(id).type; }

Term apply(ScalarOp op, Term a);
Term apply(ScalarOp op, Term a, Term b);
Term like(Term a, double value);  ///< a constant of a's type

/// b8: add is or, mul is and, as in PyTorch.
Term operator+(Term a, Term b);
Term operator-(Term a, Term b);
Term operator*(Term a, Term b);
inline Term operator/(Term a, Term b) { return apply(ScalarOp::div, a, b); }
inline Term operator-(Term a) { return apply(ScalarOp::neg, a); }
inline Term operator+(Term a, double b) { return a + like(a, b); }
inline Term operator-(Term a, double b) { return a - like(a, b); }
inline Term operator*(Term a, double b) { return a * like(a, b); }
inline Term operator/(Term a, double b) { return a / like(a, b); }
inline Term operator+(double a, Term b) { return like(b, a) + b; }
inline Term operator-(double a, Term b) { return like(b, a) - b; }
inline Term operator*(double a, Term b) { return like(b, a) * b; }
inline Term operator/(double a, Term b) { return like(b, a) / b; }
inline Term operator<(Term a, Term b) { return apply(ScalarOp::lt, a, b); }
inline Term operator<=(Term a, Term b) { return apply(ScalarOp::le, a, b); }
inline Term operator>(Term a, Term b) { return apply(ScalarOp::gt, a, b); }
inline Term operator>=(Term a, Term b) { return apply(ScalarOp::ge, a, b); }
inline Term operator<(Term a, double b) { return a < like(a, b); }
inline Term operator<=(Term a, double b) { return a <= like(a, b); }
inline Term operator>(Term a, double b) { return a > like(a, b); }
inline Term operator>=(Term a, double b) { return a >= like(a, b); }
inline Term equal(Term a, Term b) { return apply(ScalarOp::eq, a, b); }
inline Term both(Term a, Term b) { return apply(ScalarOp::bit_and, a, b); }
inline Term either(Term a, Term b) { return apply(ScalarOp::bit_or, a, b); }
Term choose(Term condition, Term yes, Term no);

/// The value after rounding to the type (half types included); integers wrap.
double round_to(double value, DType type);
std::int64_t wrap_to(std::int64_t value, DType type);

}  // namespace braze::loop
