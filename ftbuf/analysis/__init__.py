"""Analyses: each a function that takes a trace and returns a Table, or a few of them, in bounded memory."""
