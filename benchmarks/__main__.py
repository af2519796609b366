"""``make bench``: everything that can be measured on any machine; ``torchcaps bench --list`` names the rest."""

from torchcaps.cli.app import main

main(["bench"])
