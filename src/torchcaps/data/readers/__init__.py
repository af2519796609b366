"""Readers of published file formats, one format a file. They take bytes that were already checked."""
