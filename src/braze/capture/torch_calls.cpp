// Torch operations: called for real on fakes, as transactions.
#include "braze/capture/interpreter.h"
#include "braze/capture/transaction.h"
#include "braze/support/text.h"

namespace braze::capture {

Owned<> Interpreter::call_torch(CallSite& site, const std::string& name) {
  if (!Known::is_tensor_operation(name)) {
    const bool reads = name == "item" || name == "tolist" || name == "numpy" || name == "nonzero";
    world_.stop("a call of " + name + "() on a tensor",
                reads ? "it needs the tensor's values: move it out of the compiled function" : "");
  }
  for (const Owned<>& arg : site.args)
    if (!is_native(arg.borrow())) world_.stop("a call of " + name + "() with a " + type_of(arg.borrow())->tp_name);
  return torch_transaction(site);
}

Owned<> Interpreter::torch_transaction(CallSite& site) {
  for (const Owned<>& arg : site.args) world_.fill_deep(arg.borrow());
  Owned<> name = attribute(site.callable.borrow(), "__name__");
  const std::string what = utf8(name.borrow());
  return transaction(what.c_str(), [&] { return real_call(site); }, site.args);
}

/// The call has raised: its nodes are dropped, and it is performed for real.
void Interpreter::fail_transaction(const char* what, trace::Tracer::Mark mark) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  Owned<> t = Owned<>::steal(type), v = Owned<>::steal(value), tb = Owned<>::steal(traceback);
  Owned<> text = Owned<>::steal(v ? PyObject_Str(v.get()) : nullptr);
  PyErr_Clear();
  std::string message = text ? utf8(text.borrow()) : "";
  message = message.substr(0, message.find('\n'));
  if (!world_.tracer.roll_back(mark)) is_dirty_ = true;
  if (auto poison = world_.tracer.take_poison()) fail_poisoned(*poison, mark);
  world_.stop(support::format("{} raised {}: {}", what,
                              t ? reinterpret_cast<PyTypeObject*>(t.get())->tp_name : "an error", message));
}

void Interpreter::fail_poisoned(const trace::Poison& poison, trace::Tracer::Mark mark) {
  if (!world_.tracer.roll_back(mark)) is_dirty_ = true;
  if (poison.tensor) {
    world_.set_pending({Pending::Kind::kInput, Break{poison.reason, "", "", 0, ""}, 0, true, poison.tensor});
    throw py::PyError();
  }
  world_.stop_void(poison.reason);
}

}  // namespace braze::capture
