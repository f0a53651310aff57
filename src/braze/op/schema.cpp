#include "braze/op/schema.h"

#include "braze/support/text.h"

namespace braze::op {
namespace {

/// "Tensor(a!)" -> "Tensor", "Tensor(a -> *)[]" -> "Tensor[]".
std::string without_alias(std::string_view type) {
  std::string result;
  int depth = 0;
  for (char c : type) {
    depth += c == '(';
    if (depth == 0) result += c;
    depth -= c == ')';
  }
  return result;
}

/// Up to the last space outside brackets: the type; behind it the name.
Parameter parse_parameter(std::string_view text, bool keyword_only) {
  Parameter p;
  p.keyword_only = keyword_only;
  const std::size_t equal = text.find('=');
  if (equal != text.npos) {
    p.has_default = true;
    p.default_text = text.substr(equal + 1);
    text = text.substr(0, equal);
  }
  const std::size_t space = text.rfind(' ');
  p.type = without_alias(text.substr(0, space));
  p.name = space == text.npos ? "" : text.substr(space + 1);
  return p;
}

std::vector<Parameter> parse_parameters(support::Scanner& in) {
  std::vector<Parameter> result;
  bool keyword_only = false;
  in.expect("(");
  while (!in.accept(")")) {
    if (in.accept("*")) keyword_only = true;
    else result.push_back(parse_parameter(in.until(",)"), keyword_only));
    in.accept(",");
  }
  return result;
}

}  // namespace

Schema parse_schema(std::string_view text) {
  support::Scanner in(text);
  Schema result;
  result.name = in.until("(");
  result.parameters = parse_parameters(in);
  in.expect("->");
  if (in.peek("(")) {
    for (const Parameter& p : parse_parameters(in)) result.results.push_back(p.type);
  } else {
    result.results.push_back(without_alias(in.until(",")));
  }
  result.returns_list = result.results.size() == 1 && result.results[0] == "Tensor[]";
  return result;
}

}  // namespace braze::op
