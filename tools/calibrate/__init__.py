"""Fitting figures of the catalogue to measurements; see README.md beside this file."""
