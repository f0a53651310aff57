// Which handler executes which opcode of CPython 3.11. Every opcode that plain functions use has a row.
#pragma once

#include "braze/capture/handlers/containers.h"
#include "braze/capture/handlers/control.h"
#include "braze/capture/handlers/operators.h"
#include "braze/capture/handlers/stack.h"

namespace braze::capture {

/// Executes one instruction on a machine. Site is the machine's call site type.
template <class Site, class M>
void execute(M& m, const py::Instruction& i) {
  namespace h = handlers;
  using py::Opcode;
  const int arg = i.oparg;
  switch (i.opcode) {
    case Opcode::NOP:
    case Opcode::RESUME:
    case Opcode::CACHE:
    case Opcode::PRECALL: return;
    case Opcode::POP_TOP: return h::pop_top(m);
    case Opcode::PUSH_NULL: return m.push({});
    case Opcode::COPY: return m.push(share(m.peek_moved(arg)));
    case Opcode::SWAP: return m.swap(arg);
    case Opcode::LOAD_CONST: return m.push(share(m.constant(arg)));
    case Opcode::LOAD_FAST: return h::load_fast(m, arg);
    case Opcode::LOAD_CLOSURE: return m.push(share(m.local(arg)));
    case Opcode::STORE_FAST: return h::store_fast(m, arg);
    case Opcode::DELETE_FAST: return h::delete_fast(m, arg);
    case Opcode::MAKE_CELL: return m.make_cell(arg);
    case Opcode::COPY_FREE_VARS: return m.copy_free_variables(arg);
    case Opcode::LOAD_DEREF: return h::load_deref(m, arg);
    case Opcode::STORE_DEREF: return h::store_deref(m, arg);
    case Opcode::DELETE_DEREF: return h::delete_deref(m, arg);
    case Opcode::LOAD_GLOBAL: return h::load_global(m, arg);
    case Opcode::STORE_GLOBAL: return h::store_global(m, arg);
    case Opcode::DELETE_GLOBAL: return m.delete_global(m.name(arg));
    case Opcode::LOAD_ATTR: return h::load_attr(m, arg);
    case Opcode::LOAD_METHOD: return h::load_method(m, arg);
    case Opcode::STORE_ATTR: return h::store_attr(m, arg);
    case Opcode::DELETE_ATTR: return h::delete_attr(m, arg);
    case Opcode::UNARY_POSITIVE: return h::unary(m, '+');
    case Opcode::UNARY_NEGATIVE: return h::unary(m, '-');
    case Opcode::UNARY_INVERT: return h::unary(m, '~');
    case Opcode::UNARY_NOT: return h::unary_not(m);
    case Opcode::BINARY_OP: return h::binary(m, arg);
    case Opcode::BINARY_SUBSCR: return h::binary_subscr(m);
    case Opcode::STORE_SUBSCR: return h::store_subscr(m);
    case Opcode::DELETE_SUBSCR: return h::delete_subscr(m);
    case Opcode::COMPARE_OP: return h::compare(m, arg);
    case Opcode::IS_OP: return h::is_op(m, arg);
    case Opcode::CONTAINS_OP: return h::contains_op(m, arg);
    case Opcode::FORMAT_VALUE: return h::format_value(m, arg);
    case Opcode::BUILD_STRING: return h::build_string(m, arg);
    case Opcode::BUILD_TUPLE: return h::build_tuple(m, arg);
    case Opcode::BUILD_LIST: return h::build_list(m, arg);
    case Opcode::BUILD_SET: return h::build_set(m, arg);
    case Opcode::BUILD_MAP: return h::build_map(m, arg);
    case Opcode::BUILD_CONST_KEY_MAP: return h::build_const_key_map(m, arg);
    case Opcode::BUILD_SLICE: return h::build_slice(m, arg);
    case Opcode::LIST_APPEND: return h::list_append(m, arg);
    case Opcode::SET_ADD: return h::set_add(m, arg);
    case Opcode::MAP_ADD: return h::map_add(m, arg);
    case Opcode::LIST_EXTEND: return h::list_extend(m, arg);
    case Opcode::SET_UPDATE: return h::set_update(m, arg);
    case Opcode::DICT_UPDATE: return h::dict_update(m, arg);
    case Opcode::DICT_MERGE: return h::dict_merge(m, arg);
    case Opcode::LIST_TO_TUPLE: return h::list_to_tuple(m);
    case Opcode::UNPACK_SEQUENCE: return h::unpack(m, arg, -1);
    case Opcode::UNPACK_EX: return h::unpack(m, arg & 0xff, arg >> 8);
    case Opcode::GET_LEN: return h::get_len(m);
    case Opcode::JUMP_FORWARD: return m.jump(i.next + arg);
    case Opcode::JUMP_BACKWARD:
    case Opcode::JUMP_BACKWARD_NO_INTERRUPT: return m.jump(i.next - arg);
    case Opcode::POP_JUMP_FORWARD_IF_FALSE: return h::pop_jump_if(m, false, i.next + arg);
    case Opcode::POP_JUMP_FORWARD_IF_TRUE: return h::pop_jump_if(m, true, i.next + arg);
    case Opcode::POP_JUMP_BACKWARD_IF_FALSE: return h::pop_jump_if(m, false, i.next - arg);
    case Opcode::POP_JUMP_BACKWARD_IF_TRUE: return h::pop_jump_if(m, true, i.next - arg);
    case Opcode::POP_JUMP_FORWARD_IF_NONE: return h::pop_jump_if_none(m, true, i.next + arg);
    case Opcode::POP_JUMP_FORWARD_IF_NOT_NONE: return h::pop_jump_if_none(m, false, i.next + arg);
    case Opcode::POP_JUMP_BACKWARD_IF_NONE: return h::pop_jump_if_none(m, true, i.next - arg);
    case Opcode::POP_JUMP_BACKWARD_IF_NOT_NONE: return h::pop_jump_if_none(m, false, i.next - arg);
    case Opcode::JUMP_IF_FALSE_OR_POP: return h::jump_if_or_pop(m, false, i.next + arg);
    case Opcode::JUMP_IF_TRUE_OR_POP: return h::jump_if_or_pop(m, true, i.next + arg);
    case Opcode::GET_ITER: return h::get_iter(m);
    case Opcode::FOR_ITER: return h::for_iter(m, i.next + arg);
    case Opcode::CALL: return h::call<M, Site>(m, i);
    case Opcode::CALL_FUNCTION_EX: return h::call_function_ex<M, Site>(m, arg);
    case Opcode::BEFORE_WITH: return h::before_with(m);
    case Opcode::WITH_EXCEPT_START: return h::with_except_start(m);
    case Opcode::PUSH_EXC_INFO: return h::push_exc_info(m);
    case Opcode::POP_EXCEPT: return h::pop_except(m);
    case Opcode::CHECK_EXC_MATCH: return h::check_exc_match(m);
    case Opcode::RAISE_VARARGS: return h::raise_varargs(m, arg);
    case Opcode::RERAISE: return m.reraise(m.peek(1));
    case Opcode::LOAD_ASSERTION_ERROR: return m.push(share(PyExc_AssertionError));
    case Opcode::MAKE_FUNCTION: return h::make_function(m, arg);
    case Opcode::LOAD_BUILD_CLASS: return m.push(m.build_class());
    case Opcode::IMPORT_NAME: return h::import_name(m, arg);
    case Opcode::IMPORT_FROM: return h::import_from(m, arg);
    case Opcode::RETURN_VALUE: return m.return_value(m.pop());
    case Opcode::RETURN_GENERATOR: return m.start_generator();
    case Opcode::GET_YIELD_FROM_ITER: return h::get_iter(m);
    case Opcode::SEND: return h::send(m, i.next + arg);
    case Opcode::YIELD_VALUE: return m.yield_value();
    default: m.leave(py::opcode_name(i.opcode));
  }
}

}  // namespace braze::capture
