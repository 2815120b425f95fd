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

static FILE *file;
static bool failed;
static uint32_t n_intervals;

/* CRC-32 as in zlib (IEEE 802.3, reflected). */
static uint32_t crc32(const void *data, size_t size)
{
	static uint32_t table[256];
	const uint8_t *p = data;
	uint32_t crc = ~0u;

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			table[i] = i;
			for (int bit = 0; bit < 8; bit++)
				table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
		}
	while (size--)
		crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
	return ~crc;
}

static void put(const void *data, size_t size)
{
	if (failed || !size || fwrite(data, size, 1, file) == 1)
		return;
	failed = true;
	fprintf(stderr, "kdelta plugin: cannot write the counts: %s\n", strerror(errno));
}

/* A whole section is in the file, or the reader finds it cut off. */
static void flush(void)
{
	if (failed || !fflush(file))
		return;
	failed = true;
	fprintf(stderr, "kdelta plugin: cannot write the counts: %s\n", strerror(errno));
}

bool output_open(const char *path, const char *target, int qemu_api)
{
	struct header h = {.magic = "KDPLUG01", .bytes = sizeof(h), .counters = COUNTERS};

	h.qemu_api = (uint32_t)qemu_api;
	strncpy(h.target, target, sizeof(h.target) - 1);
	file = fopen(path, "wb");
	if (!file) {
		fprintf(stderr, "kdelta plugin: cannot create %s: %s\n", path, strerror(errno));
		return false;
	}
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	put(&h, sizeof(h));
	flush();
	return !failed;
}

void output_interval(uint32_t id, const struct record *records, size_t n)
{
	size_t size = n * sizeof(*records);
	struct section s = {"KDIV", id, (uint32_t)n, crc32(records, size)};

	put(&s, sizeof(s));
	put(records, size);
	flush();
	n_intervals++;
}

/* Beside the interval before it. */
void output_calls(uint32_t id, const struct call_record *records, size_t n)
{
	size_t size = n * sizeof(*records);
	struct section s = {"KDSC", id, (uint32_t)n, crc32(records, size)};

	put(&s, sizeof(s));
	put(records, size);
	flush();
}

void output_close(uint32_t flags)
{
	struct section s = {"KDEN", n_intervals, flags, 0};

	if (!file)
		return;
	put(&s,
	    sizeof(s)); /* put() writes nothing once a write failed: the file stays without a trailer */
	flush();
	fclose(file);
	file = NULL;
}
