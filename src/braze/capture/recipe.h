// A recipe as data: steps that make values in order, then effects, then where the values go.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "braze/capture/capture.h"
#include "braze/capture/objects.h"

namespace braze::capture {

enum class Make : std::uint8_t {
  kNull,
  kConstant,
  kFetch,
  kTensor,
  kTuple,
  kTupleOf,  ///< parts; `object`: the tuple's own type
  kList,
  kDict,
  kSet,
  kFrozenSet,
  kDeque,
  kDictLike,  ///< empty; `object`: type, or maxlen of a deque
  kSlice,
  kCell,
  kMethod,
  kFunction,
  kPartial,
  kPartialKeywords,  ///< parts: keywords, function, arguments
  kSuper,
  kInstance,   ///< `object`: type, without __init__
  kException,  ///< `object`: type; parts: args
  kCall,       ///< `object`: native callable; parts: arguments
  kAttribute,  ///< of parts[0], named `object`, of an exact builtin type
  kSetState,   ///< parts[0].__setstate__(parts[1]) of a native iterator
  // Filling what was made empty, and effects:
  kFillList,
  kFillDict,
  kFillSet,
  kFillDeque,
  kFillCell,
  kFillSlot,
  kFillAttributes,
  kFillFunction,
  kStoreItem,
  kReplaceList,
  kReplaceDict,
  kReplaceSet,
  kReplaceDeque,
  kStoreCell,
  kStoreSlot,
  kNativeState,
};

struct Step {
  Make make = Make::kNull;
  Owned<> object = {};
  std::vector<std::uint32_t> parts = {};
  std::uint32_t index = 0;  ///< kFetch, kTensor: number; kReplaceList: first element to replace
};

struct FramePlan {
  Owned<PyCodeObject> code;
  std::uint32_t function = 0;
  int pc = 0, call_pc = -1;
  std::vector<std::uint32_t> slots;
};

struct RecipeData {
  std::vector<Step> steps;  ///< value i is made by step i (effects and fills make none)
  std::vector<Step> effects;
  std::vector<FramePlan> frames;
  std::uint32_t result = 0;
  bool returns = true;
};

std::unique_ptr<Recipe> make_recipe(RecipeData data);

}  // namespace braze::capture
