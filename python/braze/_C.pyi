"""Native part of Braze."""
