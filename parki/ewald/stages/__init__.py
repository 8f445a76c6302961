"""Stages of a sum as steps: near field, spreading, transforms, multiplication, interpolation."""
