"""Each kind of read sees each way to change what it read, and nothing else."""

import collections
import dataclasses
import functools
import os
import types
import weakref

import numpy as np
import pytest
import torch
from guard_reader import EMPTY, Reader, read_module
from torch import nn

CASES = {}


def case(make):
    """A maker returns (reader with its guards, function that changes what was read, functions that change others)."""
    CASES[make.__name__] = make
    return make


class Plain:
    k = 2

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def fresh_class(*bases, **attributes):
    return type("Local", bases or (object,), attributes)


@case
def attribute_value():
    o = Plain(gain=2.0, other=1)
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: setattr(o, "gain", 3.0), [lambda: setattr(o, "other", 5), lambda: setattr(o, "new", 5)]


@case
def attribute_deleted():
    o = Plain(gain=2.0)
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: delattr(o, "gain"), [lambda: setattr(o, "gain", float("2.0"))]


@case
def attribute_becomes_other_type():
    o = Plain(gain=1)
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: setattr(o, "gain", True), [lambda: setattr(o, "gain", int("1"))]


@case
def float_sign_of_zero():
    o = Plain(gain=0.0)
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: setattr(o, "gain", -0.0), [lambda: setattr(o, "gain", float("0"))]


@case
def nan_stays_equal():
    o = Plain(gain=float("nan"))
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: setattr(o, "gain", 0.0), [lambda: setattr(o, "gain", float("nan"))]


@case
def nested_tuple_of_constants():
    o = Plain(shape=(1, ("a", 2.0)))
    r = Reader(o)
    r.slot(0).attr("shape").const()
    return (
        r,
        lambda: setattr(o, "shape", (1, ("a", 2))),
        [lambda: setattr(o, "shape", eval("(1, ('a', 2.0))")), lambda: setattr(o, "x", 0)],
    )


@case
def instance_dict_replaced():
    o = Plain(gain=2)
    r = Reader(o)
    r.slot(0).attr("gain").const()
    return r, lambda: setattr(o, "__dict__", {"gain": 3}), [lambda: setattr(o, "__dict__", {"gain": 2, "more": 1})]


@case
def instance_lacks_attribute():
    o = Plain()
    r = Reader(o)
    r.slot(0).attr("k").const()
    return r, lambda: setattr(o, "k", 3), [lambda: setattr(o, "j", 3)]


@case
def class_attribute():
    C = fresh_class(k=2)
    o = C()
    r = Reader(o)
    r.slot(0).attr("k").const()
    return r, lambda: setattr(C, "k", 3), [lambda: setattr(C, "j", 3), lambda: setattr(C, "k", 2)]


@case
def base_class_attribute():
    A = fresh_class(k=2)
    B = fresh_class(A)
    C = fresh_class(B)
    o = C()
    r = Reader(o)
    r.slot(0).attr("k").const()
    return r, lambda: setattr(B, "k", 3), [lambda: setattr(A, "j", 3)]


@case
def class_attribute_appears():
    C = fresh_class()
    o = C()
    r = Reader(o)
    r.slot(0).typed().type().class_attr("gain")
    return r, lambda: setattr(C, "gain", 1), [lambda: setattr(C, "loss", 1)]


@case
def bases_assigned():
    A, B = fresh_class(fresh_class(), k=2), fresh_class(fresh_class(), k=3)
    C = fresh_class(A)
    o = C()
    r = Reader(o)
    r.slot(0).attr("k").const()
    return r, lambda: setattr(C, "__bases__", (B,)), []


@case
def class_assigned():
    A, B = fresh_class(k=2), fresh_class(k=2)
    o = A()
    r = Reader(o)
    r.slot(0).attr("k").const()
    return r, lambda: setattr(o, "__class__", B), [lambda: setattr(B, "k", 4)]


@case
def class_of_a_module_assigned():
    class Sub(types.ModuleType):
        pass

    m = types.ModuleType("m")
    m.k = 1
    box = [m]
    r = Reader(box)
    r.slot(0).typed().item(0).attr("k").const()
    return r, lambda: setattr(m, "__class__", Sub), [lambda: setattr(m, "j", 1)]


