# SPDX-License-Identifier: GPL-2.0-or-later
"""The same kernels and cases measured twice, on two hosts or by two QEMUs."""

from kdelta.results.agreement.agree import compare, put_together
from kdelta.results.agreement.common import Measured

__all__ = ["Measured", "compare", "put_together"]
