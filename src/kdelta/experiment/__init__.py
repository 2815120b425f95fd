# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment planned and run: what is booted, in which order, and when it is enough."""
