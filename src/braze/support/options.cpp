// Reads options.def's rows from the environment and keeps the current set behind one pointer.
#include "braze/support/options.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <stdexcept>

#include "braze/support/text.h"

namespace braze::support {
namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view wanted, std::string_view text) {
  throw std::invalid_argument(format("option {} is '{}'; it takes {}", name, text, wanted));
}

void set_value(bool& value, std::string_view name, std::string_view text) {
  const auto is = [&](std::string_view word) { return text == word; };
  if (is("1") || is("true") || is("True") || is("on") || is("yes")) value = true;
  else if (is("") || is("0") || is("false") || is("False") || is("off") || is("no")) value = false;
  else refuse(name, "0 or 1", text);
}

template <class Number>
void set_number(Number& value, std::string_view name, std::string_view text, std::string_view wanted) {
  Number parsed{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (error != std::errc{} || end != text.data() + text.size() || !(parsed >= Number{})) refuse(name, wanted, text);
  value = parsed;
}
void set_value(std::int64_t& value, std::string_view name, std::string_view text) {
  set_number(value, name, text, "an integer of at least 0");
}
void set_value(double& value, std::string_view name, std::string_view text) {
  set_number(value, name, text, "a number of at least 0");
}
void set_value(std::string& value, std::string_view, std::string_view text) { value = text; }

template <std::size_t N>
struct UpperName {
  char text[N + 6] = "BRAZE_";
  constexpr explicit UpperName(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i)
      text[i + 6] = name[i] >= 'a' && name[i] <= 'z' ? static_cast<char>(name[i] - 'a' + 'A') : name[i];
  }
};

#define OPTION(type, name, value, doc) constexpr UpperName k_##name{#name};
#include "braze/support/options.def"
#undef OPTION

constexpr std::array kTable = {
#define OPTION(type, name, value, doc)                             \
  OptionInfo{#type,                                                \
             #name,                                                \
             k_##name.text,                                        \
             doc,                                                  \
             [](const Options& o) { return OptionValue(o.name); }, \
             [](Options& o, std::string_view text) { set_value(o.name, #name, text); }},
#include "braze/support/options.def"
#undef OPTION
};
static_assert(kTable.size() < 25, "fewer than 25 options: remove one first");

std::atomic<const Options*>& current() {
  static std::atomic<const Options*> pointer{
      new Options(read_options([](const char* name) { return std::getenv(name); }))};
  return pointer;
}

}  // namespace

std::span<const OptionInfo> option_table() { return kTable; }

Options read_options(const std::function<const char*(const char*)>& value_of) {
  Options result;
  for (const OptionInfo& row : kTable)
    if (const char* text = value_of(row.environment.data())) row.set(result, text);
  return result;
}

const Options& options() { return *current().load(std::memory_order_acquire); }

// The old object is kept: someone may still hold a reference, and replacing is rare.
void replace_options(const Options& next) { current().store(new Options(next), std::memory_order_release); }

bool list_has(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    if (item == name || item == "all") return true;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return false;
}

}  // namespace braze::support
