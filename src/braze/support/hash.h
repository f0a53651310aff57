// Hashes that are the same in every process and on every machine: look-up tables, cache keys, chaos.
#pragma once

#include <cstdint>
#include <string_view>

namespace braze::support {

/// FNV-1a.
constexpr std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 14695981039346656037ull) {
  for (char c : bytes) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return seed;
}

/// Spreads the bits of x (splitmix64's finaliser).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

constexpr std::uint64_t combine(std::uint64_t a, std::uint64_t b) { return mix(a * 0x9e3779b97f4a7c15ull + b); }

}  // namespace braze::support
