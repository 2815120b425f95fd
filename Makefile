# SPDX-License-Identifier: GPL-2.0-or-later
# make demo: all set-up on a bare Debian 12 machine, then the main job.  make test: all set-up, then the tests.
SHELL := /bin/bash
.DELETE_ON_ERROR:
PY := .venv/bin/python
TOOLS := .venv/.tools-installed

.PHONY: all setup system demo test test-full test-bare check bench trial placebos atlas soak fidelity fleet-sim fuzz deb clean docs
all: setup

# one call of the package manager for all that a target needs: PACKAGES is test, full or fuzz
system:
	@tools/system-packages.sh $(PACKAGES)

$(TOOLS): pyproject.toml | system
	@test -x $(PY) || python3 -m venv .venv
	@echo "installing Python packages into .venv"
	@tools/python-packages.sh dev,fleet,lab,serve
	@touch $@

# Where PYTHONDONTWRITEBYTECODE is set, each start would compile all of kdelta again (0.15 s). The guest's program and the
# plugin are compiled into the cache: the first measurement would wait for them, 6 s.
setup: system $(TOOLS)
	@$(PY) -m compileall -q src/kdelta
	@$(PY) -m kdelta.experiment.ahead program
	@$(PY) -m kdelta.experiment.ahead plugin

demo: setup
	@tools/demo.sh

check: setup
	@tools/check.sh

test: PACKAGES := test
test: setup
	@tools/test.sh

test-full: PACKAGES := full
test-full: setup
	@tools/python-packages.sh full
	$(PY) -m pytest --durations=20

# make test as a bare Debian has it, in a folder of its own; as root: make test-bare RELEASE=trixie
test-bare: PACKAGES := full
test-bare: setup
	$(PY) tools/bare.py --release $(or $(RELEASE),bookworm)

# how fast kdelta is; make bench AGAINST=v1.0 puts that revision's figures beside, both measured now
bench: setup
ifdef AGAINST
	$(PY) tools/bench.py --against $(AGAINST)
else
	$(PY) tools/bench.py
	$(PY) tools/bench_serve.py
endif

trial: setup
	$(PY) tools/trial.py

placebos: setup
	$(PY) tools/placebos.py

# of the maps in the cache, and of stores with sweeps over the suites: make atlas ATLAS='sqlite:////home/me/kdelta.sqlite'
# a few cases changed: kdelta reach KERNEL --case NAME, of some kernels, then make atlas ATLAS=--add
atlas: setup
	$(PY) tools/atlas.py $(ATLAS)

# a kernel against itself, hours of it; whatever ends it, the next one goes on: make soak SOAK='--rounds 20 --minutes 480'
soak: setup
	$(PY) tools/soak.py $(SOAK)

fidelity: setup
	$(PY) tools/fidelity.py

# what reads foreign bytes, for MINUTES together; TARGETS names some of them. A target that had INPUTS clean ones is left out.
MINUTES := 10
INPUTS := 10000000
fuzz: PACKAGES := fuzz
fuzz: setup
	@tools/python-packages.sh fuzz
	$(PY) tools/fuzz.py --minutes $(MINUTES) --inputs $(INPUTS) --table docs/reference/fuzzing.md $(TARGETS)

# Debian's package, beside the checkout; needs the build dependencies in debian/control
deb:
	@dpkg-checkbuilddeps || { echo "make deb: install them first:  sudo apt-get build-dep ./" >&2; exit 2; }
	dpkg-buildpackage -us -uc -b

fleet-sim: setup
	$(PY) tools/fleet_sim.py --hosts 10 --experiments 5 --blocks 20 --scale 0.05
	$(PY) tools/fleet_sim.py --hosts 100 --experiments 10 --blocks 100 --scale 0.2

clean:
	rm -rf build .venv .mypy_cache .ruff_cache .pytest_cache
