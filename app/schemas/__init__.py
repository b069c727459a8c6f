"""The shapes on the wire: they convert and describe, they decide nothing."""
