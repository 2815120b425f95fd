# SPDX-License-Identifier: GPL-2.0-or-later
"""The store -> findings, one question a file. Nothing here writes to the store or starts a process."""
