"""``python -m torchcaps``: the command line, where its program is not on the path."""

import sys

from torchcaps.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