@case
def property_replaced():
    C = fresh_class(k=property(lambda self: 2))
    o = C()
    r = Reader(o)
    r.slot(0).attr("k")
    return r, lambda: setattr(C, "k", property(lambda self: 3)), [lambda: setattr(o, "x", 1)]


@case
def method_patched_on_instance():
    C = fresh_class(g=lambda self, x: x)
    o = C()
    r = Reader(o)
    r.slot(0).attr("g").same()
    return r, lambda: setattr(o, "g", lambda x: x), [lambda: setattr(o, "h", 1)]


@case
def member_slot():
    C = fresh_class(__slots__=("v", "w"))
    o = C()
    o.v, o.w = 2, 3
    r = Reader(o)
    r.slot(0).attr("v").const()
    return r, lambda: setattr(o, "v", 3), [lambda: setattr(o, "w", 9), lambda: setattr(o, "v", int("2"))]


@case
def member_slot_emptied():
    C = fresh_class(__slots__=("v",))
    o = C()
    o.v = 2
    r = Reader(o)
    r.slot(0).attr("v").const()
    return r, lambda: delattr(o, "v"), []


@case
def list_element():
    c = [1.0, 2.0]
    r = Reader(c)
    r.slot(0).typed().item(0).const()
    return (
        r,
        lambda: c.__setitem__(0, 5.0),
        [lambda: c.append(1), lambda: c.__setitem__(1, 7), lambda: c.extend([0] * 99)],
    )


@case
def list_length():
    c = [1, 2]
    r = Reader(c)
    r.slot(0).typed().length()
    return r, lambda: c.append(3), [lambda: c.__setitem__(0, 7)]


@case
def list_cleared():
    c = [1, 2]
    r = Reader(c)
    r.slot(0).typed().item(1).const()
    return r, c.clear, [lambda: (c.reverse(), c.reverse()), lambda: c.insert(2, 5)]


@case
def list_in_a_tuple():
    c = (["a"], 2)
    r = Reader(c)
    inner = r.slot(0).typed().item(0)
    inner.typed().length().item(0).const()
    return r, lambda: c[0].append("b"), []


@case
def tuple_element():
    o = Plain(t=(1, [2]))
    r = Reader(o)
    r.slot(0).attr("t").typed().item(1).typed().item(0).const()
    return r, lambda: setattr(o, "t", (1, [3])), [lambda: setattr(o, "t", (0, [2]))]


@case
def dict_entry():
    c = {"a": {"b": 2.0}, "z": 1}
    r = Reader(c)
    r.slot(0).typed().key("a").typed().key("b").const()
    return r, lambda: c["a"].update(b=4.0), [lambda: c.update(z=2), lambda: c["a"].update(c=1), lambda: c.pop("z")]


@case
def dict_entry_replaced_by_equal_then_changed():
    c = {"a": {"b": 2.0}}
    r = Reader(c)
    r.slot(0).typed().key("a").typed().key("b").const()
    return r, lambda: c["a"].update(b=4.0), [lambda: c.update(a={"b": 2.0})]


@case
def dict_key_appears():
    c = {"a": 1}
    r = Reader(c)
    r.slot(0).typed().has("k")
    return r, lambda: c.update(k=1), [lambda: c.update(j=1), lambda: c.pop("a")]


@case
def dict_key_deleted():
    c = {"k": 1, "j": 1}
    r = Reader(c)
    r.slot(0).typed().has("k")
    return r, lambda: c.pop("k"), [lambda: c.pop("j"), lambda: c.update(k=5)]


@case
def dict_order():
    c = {"a": 1, "b": 2}
    r = Reader(c)
    r.slot(0).keys()
    return r, lambda: c.update(a=c.pop("a")), [lambda: c.update(a=3)]


@case
def dict_length():
    c = {"a": 1}
    r = Reader(c)
    r.slot(0).typed().length()
    return r, lambda: c.update(b=1), [lambda: c.update(a=3), lambda: (c.pop("a"), c.update(z=1))]


