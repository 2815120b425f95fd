# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m kdelta`` is ``kdelta``."""

from kdelta.cli._start import main

if __name__ == "__main__":
    main()
