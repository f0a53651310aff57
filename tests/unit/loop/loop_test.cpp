// Lowering against values worked out by hand or by another formula; passes keep what interpret computes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "braze/loop/interpret.h"
#include "braze/loop/lower/lowering.h"
#include "braze/loop/passes.h"
#include "braze/support/check.h"

namespace braze::loop {
namespace {

Array array(std::vector<sym::SymExpr> sizes, const std::vector<double>& values, DType type = DType::kFloat32) {
  Array a{op::contiguous(type, std::move(sizes)), {}};
  for (const double v : values)
    a.elements.push_back(op::is_floating(type) ? Number{round_to(v, type), 0}
                                               : Number{0, static_cast<std::int64_t>(v)});
  return a;
}

Array random_array(std::vector<sym::SymExpr> sizes, int seed) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal;
  Array a{op::contiguous(DType::kFloat32, std::move(sizes)), {}};
  for (std::int64_t k = a.type.numel().constant(); k > 0; --k)
    a.elements.push_back({round_to(normal(generator), DType::kFloat32), 0});
  return a;
}

std::vector<double> values_of(const Array& a) {
  std::vector<double> values;
  for (const Number& n : a.elements)
    values.push_back(op::is_floating(a.type.dtype) ? n.number : static_cast<double>(n.integer));
  return values;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::isnan(b[k])) EXPECT_TRUE(std::isnan(a[k])) << k;
    else if (std::isinf(b[k])) EXPECT_EQ(a[k], b[k]) << k;
    else EXPECT_NEAR(a[k], b[k], tolerance) << k;
  }
}

/// Lowers, verifies, round-trips the text, runs; then every pass, which must not change the outputs.
std::vector<std::vector<double>> run(std::string_view text, const std::vector<Array>& inputs) {
  const graph::Graph g = graph::parse(text);
  verify(g, "parse");
  LoopProgram p = lower(g, {.checks = true});
  verify(p, "lower");
  EXPECT_EQ(parse(to_text(p)), p) << to_text(p);
  std::vector<std::vector<double>> before;
  for (const Array& a : interpret(p, inputs)) before.push_back(values_of(a));
  for (const LoopPass& pass : kLoopPasses) {
    pass.apply(p);
    verify(p, pass.name);
    const auto after = interpret(p, inputs);
    for (std::size_t k = 0; k < after.size(); ++k) expect_near(values_of(after[k]), before[k], 0);
  }
  EXPECT_EQ(parse(to_text(p)), p) << to_text(p);
  return before;
}

const Array kMatrix = array({2, 3}, {1, -2, 3, 4, 5, -6});

TEST(Lower, SeedIsMapsAndAReduction) {
  const auto out = run(R"(graph @f(%a: f32[s0, 3], %b: f32[s0, 3]) -> f32[s0] { symbols s0 in [2, inf]
    %0: f32[s0, 3] = aten.mul.Tensor(%a, %b)
    %1: f32[s0, 3] = aten.relu(%0)
    %2: f32[s0] = aten.sum.dim_IntList(%1, dim=[1])
    return %2 })",
                       {kMatrix, array({2, 3}, {1, 1, 2, -1, 1, 1})});
  expect_near(out[0], {7, 5}, 0);
}

TEST(Lower, ViewsComposeIntoIndices) {
  const auto out = run(R"(graph @f(%x: f32[2, 3]) -> (f32[3, 2]{1, 3}, f32[6], f32[3]{1}, f32[4, 3]) {
    %0: f32[3, 2]{1, 3} = aten.t(%x)
    %1: f32[3, 2] = aten.clone(%0, memory_format=contiguous)
    %2: f32[6] = aten.view(%1, size=[6])
    %3: f32[3] = aten.select.int(%x, dim=0, index=-1)
    %4: f32[4, 3] = aten.repeat(%x, repeats=[2, 1])
    %5: f32[4, 3] = aten.flip(%4, dims=[1])
    return %0, %2, %3, %5 })",
                       {kMatrix});
  expect_near(out[0], {1, 4, -2, 5, 3, -6}, 0);
  expect_near(out[1], {1, 4, -2, 5, 3, -6}, 0);
  expect_near(out[2], {4, 5, -6}, 0);
  expect_near(out[3], {3, -2, 1, -6, 5, 4, 3, -2, 1, -6, 5, 4}, 0);
}