@case
def ordered_dict_order():
    c = collections.OrderedDict(a=2.0, b=3.0)
    r = Reader(c)
    r.slot(0).keys()
    return r, lambda: c.move_to_end("a"), [lambda: c.update(a=5.0)]


@case
def ordered_dict_of_unknown_owner_order():
    o = Plain(c=collections.OrderedDict(a=2.0, b=3.0))
    r = Reader(o)
    r.slot(0).attr("c").require("dict_keys", ("a", "b"))
    return r, lambda: o.c.move_to_end("a"), [lambda: o.c.update(a=5.0)]


@case
def counter_value():
    c = collections.Counter("aab")
    r = Reader(c)
    r.slot(0).keys().key("a").const()
    return r, lambda: c.update("a"), [lambda: c.update("b")]


@case
def int_keys():
    c = {1: "x", 2: "y"}
    r = Reader(c)
    r.slot(0).typed().key(1).const()
    return r, lambda: c.update({1: "z"}), [lambda: c.update({2: "z"})]


@case
def set_contents():
    c = {1, "a"}
    r = Reader(c)
    r.slot(0).typed().require("set", frozenset(c))
    return r, lambda: c.add(3), [lambda: (c.add(9), c.discard(9))]


@case
def set_element_type():
    c = {1}
    r = Reader(c)
    r.slot(0).typed().require("set", frozenset(c))
    return r, lambda: (c.clear(), c.add(True)), []


@case
def set_order():
    c = {8, 16}
    r = Reader(c)
    r.slot(0).typed().require("set", tuple(c))
    return r, lambda: (c.discard(8), c.add(24)), []


@case
def deque_item():
    c = collections.deque([1.0, 2.0], maxlen=2)
    r = Reader(c)
    r.slot(0).typed().child("deque_item", c[0], 0).const()
    return r, lambda: c.appendleft(9.0), [lambda: c.__setitem__(1, 5.0)]


@case
def deque_length():
    c = collections.deque([1.0])
    r = Reader(c)
    r.slot(0).typed().length()
    return r, lambda: c.append(9.0), [lambda: c.__setitem__(0, 5.0)]


@case
def deque_of_objects():
    c = collections.deque([Plain(v=1)])
    r = Reader(c)
    r.slot(0).typed().child("deque_item", c[0], 0).attr("v").const()
    return r, lambda: setattr(c[0], "v", 2), [lambda: c.appendleft(Plain(v=1))]


def function_reader(f):
    r = Reader(EMPTY, function=f)
    return r, r.func()


@case
def global_value():
    names = {"gain": 2.0}
    exec("def f(x): return x * gain", names)
    r, f = function_reader(names["f"])
    f.globals().key("gain").const()
    return r, lambda: names.update(gain=3.0), [lambda: names.update(step=i) for i in range(3)]


@case
def global_hides_builtin():
    names = {}
    exec("def f(x): return abs(x)", names)
    r, f = function_reader(names["f"])
    f.globals().has("abs")
    f.builtins().key("abs").same()
    return r, lambda: names.update(abs=len), [lambda: names.update(step=1)]


@case
def builtin_replaced():
    names = {"__builtins__": dict(abs=abs)}
    exec("def f(x): return abs(x)", names)
    r, f = function_reader(names["f"])
    f.builtins().key("abs").same()
    return r, lambda: names["__builtins__"].update(abs=len), [lambda: names["__builtins__"].update(len=len)]


@case
def closure_cell():
    v = w = 2

    def f(x):
        return x * v * w

    def put(value):
        nonlocal v
        v = value

    def put_other():
        nonlocal w
        w = 9

    r, ref = function_reader(f)
    ref.cell(f.__code__.co_freevars.index("v")).const()
    return r, lambda: put(5), [put_other, lambda: put(int("2"))]


@case
def closure_cell_emptied():
    v = 2

    def f(x):
        return x * v

    def drop():
        nonlocal v
        del v

    r, ref = function_reader(f)
    ref.cell(0).const()
    return r, drop, []


