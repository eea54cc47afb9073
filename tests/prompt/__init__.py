"""Tests of the package `prompt`."""
