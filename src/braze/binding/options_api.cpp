// Options for Python: read, set and list them; braze.config is a thin object over this.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "braze/support/options.h"

namespace braze::binding {

namespace py = pybind11;
using support::OptionInfo;

namespace {

const OptionInfo& find_option(std::string_view name) {
  for (const OptionInfo& row : support::option_table())
    if (row.name == name) return row;
  throw py::attribute_error(std::string("braze.config has no option ").append(name).c_str());
}

py::object to_python(const support::OptionValue& value) {
  return std::visit([](const auto& v) { return py::cast(v); }, value);
}

py::dict describe(const OptionInfo& row) {
  py::dict out;
  out["name"] = std::string(row.name);
  out["type"] = std::string(row.type);
  out["environment"] = std::string(row.environment);
  out["doc"] = std::string(row.doc);
  out["default"] = to_python(row.get(support::Options{}));
  return out;
}

void set_option(std::string_view name, std::string_view text) {
  support::Options next = support::options();
  find_option(name).set(next, text);
  support::replace_options(next);
}

}  // namespace

void register_options(py::module_& m) {
  m.def("option", [](std::string_view name) { return to_python(find_option(name).get(support::options())); });
  m.def("set_option", &set_option);
  m.def("option_table", [] {
    py::list rows;
    for (const OptionInfo& row : support::option_table()) rows.append(describe(row));
    return rows;
  });
  m.def("disabled", [] { return support::options().disable_all; });
}

}  // namespace braze::binding