@case
def function_default():
    def g(a, k=2):
        return a * k

    o = Plain(g=g)
    r = Reader(o)
    r.slot(0).attr("g").same().defaults().const()
    return (
        r,
        lambda: setattr(g, "__defaults__", (7,)),
        [lambda: setattr(g, "__doc__", "x"), lambda: setattr(g, "__defaults__", eval("(2,)"))],
    )


@case
def function_default_appears():
    def g(a):
        return a

    o = Plain(g=g)
    r = Reader(o)
    r.slot(0).attr("g").same().defaults().const()
    return r, lambda: setattr(g, "__defaults__", (7,)), []


@case
def function_keyword_default():
    def g(a, *, k=2):
        return a * k

    r, ref = function_reader(g)
    ref.kwdefaults().typed().key("k").const()
    return r, lambda: g.__kwdefaults__.update(k=8), [lambda: g.__kwdefaults__.update(j=8)]


@case
def function_keyword_defaults_replaced():
    def g(a, *, k=2):
        return a * k

    r, ref = function_reader(g)
    ref.kwdefaults().typed().key("k").const()
    return r, lambda: setattr(g, "__kwdefaults__", {"k": 3}), [lambda: setattr(g, "__kwdefaults__", {"k": 2})]


@case
def function_code():
    def g(a):
        return a + 1

    r, ref = function_reader(g)
    ref.code().same()
    return r, lambda: setattr(g, "__code__", (lambda a: a - 1).__code__), []


@case
def module_global():
    m = types.ModuleType("settings")
    m.k, m.j = 2, 3
    r = Reader()
    r.held(m).attr("k").const()
    return r, lambda: setattr(m, "k", 3), [lambda: setattr(m, "j", 4), lambda: setattr(m, "k", 2)]


@case
def module_in_global_replaced():
    names = {"F": types.ModuleType("F")}
    names["F"].k = 1
    exec("def f(x): return F.k", names)
    r, f = function_reader(names["f"])
    f.globals().key("F").same().attr("k").const()
    other = types.ModuleType("F")
    other.k = 1
    return r, lambda: names.update(F=other), [lambda: names.update(G=other)]


@case
def partial_keyword():
    p = functools.partial(max, 1, k=2)
    r = Reader(p)
    ref = r.slot(0).typed()
    ref.child("partial_func", p.func).same()
    ref.child("partial_args", p.args).typed().item(0).const()
    ref.child("partial_keywords", p.keywords).typed().key("k").const()
    return r, lambda: p.keywords.update(k=4), [lambda: p.keywords.update(j=4)]


@case
def partial_state():
    p = functools.partial(max, 1)
    r = Reader(p)
    ref = r.slot(0).typed()
    ref.child("partial_func", p.func).same()
    ref.child("partial_args", p.args).const()
    return r, lambda: p.__setstate__((min, (1,), {}, {})), [lambda: p.__setstate__((max, (1,), {}, {}))]


@case
def bound_method():
    C = fresh_class(g=lambda self: 1)
    a = C()
    o = Plain(m=a.g)
    r = Reader(o)
    method = r.slot(0).attr("m").typed()
    method.child("method_self", a).same()
    method.child("method_function", C.g).same()
    b = C()
    return r, lambda: setattr(o, "m", b.g), [lambda: setattr(o, "m", a.g)]


@case
def dataclass_field():
    @dataclasses.dataclass
    class Inner:
        k: int = 2

    o = Plain(inner=Inner())
    r = Reader(o)
    r.slot(0).attr("inner").attr("k").const()
    return r, lambda: setattr(o, "inner", Inner(5)), [lambda: setattr(o, "inner", Inner(2))]


@case
def weak_reference_dies():
    box = [Plain(v=1)]
    w = weakref.ref(box[0])
    r = Reader(w)
    r.slot(0).typed().child("weakref_target", w()).attr("v").const()
    return r, box.clear, [lambda: setattr(box[0], "u", 1)]


@case
def weak_reference_stays_dead():
    box = [Plain(), Plain()]
    w, other = weakref.ref(box[0]), weakref.ref(box[1])
    del box[0]
    o = Plain(w=w, keep=box)
    r = Reader(o)
    r.slot(0).attr("w").typed().child("weakref_target", None).const()
    return r, lambda: setattr(o, "w", other), []


