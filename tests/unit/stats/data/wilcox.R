# SPDX-License-Identifier: GPL-2.0-or-later
# Made wilcox.json: Rscript wilcox.R > wilcox.json   (R 4.2.2, base packages only)
# Exact intervals, estimates and p values of R's own wilcox.test for paired differences without ties.
options(digits = 17)
set.seed(20240601)
numbers <- function(x) paste0("[", paste(format(x, digits = 17, scientific = TRUE, trim = TRUE), collapse = ", "), "]")
one <- function(name, d, level) {
  r <- wilcox.test(d, conf.int = TRUE, exact = TRUE, conf.level = 1 - level)
  sprintf('{"name": "%s", "level": %s, "differences": %s, "p": %s, "estimate": %s, "interval": %s}', name,
          format(level, digits = 17), numbers(d), format(r$p.value, digits = 17),
          format(unname(r$estimate), digits = 17), numbers(as.numeric(r$conf.int)))
}
rows <- c()
for (n in c(8, 10, 12, 16, 20, 24, 40)) for (level in c(0.0302, 0.05)) {
  rows <- c(rows, one(sprintf("normal-%d", n), rnorm(n, -0.01, 0.014), level))
  rows <- c(rows, one(sprintf("skewed-%d", n), rexp(n) * 0.01 - 0.005, level))
  rows <- c(rows, one(sprintf("cauchy-%d", n), rcauchy(n) * 0.01, level))
}
# Hollander & Wolfe (1973), depression data, as in R's own example
x <- c(1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
y <- c(0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
rows <- c(rows, one("hollander-wolfe", y - x, 0.05))
cat("[\n", paste(rows, collapse = ",\n"), "\n]\n", sep = "")
