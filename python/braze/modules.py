"""Transparent compiled modules: an object that is the module in every respect but how a call runs.

The compiled object shares the original's ``__dict__``, its class is derived from the original's class and follows it
when that changes (parametrizations and FSDP2 assign ``__class__``), and inside a call ``self`` is the original. So
parameters, buffers, hooks, ``train()``, ``to()`` and ``state_dict()`` (keys without a prefix) mean the same on both.
"""

from __future__ import annotations

import copy
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

_ORIGINAL = "__braze_original__"
_CALL = "__braze_call__"
_derived: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()  # kept by its instances
_class_slot = object.__dict__["__class__"]  # the way round a class's own __class__ property


class CompiledModule:
    """First base of every derived class; isinstance(model, CompiledModule) tells compiled modules from others."""

    __slots__ = ()
    __braze_class__: type

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A derived class is nobody's plugin: the original's ``__init_subclass__`` does not hear of it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        original = original_of(self)
        if type(original) is not type(self).__braze_class__:
            _follow(self, original)
        return object.__getattribute__(self, _CALL)(*args, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        call = object.__getattribute__(self, _CALL)
        return _rebuild, (original_of(self), dict(call.options))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        found = memo.get(id(self))
        if found is None:
            call = object.__getattribute__(self, _CALL)
            found = memo[id(self)] = _rebuild(copy.deepcopy(original_of(self), memo), dict(call.options))
        return found

    def __copy__(self) -> Any:
        call = object.__getattribute__(self, _CALL)
        return _rebuild(copy.copy(original_of(self)), dict(call.options))


class _Held(CompiledModule):
    """Storage for what a compiled module knows, outside the shared ``__dict__``."""

    __slots__ = (_ORIGINAL, _CALL)


def original_of(module: Any) -> Any:
    """The module that a compiled module stands for; any other object is returned as it is."""
    return object.__getattribute__(module, _ORIGINAL) if isinstance(module, CompiledModule) else module


def call_of(module: CompiledModule) -> Any:
    """The compiled callable behind a compiled module."""
    return object.__getattribute__(module, _CALL)


def wrap(original: nn.Module, make_call: Callable[[nn.Module], Any]) -> Any:
    """A compiled module for ``original``; ``make_call(original)`` gives what its calls run."""
    wrapper: Any = object.__new__(_derive(type(original)))
    object.__setattr__(wrapper, "__dict__", original.__dict__)
    object.__setattr__(wrapper, _ORIGINAL, original)
    object.__setattr__(wrapper, _CALL, make_call(original))
    return wrapper


def _rebuild(original: nn.Module, options: dict[str, Any]) -> Any:
    """Unpickle: compile the original again with the same options."""
    from braze.api import compile

    return compile(original, **options)


def _follow(wrapper: Any, original: Any) -> None:
    """Bring the wrapper's class and attribute dictionary back in step with the original's."""
    _class_slot.__set__(wrapper, _derive(type(original)))
    if wrapper.__dict__ is not original.__dict__:
        object.__setattr__(wrapper, "__dict__", original.__dict__)


def _slots_of(cls: type) -> Iterator[str]:
    """Names of the ``__slots__`` storage that instances of ``cls`` have beside their ``__dict__``."""
    for base in cls.__mro__:
        for name, value in vars(base).items():
            if isinstance(value, types.MemberDescriptorType) and base.__module__ != "builtins":
                yield name


def _forwarding(name: str) -> property:
    """A property that reads, writes and deletes a slot of the original."""

    def get(self: Any) -> Any:
        return getattr(original_of(self), name)

    def put(self: Any, value: Any) -> None:
        setattr(original_of(self), name, value)

    def drop(self: Any) -> None:
        delattr(original_of(self), name)

    return property(get, put, drop)


def _get_class(self: Any) -> type:
    return type(original_of(self))


def _set_class(self: Any, cls: type) -> None:
    original = original_of(self)
    original.__class__ = cls
    _follow(self, original)


def _derive(cls: type) -> type:
    """The class of compiled modules whose original has class ``cls``; one at a time per class."""
    known = _derived.get(cls)
    found = known() if known else None
    if found is None:
        body: dict[str, Any] = {name: _forwarding(name) for name in _slots_of(cls)}
        body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        body |= {"__braze_class__": cls, "__class__": property(_get_class, _set_class)}
        if hasattr(cls, "__del__"):
            body["__del__"] = lambda self: None  # the original has its own
        found = _new_class(cls, body)
        _derived[cls] = weakref.ref(found)
    return found


def _new_class(cls: type, body: dict[str, Any]) -> type:
    """Derived classes share one storage layout, so that ``__class__`` can follow; classes with slots have their own."""
    try:
        return types.new_class(cls.__name__, (_Held, cls), {}, lambda namespace: namespace.update(body))
    except TypeError:  # layout conflict with the class's own slots
        body = {**body, "__slots__": (_ORIGINAL, _CALL)}
        return types.new_class(cls.__name__, (CompiledModule, cls), {}, lambda namespace: namespace.update(body))


def is_module(value: object) -> bool:
    """True for modules that get a transparent wrapper."""
    return isinstance(value, torch.nn.Module)