@case
def environment():
    os.environ["BRAZE_GUARD_CASE"] = "2"
    r = Reader()
    r.guards.require("environment", None, "2", key="BRAZE_GUARD_CASE")
    return (
        r,
        lambda: os.environ.update(BRAZE_GUARD_CASE="4"),
        [lambda: os.environ.update(BRAZE_GUARD_OTHER="1"), lambda: os.environ.update(BRAZE_GUARD_CASE="2")],
    )


@case
def environment_appears():
    os.environ.pop("BRAZE_GUARD_CASE", None)
    r = Reader()
    r.guards.require("environment", None, key="BRAZE_GUARD_CASE", expect_none=True)
    return r, lambda: os.environ.update(BRAZE_GUARD_CASE="4"), [lambda: os.environ.update(BRAZE_GUARD_OTHER="2")]


@case
def numpy_scalar_value():
    o = Plain(s=np.float32(2))
    r = Reader(o)
    r.slot(0).attr("s").require("numpy_scalar", o.s)
    return r, lambda: setattr(o, "s", np.float32(3)), [lambda: setattr(o, "s", np.float32(2))]


@case
def numpy_scalar_type():
    o = Plain(s=np.float32(2))
    r = Reader(o)
    r.slot(0).attr("s").require("numpy_scalar", o.s)
    return r, lambda: setattr(o, "s", np.float64(2)), []


@case
def numpy_complex_scalar():
    o = Plain(s=np.complex128(2 + 1j))
    r = Reader(o)
    r.slot(0).attr("s").require("numpy_scalar", o.s)
    return r, lambda: setattr(o, "s", np.complex128(2 - 1j)), [lambda: setattr(o, "s", np.complex128(2 + 1j))]


@case
def array_dtype():
    o = Plain(a=np.zeros((2, 3)))
    r = Reader(o)
    r.slot(0).attr("a").require("array", o.a)
    return (
        r,
        lambda: setattr(o, "a", np.zeros((2, 3), "f4")),
        [lambda: o.a.fill(3), lambda: setattr(o, "a", np.ones((2, 3)))],
    )


@case
def array_strides():
    o = Plain(a=np.zeros((3, 3)))
    r = Reader(o)
    r.slot(0).attr("a").require("array", o.a)
    return r, lambda: setattr(o, "a", o.a.T), []


@case
def list_iterator_position():
    i = iter([1, 2, 3])
    r = Reader(i)
    r.slot(0).require("iterator", type(i), 0)
    return r, lambda: next(i), []


@case
def range_iterator_position():
    i = iter(range(3, 20, 5))
    next(i)
    r = Reader(i)
    r.slot(0).require("iterator", type(i), key=(8, 5, 3))
    return r, lambda: next(i), []


@case
def dict_iterator_position():
    d = dict(a=1, b=2)
    i = iter(d.items())
    next(i)
    r = Reader(i)
    r.slot(0).require("iterator", type(i), 1).child("iterator_item", d).key("a").const()
    return r, lambda: next(i), [lambda: d.update(b=9)]


@case
def enumerate_position():
    i = enumerate([5, 6, 7])
    next(i)
    r = Reader(i)
    inner = r.slot(0).require("iterator", type(i), 1).child("iterator_item", iter([]))
    inner.require("iterator", type(inner.value), 1)
    return r, lambda: next(i), []


@case
def zip_of_iterators():
    a, b = iter([1, 2]), iter([3, 4])
    z = zip(a, b)
    r = Reader(z)
    tup = r.slot(0).require("iterator", zip, 2).child("iterator_item", (a, b))
    tup.typed().item(0).require("iterator", type(a), 0)
    return r, lambda: next(z), []


@case
def slot_constant():
    r = Reader(3, "x")
    r.slot(0).const()
    return r, lambda: r.slots.__setitem__(0, 4), [lambda: r.slots.__setitem__(1, "y")]


