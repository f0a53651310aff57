"""A fresh list that is reachable twice is made once."""

import torch

args = (torch.ones(2),)


def program(x):
    parts = [x + 1]
    return {"a": parts, "b": (parts, 3)}
