/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that the host reads: ARCHITECTURE.md, "Contract: plugin output". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kdelta.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the output is little endian, and written as it lies in memory"
#endif

#define BUFFER_BYTES (1u << 20)

struct header {
	char magic[8];
	uint32_t bytes, counters, qemu_api, flags;
	char target[16];
	char zero[24];
};
_Static_assert(sizeof(struct header) == 64, "header is 64 bytes");

struct section {
	char magic[4];
	uint32_t a, b, c;
};

static struct sink counts;
static uint32_t n_intervals;

#define SLICES 8

/* Eight bytes at a time: table k is of a byte with k bytes behind it (slicing-by-8: Kounavis and Berry, 2005). */
static uint32_t (*crc_tables(void))[256]
{
	static uint32_t table[SLICES][256];

	if (table[0][1])
		return table;
	for (uint32_t i = 0; i < 256; i++) {
		table[0][i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[0][i] = table[0][i] >> 1 ^ (table[0][i] & 1 ? 0xedb88320u : 0);
	}
	for (int k = 1; k < SLICES; k++)
		for (uint32_t i = 0; i < 256; i++)
			table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
	return table;
}

uint32_t crc32(uint32_t crc, const void *data, size_t size)
{
	uint32_t(*table)[256] = crc_tables();
	const uint8_t *p = data;

	crc = ~crc;
	for (; size >= SLICES; size -= SLICES, p += SLICES) {
		uint64_t word;

		memcpy(&word, p, sizeof(word));
		word ^= crc;
		crc = 0;
		for (int k = 0; k < SLICES; k++)
			crc ^= table[SLICES - 1 - k][word >> 8 * k & 0xff];
	}
	while (size--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return ~crc;
}

static bool sink_failed(struct sink *s)
{
	s->failed = true;
	fprintf(stderr, "kdelta plugin: cannot write the counts: %s\n", strerror(errno));
	return false;
}

bool sink_open(struct sink *s, const char *path)
{
	s->file = fopen(path, "wb");
	if (!s->file) {
		fprintf(stderr, "kdelta plugin: cannot create %s: %s\n", path, strerror(errno));
		return false;
	}
	setvbuf(s->file, NULL, _IOFBF, BUFFER_BYTES);
	return true;
}

bool sink_put(struct sink *s, const void *data, size_t size)
{
	if (s->failed || !size || fwrite(data, size, 1, s->file) == 1)
		return !s->failed;
	return sink_failed(s);
}

/* A whole section is in the file, or the reader finds it cut off. */
bool sink_flush(struct sink *s)
{
	if (s->failed || !fflush(s->file))
		return !s->failed;
	return sink_failed(s);
}

/* What a failed write left stays without its end. */
void sink_close(struct sink *s)
{
	sink_flush(s);
	fclose(s->file);
	s->file = NULL;
}

bool output_open(const char *path, const char *target, int qemu_api)
{
	struct header h = {.magic = "KDPLUG01", .bytes = sizeof(h), .counters = COUNTERS};

	h.qemu_api = (uint32_t)qemu_api;
	strncpy(h.target, target, sizeof(h.target) - 1);
	return sink_open(&counts, path) && sink_put(&counts, &h, sizeof(h)) && sink_flush(&counts);
}

void output_interval(uint32_t id, const struct record *records, size_t n)
{
	size_t size = n * sizeof(*records);
	struct section s = {"KDIV", id, (uint32_t)n, crc32(0, records, size)};

	sink_put(&counts, &s, sizeof(s));
	sink_put(&counts, records, size);
	sink_flush(&counts);
	n_intervals++;
}

/* Beside the interval before it. */
static void beside(struct section s, const void *records, size_t size)
{
	s.c = crc32(0, records, size);
	sink_put(&counts, &s, sizeof(s));
	sink_put(&counts, records, size);
	sink_flush(&counts);
}

void output_calls(uint32_t id, const struct call_record *records, size_t n)
{
	beside((struct section){"KDSC", id, (uint32_t)n, 0}, records, n * sizeof(*records));
}

void output_touched(uint32_t id, const struct touched_record *records, size_t n)
{
	beside((struct section){"KDFT", id, (uint32_t)n, 0}, records, n * sizeof(*records));
}

void output_stacks(uint32_t id, const struct stack_record *records, size_t n)
{
	beside((struct section){"KDST", id, (uint32_t)n, 0}, records, n * sizeof(*records));
}

void output_close(uint32_t flags)
{
	struct section s = {"KDEN", n_intervals, flags, 0};

	if (!counts.file)
		return;
	sink_put(&counts, &s, sizeof(s));
	sink_close(&counts);
}