@case
def slot_filled():
    r = Reader(EMPTY)
    r.slot(0).require("null")
    return r, lambda: r.slots.__setitem__(0, None), []


@case
def slot_none():
    r = Reader(None)
    r.slot(0).const()
    return r, lambda: r.slots.__setitem__(0, EMPTY), []


@case
def aliased_objects():
    a = [1]
    r = Reader(a, a)
    r.slot(0).require("alias", index=r.slot(1).source)
    return r, lambda: r.slots.__setitem__(1, [1]), []


@case
def distinct_objects():
    a = [1]
    r = Reader(a, [1])
    r.slot(0).require("distinct", index=r.slot(1).source)
    return r, lambda: r.slots.__setitem__(1, a), [lambda: r.slots.__setitem__(1, [2])]


# ---- modules and tensors


def module_case(m, change, *others):
    r = Reader(m)
    read_module(r.slot(0))
    return r, change, others


@case
def parameter_data_of_other_shape():
    m = nn.Linear(3, 3)
    return module_case(
        m,
        lambda: setattr(m.weight, "data", torch.ones(4, 3)),
        lambda: setattr(m.weight, "data", torch.ones(3, 3)),
        lambda: m.weight.data.fill_(2.0),
    )


@case
def parameter_data_of_other_strides():
    m = nn.Linear(3, 3)
    return module_case(m, lambda: setattr(m.weight, "data", torch.ones(3, 3).t()))


@case
def parameter_data_of_other_dtype():
    m = nn.Linear(3, 3)
    return module_case(m, m.double)


@case
def parameter_frozen():
    m = nn.Linear(3, 3, bias=False)
    return module_case(m, lambda: m.weight.requires_grad_(False), lambda: setattr(m, "note", 1))


@case
def parameter_replaced_by_equal_one():
    m = nn.Linear(3, 3)
    return module_case(
        m,
        lambda: setattr(m, "weight", nn.Parameter(torch.ones(5, 3))),
        lambda: setattr(m, "weight", nn.Parameter(torch.ones(3, 3))),
    )


@case
def parameter_removed():
    m = nn.Linear(3, 3)
    return module_case(m, lambda: m.register_parameter("bias", None))


@case
def parameter_storage_freed():
    m = nn.Linear(3, 3)
    return module_case(m, lambda: m.weight.untyped_storage().resize_(0))


@case
def parameters_tied_later():
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    return module_case(m, lambda: setattr(m[1].weight, "data", m[0].weight.data))


@case
def parameters_untied_later():
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    m[1].weight = m[0].weight
    return module_case(m, lambda: setattr(m[1], "weight", nn.Parameter(torch.ones(3, 3))))


@case
def training_flag():
    m = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    return module_case(m, m.eval, m.train)


@case
def training_flag_of_a_child():
    m = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Tanh()))
    return module_case(m, m[1][0].eval, m[1].train)


@case
def forward_hook_added():
    m = nn.Sequential(nn.Tanh())
    return module_case(
        m,
        lambda: m[0].register_forward_hook(lambda *a: None),
        lambda: m[0].register_forward_hook(lambda *a: None).remove(),
    )


@case
def forward_pre_hook_added():
    m = nn.Sequential(nn.Tanh())
    return module_case(m, lambda: m[0].register_forward_pre_hook(lambda *a: None))


@case
def module_appended():
    m = nn.Sequential(nn.Tanh())
    return module_case(m, lambda: m.append(nn.ReLU()))


@case
def module_replaced():
    m = nn.Sequential(nn.Tanh(), nn.ReLU())
    return module_case(m, lambda: m.__setitem__(0, nn.ReLU()), lambda: m.__setitem__(0, nn.Tanh()))


@case
def forward_patched():
    m = nn.Sequential(nn.Tanh())
    return module_case(m, lambda: setattr(m[0], "forward", torch.relu))


@case
def forward_of_class_patched():
    C = fresh_class(nn.Module, forward=lambda self, x: x)
    m = C()
    return module_case(m, lambda: setattr(C, "forward", lambda self, x: x + 1), lambda: setattr(C, "gain", 3))


