/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of lines: ARCHITECTURE.md, "Contract: lines". */
#include "coherence.h"
#include "kdelta.h"

enum { FLAG_STRANGERS = 1, FLAG_BELIEVED = 2 };

struct header {
	char magic[8];
	uint32_t bytes, cpus;
};

struct section {
	char magic[4];
	uint32_t id, transfers, lines, crc, zero;
};

static struct sink sink;
static uint32_t n_intervals;

bool lines_open(const char *path)
{
	struct header h = {.magic = "KDLINE01", .bytes = sizeof(h), .cpus = cpus_number()};

	return sink_open(&sink, path) && sink_put(&sink, &h, sizeof(h)) && sink_flush(&sink);
}

bool lines_wanted(void)
{
	return sink.file;
}

void lines_output(uint32_t id, const struct transfer *t, size_t n_transfers,
		  const struct moved_line *l, size_t n_lines)
{
	uint64_t bases[CPUS_MAX];
	struct section s = {"KDLI", id, (uint32_t)n_transfers, (uint32_t)n_lines, 0, 0};
	unsigned int n = cpus_number();

	for (unsigned int i = 0; i < n; i++)
		bases[i] = cpu_base(i);
	s.crc = crc32(0, bases, n * sizeof(*bases));
	s.crc = crc32(s.crc, t, n_transfers * sizeof(*t));
	s.crc = crc32(s.crc, l, n_lines * sizeof(*l));
	sink_put(&sink, &s, sizeof(s));
	sink_put(&sink, bases, n * sizeof(*bases));
	sink_put(&sink, t, n_transfers * sizeof(*t));
	sink_put(&sink, l, n_lines * sizeof(*l));
	sink_flush(&sink);
	n_intervals++;
}

void lines_close(void)
{
	struct section s = {"KDLE", n_intervals, 0, 0, 0, 0};

	if (!sink.file)
		return;
	s.transfers =
		(cpus_strangers() ? FLAG_STRANGERS : 0) | (cpus_believed() ? FLAG_BELIEVED : 0);
	sink_put(&sink, &s, sizeof(s));
	sink_close(&sink);
}