TEST(Lower, SoftmaxKeepsPyTorchsInfinities) {
  const double inf = INFINITY;
  const Array x = array({2, 3}, {0, 0, -inf, -inf, -inf, -inf});
  const auto out = run(R"(graph @f(%x: f32[2, 3]) -> (f32[2, 3], f32[2, 3], f32[2, 3], f32[2]) {
    %0: f32[2, 3] = aten._softmax(%x, dim=1, half_to_float=false)
    %1: f32[2, 3] = aten._safe_softmax(%x, dim=1)
    %2: f32[2, 3] = aten._log_softmax(%x, dim=1, half_to_float=false)
    %3: f32[2] = aten.logsumexp(%x, dim=[1])
    return %0, %1, %2, %3 })",
                       {x});
  expect_near(out[0], {0.5, 0.5, 0, NAN, NAN, NAN}, 0);
  expect_near(out[1], {0.5, 0.5, 0, 0, 0, 0}, 0);
  expect_near(out[2], {-std::log(2.0), -std::log(2.0), -inf, NAN, NAN, NAN}, 1e-7);
  expect_near(out[3], {std::log(2.0), -inf}, 1e-7);
}

TEST(Lower, LayerNormIsTwoPass) {
  const auto out = run(R"(graph @f(%x: f32[2, 4]) -> (f32[2, 4], f32[2, 1], f32[2, 1]) {
    %0: f32[2, 4], %1: f32[2, 1], %2: f32[2, 1] = aten.native_layer_norm(%x, normalized_shape=[4], weight=none, bias=none, eps=0.0)
    return %0, %1, %2 })",
                       {array({2, 4}, {10001, 10002, 10003, 10004, 1, 1, -1, -1})});
  const double s = std::sqrt(1.25);
  expect_near(out[0], {-1.5 / s, -0.5 / s, 0.5 / s, 1.5 / s, 1, 1, -1, -1}, 1e-6);
  expect_near(out[1], {10002.5, 0}, 0);
  expect_near(out[2], {1 / s, 1}, 1e-6);
}

TEST(Lower, CrossEntropyIgnoresAndChecksTargets) {
  constexpr std::string_view kText = R"(graph @f(%x: f32[3, 2], %t: i64[3]) -> (f32[], f32[]) {
    %0: f32[], %1: f32[] = aten.nll_loss_forward(%x, %t, weight=none, reduction=1, ignore_index=-100)
    return %0, %1 })";
  const Array x = array({3, 2}, {-1, -2, -3, -4, -5, -6});
  const auto out = run(kText, {x, array({3}, {1, -100, 0}, DType::kInt64)});
  expect_near(out[0], {3.5}, 0);
  expect_near(out[1], {2}, 0);
  EXPECT_THROW(run(kText, {x, array({3}, {1, 2, 0}, DType::kInt64)}), support::InternalError);
}

TEST(Lower, GathersWrapAndScattersAdd) {
  const Array i = array({3}, {0, -1, 0}, DType::kInt64), t = array({3}, {0, 1, 0}, DType::kInt64);
  const auto out =
      run(R"(graph @f(%x: f32[2, 3], %i: i64[3], %t: i64[3], %g: f32[3, 2]) -> (f32[3, 3], f32[2, 2], f32[2, 3]) {
    %0: f32[3, 3] = aten.index.Tensor(%x, indices=[%i])
    %1: f32[2, 2] = aten.embedding_dense_backward(%g, %t, num_weights=2, padding_idx=-1, scale_grad_by_freq=false)
    %2: f32[2, 3] = aten.index_put(%x, indices=[%i], values=%0, accumulate=true)
    return %0, %1, %2 })",
          {kMatrix, i, t, array({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect_near(out[0], {1, -2, 3, 4, 5, -6, 1, -2, 3}, 0);
  expect_near(out[1], {6, 8, 3, 4}, 0);
  expect_near(out[2], {3, -6, 9, 8, 10, -12}, 0);
}

TEST(Lower, SlicesPadsAndConcatenations) {
  const auto out = run(R"(graph @f(%x: f32[2, 3]) -> (f32[2, 5], f32[2, 6], f32[2, 5]) {
    %0: f32[2, 5] = aten.constant_pad_nd(%x, pad=[1, 1], value=9.0)
    %1: f32[2, 2]{3, 2} = aten.slice.Tensor(%x, dim=1, start=0, end=3, step=2)
    %2: f32[2, 6] = aten.slice_backward(%1, input_sizes=[2, 6], dim=1, start=1, end=4, step=2)
    %3: f32[2, 5] = aten.cat([%x, %1], dim=1)
    return %0, %2, %3 })",
                       {kMatrix});
  expect_near(out[0], {9, 1, -2, 3, 9, 9, 4, 5, -6, 9}, 0);
  expect_near(out[1], {0, 1, 0, 3, 0, 0, 0, 4, 0, -6, 0, 0}, 0);
  expect_near(out[2], {1, -2, 3, 1, 3, 4, 5, -6, 4, -6}, 0);
}