def tensor_case(t, change, *others, bits=0):
    r = Reader(t)
    r.slot(0).tensor(bits).fetch()
    return r, lambda: r.slots.__setitem__(0, change(t)), [lambda c=c: r.slots.__setitem__(0, c(t)) for c in others]


@case
def tensor_shape():
    return tensor_case(torch.ones(2, 3), lambda t: torch.ones(2, 4), lambda t: torch.zeros(2, 3), lambda t: t.clone())


@case
def tensor_rank():
    return tensor_case(torch.ones(2, 3), lambda t: torch.ones(2, 3, 1))


@case
def tensor_strides():
    return tensor_case(torch.ones(3, 3), lambda t: t.t())


@case
def tensor_dtype():
    return tensor_case(torch.ones(2), lambda t: t.half())


@case
def tensor_requires_grad():
    return tensor_case(torch.ones(2), lambda t: torch.ones(2, requires_grad=True))


@case
def tensor_no_leaf():
    return tensor_case(torch.ones(2, requires_grad=True), lambda t: t * 2, lambda t: torch.zeros(2, requires_grad=True))


@case
def tensor_offset_noted():
    return tensor_case(torch.ones(4)[:2], lambda t: torch.ones(4)[1:3], lambda t: torch.ones(2), bits=1)


@case
def tensor_view_noted():
    return tensor_case(torch.ones(2), lambda t: torch.ones(4)[:2], lambda t: torch.ones(2), bits=2)


@case
def tensor_view_of_a_base_with_gradient():
    def cut(t):
        w = torch.ones(4, requires_grad=True)
        with torch.no_grad():
            return w[:2]

    return tensor_case(torch.ones(4)[:2], cut, lambda t: torch.zeros(4)[:2], bits=2)


@case
def tensor_conjugated():
    return tensor_case(torch.ones(2, dtype=torch.complex64), lambda t: t.conj())


@case
def tensor_negated():
    return tensor_case(torch.ones(2, dtype=torch.complex64).conj().imag, lambda t: torch.ones(2, 2)[:, 0])


@case
def tensor_of_inference_mode():
    def inference(t):
        with torch.inference_mode():
            return torch.ones(2)

    return tensor_case(torch.ones(2), inference)


@case
def tensor_subclass():
    class Sub(torch.Tensor):
        pass

    return tensor_case(torch.ones(2), lambda t: t.as_subclass(Sub))


@case
def tensor_becomes_parameter():
    return tensor_case(torch.ones(2, requires_grad=True), lambda t: nn.Parameter(t.detach()))


@case
def tensor_sparse():
    return tensor_case(torch.ones(2, 2), lambda t: t.to_sparse())


@case
def tensor_on_meta():
    return tensor_case(torch.ones(2), lambda t: t.to("meta"))


@case
def tensor_no_tensor():
    return tensor_case(torch.ones(2), lambda t: [1.0, 1.0])


@case
def tensor_argument_aliases_parameter():
    m = nn.Linear(3, 3)
    r = Reader(m, torch.ones(3, 3))
    read_module(r.slot(0))
    r.slot(1).tensor().fetch()
    return (
        r,
        lambda: r.slots.__setitem__(1, m.weight.detach()),
        [lambda: r.slots.__setitem__(1, torch.zeros(3, 3)), lambda: r.slots.__setitem__(1, m.weight.detach().clone())],
    )


def two_tensors(a, b, change, *others):
    r = Reader(a, b)
    r.slot(0).tensor().fetch()
    r.slot(1).tensor().fetch()
    return (
        r,
        lambda: r.slots.__setitem__(slice(None), change),
        [lambda o=o: r.slots.__setitem__(slice(None), o) for o in others],
    )


BASE = torch.arange(8.0)


@case
def arguments_same_later():
    return two_tensors(torch.ones(4), torch.ones(4), [BASE[:4]] * 2, [BASE[:4], torch.ones(4)])


@case
def arguments_overlap_later():
    return two_tensors(torch.ones(4), torch.ones(4), [BASE[:4], BASE[2:6]], [torch.ones(4), BASE[2:6]])


