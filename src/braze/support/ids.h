// Strong indices: a ValueId is not a NodeId, and neither is an int.
//
//   using ValueId = support::Id<struct ValueTag>;
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace braze::support {

template <class Tag>
struct Id {
  static constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t index = kNoIndex;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t i) : index(static_cast<std::uint32_t>(i)) {}
  constexpr bool is_none() const { return index == kNoIndex; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace braze::support

template <class Tag>
struct std::hash<braze::support::Id<Tag>> {
  std::size_t operator()(braze::support::Id<Tag> id) const noexcept { return id.index; }
};
