# SPDX-License-Identifier: GPL-2.0-or-later
"""kdelta: which kernel is faster, by how much, and why."""

__version__ = "0.1.0"