@case
def arguments_distinct_later():
    return two_tensors(BASE[:4], BASE[2:6], [torch.ones(4), torch.ones(4)], [BASE[:4], BASE[2:6]])


@case
def arguments_overlap_differently():
    return two_tensors(BASE[:4], BASE[2:6], [BASE[:4], BASE[1:5]])


@case
def arguments_of_one_storage_become_one():
    return two_tensors(BASE[:4], BASE[:4], [BASE[:4]] * 2, [BASE[:4], BASE[:4]])


@case
def arguments_of_one_object_split():
    x = torch.ones(4)
    return two_tensors(x, x, [BASE[:4], BASE[:4]], [BASE[:4]] * 2)


@case
def arguments_of_one_array():
    a = np.ones(8, "f4")
    one = torch.from_numpy(a)
    return two_tensors(
        torch.ones(8),
        torch.ones(8),
        [one, torch.from_numpy(a)],
        [one, torch.ones(8)],
        [torch.ones(8), torch.from_numpy(np.ones(8, "f4"))],
    )


@case
def arguments_of_parts_of_one_array():
    a = np.ones(12, "f4")
    return two_tensors(
        torch.ones(8),
        torch.ones(8),
        [torch.from_numpy(a[:8]), torch.from_numpy(a[4:])],
        [torch.from_numpy(a[:8]), torch.ones(8)],
    )


@case
def argument_over_the_memory_of_another():
    x = torch.ones(8)
    return two_tensors(torch.ones(8), torch.ones(8), [x, torch.from_numpy(x.numpy())], [torch.zeros(8), x])


@case
def array_argument_over_a_parameter():
    m = nn.Linear(3, 3)
    r = Reader(m, torch.ones(3, 3))
    read_module(r.slot(0))
    r.slot(1).tensor().fetch()
    return (
        r,
        lambda: r.slots.__setitem__(1, torch.from_numpy(m.weight.detach().numpy())),
        [lambda: r.slots.__setitem__(1, torch.from_numpy(np.zeros((3, 3), "f4")))],
    )


@case
def device_constant():
    o = Plain(device=torch.device("cpu"))
    r = Reader(o)
    r.slot(0).attr("device").const()
    return r, lambda: setattr(o, "device", torch.device("meta")), [lambda: setattr(o, "device", torch.device("cpu"))]


@case
def size_and_slice_constants():
    o = Plain(size=torch.Size([2, 3]), rows=slice(1, None, 2))
    r = Reader(o)
    ref = r.slot(0)
    ref.attr("size").const()
    ref.attr("rows").const()
    return (
        r,
        lambda: setattr(o, "rows", slice(1, 5, 2)),
        [lambda: setattr(o, "size", torch.ones(2, 3).shape), lambda: setattr(o, "rows", slice(1, None, 2))],
    )


@case
def grad_appears():
    w = torch.ones(3, requires_grad=True)
    r = Reader(w)
    r.slot(0).tensor().child("grad", None).const()
    return r, lambda: w.sum().backward(), []


@case
def grad_vanishes():
    w = torch.ones(3, requires_grad=True)
    (w * w).sum().backward()
    r = Reader(w)
    r.slot(0).tensor().child("grad", w.grad).tensor().fetch()
    return (
        r,
        lambda: setattr(w, "grad", None),
        [lambda: setattr(w, "grad", torch.zeros(3)), lambda: (w * w).sum().backward()],
    )


@pytest.mark.parametrize("name", CASES)
def test_every_change_is_seen_and_others_are_not(name):
    r, change, others = CASES[name]()
    r.build()
    assert r.holds(), r.explain()
    assert r.holds(), r.explain()
    assert r.explain() == ""
    for i, other in enumerate(others):
        other()
        assert r.holds(), (i, r.explain())
        assert r.holds(), (i, r.explain())
    change()
    assert not r.holds()
    text = r.explain()
    assert text, "no reason given"
    assert not r.holds()
    assert r.explain() == text
    os.environ.pop("BRAZE_GUARD_CASE", None)


def test_there_are_many_kinds():
    assert len(CASES) >= 100
