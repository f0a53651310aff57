// The operator table: look-up, schemas, types.
#include "braze/op/op.h"

#include <gtest/gtest.h>

#include "braze/op/tensor_type.h"

namespace braze::op {
namespace {

TEST(Op, EveryRowIsFoundAndParsed) {
  for (int i = 1; i < static_cast<int>(Op::kCount); ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(find_op(info(op).name), op);
    EXPECT_GE(result_count(op), 1) << info(op).name;
    for (const Parameter& p : parameters(op)) EXPECT_FALSE(p.name.empty() || p.type.empty()) << info(op).schema;
  }
  EXPECT_EQ(find_op("aten::no_such_operator"), Op::kOther);
}

TEST(Op, Schema) {
  const auto p = parameters(Op::sum_dim_IntList);
  ASSERT_EQ(p.size(), 4u);
  EXPECT_EQ(p[1].type, "int[1]?");
  EXPECT_FALSE(p[1].has_default);
  EXPECT_EQ(p[3].default_text, "None");
  EXPECT_TRUE(p[3].keyword_only);
  EXPECT_EQ(parameters(Op::gelu)[1].default_text, "\"none\"");
  EXPECT_TRUE(returns_list(Op::split_Tensor));
  EXPECT_EQ(result_count(Op::native_layer_norm), 3);
}

TEST(DType, Promotion) {
  EXPECT_EQ(promote(DType::kUInt8, DType::kInt8), DType::kInt16);
  EXPECT_EQ(promote(DType::kFloat16, DType::kBFloat16), DType::kFloat32);
  EXPECT_EQ(promote(DType::kInt64, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(promote(DType::kComplex64, DType::kFloat64), DType::kComplex128);
  EXPECT_EQ(promote(DType::kBool, DType::kUInt8), DType::kUInt8);
}

TEST(TensorType, Text) {
  for (const char* text :
       {"f32[s0, 1024]", "f32[4, 8]{1, 4}", "f32[4] cuda:0", "i64[]", "bf16[2, s1]{s1, 1} cuda", "f32[4, 0]"})
    EXPECT_EQ(to_text(parse_type(to_text(parse_type(text)))), to_text(parse_type(text))) << text;
  EXPECT_EQ(to_text(parse_type("bf16[2, s1]{s1, 1} cuda")), "bf16[2, s1] cuda");
}

}  // namespace
}  // namespace braze::op
