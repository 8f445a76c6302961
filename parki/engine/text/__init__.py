"""Specialising: a kernel file and the values of its slots become one complete, readable text."""
