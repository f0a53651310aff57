// Python objects that native code may call while a capture runs, and that run in the interpreter.
#pragma once

#include "braze/capture/interpreter.h"

namespace braze::capture {

/// Calls of it are interpreted. `original` is what it stands for when live values are rebuilt.
Owned<> make_trampoline(Interpreter& interpreter, Borrowed<> callable);
/// Steps of it are interpreted.
Owned<> make_iterator(Interpreter& interpreter, Borrowed<> iterator);
/// A generator whose body is interpreted.
Owned<> make_generator_object(Interpreter& interpreter, Frame frame);

bool is_generator_object(Borrowed<> object);
/// The object that a trampoline or iterator stands for; null if it is none of ours.
Borrowed<> original_of(Borrowed<> object);

}  // namespace braze::capture
