# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user wrote -> typed values: the grammars of kernels and cases, and TOML files."""
