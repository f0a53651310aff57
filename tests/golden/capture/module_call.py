"""A module without hooks: straight to forward, parameters as inputs, attributes guarded."""

import torch

net = torch.nn.Linear(2, 2)
args = (torch.ones(1, 2),)


def program(x):
    return net(x)
