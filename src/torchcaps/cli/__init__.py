"""The command line: one file a command, joined in :mod:`torchcaps.cli.app`."""
