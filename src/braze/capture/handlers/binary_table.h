// The operators behind BINARY_OP's argument: the C function and the names of the special methods.
#pragma once

#include "braze/capture/objects.h"

namespace braze::capture {

struct BinaryOperator {
  PyObject* (*apply)(PyObject*, PyObject*);
  PyObject* (*apply_in_place)(PyObject*, PyObject*);
  const char *name, *reflected, *in_place, *symbol;
};

inline PyObject* power(PyObject* a, PyObject* b) { return PyNumber_Power(a, b, Py_None); }
inline PyObject* power_in_place(PyObject* a, PyObject* b) { return PyNumber_InPlacePower(a, b, Py_None); }

inline constexpr BinaryOperator kBinaryOperators[] = {
    {PyNumber_Add, PyNumber_InPlaceAdd, "__add__", "__radd__", "__iadd__", "+"},
    {PyNumber_And, PyNumber_InPlaceAnd, "__and__", "__rand__", "__iand__", "&"},
    {PyNumber_FloorDivide, PyNumber_InPlaceFloorDivide, "__floordiv__", "__rfloordiv__", "__ifloordiv__", "//"},
    {PyNumber_Lshift, PyNumber_InPlaceLshift, "__lshift__", "__rlshift__", "__ilshift__", "<<"},
    {PyNumber_MatrixMultiply, PyNumber_InPlaceMatrixMultiply, "__matmul__", "__rmatmul__", "__imatmul__", "@"},
    {PyNumber_Multiply, PyNumber_InPlaceMultiply, "__mul__", "__rmul__", "__imul__", "*"},
    {PyNumber_Remainder, PyNumber_InPlaceRemainder, "__mod__", "__rmod__", "__imod__", "%"},
    {PyNumber_Or, PyNumber_InPlaceOr, "__or__", "__ror__", "__ior__", "|"},
    {power, power_in_place, "__pow__", "__rpow__", "__ipow__", "**"},
    {PyNumber_Rshift, PyNumber_InPlaceRshift, "__rshift__", "__rrshift__", "__irshift__", ">>"},
    {PyNumber_Subtract, PyNumber_InPlaceSubtract, "__sub__", "__rsub__", "__isub__", "-"},
    {PyNumber_TrueDivide, PyNumber_InPlaceTrueDivide, "__truediv__", "__rtruediv__", "__itruediv__", "/"},
    {PyNumber_Xor, PyNumber_InPlaceXor, "__xor__", "__rxor__", "__ixor__", "^"},
};
inline constexpr int kAdd = 0, kSubtract = 10;
inline constexpr int kInPlace = 13;  ///< BINARY_OP arguments from here on are the in-place forms

inline Owned<> apply_binary(int kind, Borrowed<> left, Borrowed<> right) {
  const BinaryOperator& op = kBinaryOperators[kind % kInPlace];
  return take((kind >= kInPlace ? op.apply_in_place : op.apply)(left.get(), right.get()));
}

inline Owned<> apply_unary(int kind, Borrowed<> operand) {
  if (kind == '-') return take(PyNumber_Negative(operand.get()));
  if (kind == '+') return take(PyNumber_Positive(operand.get()));
  return take(PyNumber_Invert(operand.get()));
}

}  // namespace braze::capture
