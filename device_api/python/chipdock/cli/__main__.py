# SPDX-License-Identifier: Apache-2.0
"""`python -m chipdock.cli`, the same as `chipdock`."""

from chipdock.cli import main

if __name__ == "__main__":
    main()
