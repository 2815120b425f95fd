/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of lines: ARCHITECTURE.md, "Contract: lines". */
#include "coherence.h"
#include "kdelta.h"

enum { FLAG_STRANGERS = 1, FLAG_SEQUENCES = 4 };

struct header {
	char magic[8];
	uint32_t bytes, cpus;
};

struct section {
	char magic[4];
	uint32_t id, transfers, lines, caches, entries, crc, sequences;
};

static struct sink sink;
static uint32_t n_intervals;

bool lines_open(const char *path)
{
	struct header h = {.magic = "KDLINE03", .bytes = sizeof(h), .cpus = cpus_number()};

	return sink_open(&sink, path) && sink_put(&sink, &h, sizeof(h)) && sink_flush(&sink);
}

bool lines_wanted(void)
{
	return sink.file;
}

/* The parts of an interval, in order. */
struct part {
	const void *data;
	size_t bytes;
};

void lines_output(uint32_t id, const struct lines_found *found)
{
	uint64_t bases[CPUS_MAX + 2];
	unsigned int n = cpus_number();
	const struct slab_cache *caches;
	size_t n_caches = slabs_caches(&caches);
	const struct part parts[] = {
		{bases, (n + 2) * sizeof(*bases)},
		{found->transfers, found->n_transfers * sizeof(*found->transfers)},
		{found->lines, found->n_lines * sizeof(*found->lines)},
		{caches, n_caches * sizeof(*caches)},
		{found->entries, found->n_entries * sizeof(*found->entries)},
		{found->sequences, found->n_sequences * sizeof(*found->sequences)},
	};
	struct section s = {"KDLI",
			    id,
			    (uint32_t)found->n_transfers,
			    (uint32_t)found->n_lines,
			    (uint32_t)n_caches,
			    (uint32_t)found->n_entries,
			    0,
			    (uint32_t)found->n_sequences};

	for (unsigned int i = 0; i < n; i++)
		bases[i] = cpu_base(i);
	bases[n] = found->vmemmap;
	bases[n + 1] = found->direct;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		s.crc = crc32(s.crc, parts[i].data, parts[i].bytes);
	sink_put(&sink, &s, sizeof(s));
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sink_put(&sink, parts[i].data, parts[i].bytes);
	sink_flush(&sink);
	n_intervals++;
}

void lines_close(void)
{
	struct section s = {.magic = "KDLE", .id = n_intervals};

	if (!sink.file)
		return;
	s.transfers =
		(cpus_strangers() ? FLAG_STRANGERS : 0) | (sequences_known() ? FLAG_SEQUENCES : 0);
	sink_put(&sink, &s, sizeof(s));
	sink_close(&sink);
}
