// The options of the process: read from the environment once, never changed in place.
//
//   if (support::options().strict) ...                      BRAZE_STRICT=1
//   auto next = support::options(); next.recompile_limit = 2; support::replace_options(next);   // braze.config
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace braze::support {

/// The types of options.def's first column.
namespace option {
using bool_ = bool;
using int_ = std::int64_t;
using float_ = double;
using text_ = std::string;
}  // namespace option

struct Options {
#define OPTION(type, name, value, doc) option::type##_ name = value;
#include "braze/support/options.def"
#undef OPTION
  bool operator==(const Options&) const = default;
};

using OptionValue = std::variant<bool, std::int64_t, double, std::string>;

/// One row, for the Python configuration and for documentation.
struct OptionInfo {
  std::string_view type;  ///< "bool", "int", "float", "text"
  std::string_view name;
  std::string_view environment;  ///< "BRAZE_STRICT"
  std::string_view doc;
  OptionValue (*get)(const Options&);
  void (*set)(Options&, std::string_view text);  ///< throws std::invalid_argument naming the option and what it takes
};

std::span<const OptionInfo> option_table();

/// Options with every variable that `value_of` knows (null: not set) applied to the defaults.
Options read_options(const std::function<const char*(const char* variable)>& value_of);

/// The current options. The reference stays valid for ever; a later replace_options gives a new object.
const Options& options();
void replace_options(const Options& next);

/// True if `name` or "all" is an item of the comma separated list.
bool list_has(std::string_view list, std::string_view name);

}  // namespace braze::support
