# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines that are no guests, driven through labgrid: described, started with a kernel, heard, brought back."""
