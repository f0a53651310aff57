"""Builds guards for reads of Python objects, as a capture does, in a few lines of a test."""

import types

import torch

from braze import _C

EMPTY = _C.empty_slot
DATA_DESCRIPTORS = (property, types.MemberDescriptorType, types.GetSetDescriptorType)


class Reader:
    """A source table, the guards required so far, and the slots that the program point has."""

    def __init__(self, *slots, function=None):
        self.guards, self.slots, self.function, self.fetched = _C.Guards(), list(slots), function, []

    def slot(self, i):
        return Ref(self, self.guards.source("slot", index=i), self.slots[i])

    def held(self, value):
        return Ref(self, self.guards.source("held", key=value), value)

    def func(self):
        return Ref(self, self.guards.source("function"), self.function)

    def build(self):
        self.guards.build([r.source for r in self.fetched], len(self.slots))
        return self

    def check(self, *slots, function=None):
        return self.guards.check(list(slots) or self.slots, function or self.function)

    def holds(self):
        return self.check() is not None

    def explain(self):
        return self.guards.explain(self.slots, self.function)


class Ref:
    """A live value and where it came from. Every method requires the guards of that read."""

    def __init__(self, reader, source, value):
        self.reader, self.source, self.value = reader, source, value

    def child(self, kind, value, index=0, key=None):
        return Ref(self.reader, self.reader.guards.source(kind, self.source, index, key), value)

    def require(self, kind, expected=None, index=0, key=None, **more):
        self.reader.guards.require(kind, self.source, expected, index, key, **more)
        return self

    def fetch(self):
        self.reader.fetched.append(self)
        return self

    # facts
    def typed(self):
        return self.require("exact_type", type(self.value))

    def const(self):
        if self.value is None:
            return self.require("none")
        return self.require("constant", self.value)

    def same(self):
        return self.require("identity", self.value)

    def tensor(self, bits=0):
        return self.require("tensor", self.value, bits)

    def length(self):
        return self.require("length", index=len(self.value))

    def keys(self):
        return self.typed().require("dict_keys", tuple(self.value))

    def has(self, key):
        return self.require("dict_has", index=int(key in self.value), key=key)

    # reads
    def type(self):
        return self.child("type", type(self.value))

    def dict(self):
        return self.child("dict", self.value.__dict__)

    def key(self, key):
        return self.child("item", self.value[key], key=key)

    def item(self, i):
        return self.child("element", self.value[i], i)

    def class_attr(self, name):
        """What the look-up in the class finds, unbound; guarded to be missing if it is."""
        for base in self.value.__mro__:
            if name in base.__dict__:
                return self.child("type_attr", base.__dict__[name], key=name)
        self.require("type_lacks", key=name)
        return None

    def attr(self, name):
        """Read an attribute as object.__getattribute__ does, guarding each step."""
        self.typed()
        found = self.type().class_attr(name)
        if found is not None and isinstance(found.value, types.MemberDescriptorType):
            found.same()
            return self.child("member_slot", getattr(self.value, name), key=found.value)
        if found is not None and isinstance(found.value, DATA_DESCRIPTORS):
            return found.same()
        if not hasattr(self.value, "__dict__"):
            return found
        if name in self.value.__dict__:
            return self.dict().key(name)
        self.require("instance_lacks", key=name)
        return found

    def module(self, name):
        return self.attr("_modules").key(name)

    def param(self, name):
        return self.attr("_parameters").key(name)

    # functions
    def globals(self):
        return self.child("globals", self.value.__globals__)

    def builtins(self):
        return self.child("builtins", self.value.__builtins__)

    def cell(self, i):
        cell = self.child("closure_cell", self.value.__closure__[i], i)
        return cell.child("cell_contents", cell.value.cell_contents)

    def code(self):
        return self.child("code", self.value.__code__)

    def defaults(self):
        return self.child("defaults", self.value.__defaults__)

    def kwdefaults(self):
        return self.child("kwdefaults", self.value.__kwdefaults__)


def read_module(m: Ref) -> None:
    """What a capture guards of one nn.Module call without hooks: class, hook tables, parameters, children."""
    m.typed()
    for table in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"):
        m.attr(table).typed().length()
    m.require("instance_lacks", key="forward")
    m.type().class_attr("forward").same()
    m.attr("training").const()
    for table, read in (("_parameters", m.param), ("_modules", m.module)):
        if m.value.__dict__[table]:
            m.attr(table).keys()
        for name, value in m.value.__dict__[table].items():
            child = read(name)
            if isinstance(value, torch.Tensor):
                child.tensor().fetch()
            elif value is None:
                child.const()
            else:
                read_module(child)
