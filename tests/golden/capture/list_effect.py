"""A caller's list is changed: one effect, appended elements only."""

import torch

args = (torch.ones(2), [1, 2])


def program(x, items):
    items.append(x * len(items))
    return items[0]