TEST(Lower, PromotionAndIntegerDivision) {
  const auto out = run(R"(graph @f(%a: i64[4], %h: f16[1]) -> (f32[4], i64[4], i64[4], b8[1]) {
    %0: f32[4] = aten.div.Tensor(%a, 2)
    %1: i64[4] = aten.floor_divide(%a, 3)
    %2: i64[4] = aten.remainder.Scalar(%a, other=-3)
    %3: b8[1] = aten.eq.Scalar(%h, other=0.1)
    return %0, %1, %2, %3 })",
                       {array({4}, {5, -5, 7, -7}, DType::kInt64), array({1}, {0.1}, DType::kFloat16)});
  expect_near(out[0], {2.5, -2.5, 3.5, -3.5}, 0);
  expect_near(out[1], {1, -2, 2, -3}, 0);
  expect_near(out[2], {-1, -2, -2, -1}, 0);
  expect_near(out[3], {1}, 0);  // the Scalar is rounded to half before comparing
}

TEST(Lower, ExtremesPropagateNan) {
  const auto out = run(R"(graph @f(%x: f32[2, 3]) -> (f32[2], i64[2], f32[2], i64[2]) {
    %0: f32[2] = aten.amax(%x, dim=[1])
    %1: i64[2] = aten.argmax(%x, dim=1)
    %2: f32[2], %3: i64[2] = aten.min.dim(%x, dim=1)
    return %0, %1, %2, %3 })",
                       {array({2, 3}, {1, NAN, 3, 7, 7, 2})});
  expect_near(out[0], {NAN, 7}, 0);
  expect_near(out[1], {1, 0}, 0);
  expect_near(out[2], {NAN, 2}, 0);
  expect_near(out[3], {1, 2}, 0);
}

TEST(Lower, SoftmaxBackwardIsTheDerivative) {
  const Array x = random_array({3, 5}, 1), g = random_array({3, 5}, 2);
  const auto out = run(R"(graph @f(%x: f32[3, 5], %g: f32[3, 5]) -> (f32[3, 5], f32[3, 5]) {
    %0: f32[3, 5] = aten._log_softmax(%x, dim=1, half_to_float=false)
    %1: f32[3, 5] = aten._log_softmax_backward_data(%g, %0, dim=1, input_dtype=f32)
    %2: f32[3, 5] = aten._softmax(%x, dim=1, half_to_float=false)
    %3: f32[3, 5] = aten._softmax_backward_data(%2, %2, dim=1, input_dtype=f32)
    return %1, %3 })",
                       {x, g});
  for (std::size_t row = 0; row < 3; ++row) {  // gradients of shift-invariant functions sum to 0
    double log_sum = 0, sum = 0;
    for (std::size_t k = 0; k < 5; ++k) {
      log_sum += out[0][5 * row + k];
      sum += out[1][5 * row + k];
    }
    EXPECT_NEAR(log_sum, 0, 1e-5);
    EXPECT_NEAR(sum, 0, 1e-6);
  }
}

TEST(Lower, OperatorsWithoutRuleAreLibraryCalls) {
  const graph::Graph g = graph::parse(R"(graph @f(%x: f32[4, 4], %w: f32[4, 4], %i: i64[2]) -> (f32[4, 4], f32[2, 4]) {
    %0: f32[4, 4]{1, 4} = aten.t(%w)
    %1: f32[4, 4] = aten.mm(%x, %0)
    %2: f32[2, 4] = aten.embedding(%w, %i)
    return %1, %2 })");
  const LoopProgram p = lower(g);
  verify(p, "lower");
  EXPECT_EQ(parse(to_text(p)), p);
  ASSERT_EQ(p.ops.size(), 2u);
  EXPECT_EQ(p.ops[0].kind, Kind::external);
  EXPECT_EQ(p.ops[1].kind, Kind::external);  // no checks allowed, so no gather
  EXPECT_EQ(p.tensors[std::get<TensorId>(p.ops[0].node.args[1]).index].base, p.inputs[1]);
}

TEST(Rules, EveryRowThatNamesALoweringHasARule) {
  for (std::size_t k = 1; k < static_cast<std::size_t>(op::Op::kCount); ++k) {
    const op::OpInfo& row = op::info(static_cast<op::Op>(k));
    const bool wants = row.lowering != "library_call" && (row.lowering != "none" || row.decomposition != "none");
    EXPECT_EQ(find_rule(static_cast<op::Op>(k)) != nullptr, wants) << row.name;
  }
}

}  // namespace
}  // namespace braze::loop
