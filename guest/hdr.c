/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "hdr.h"

#define V2_COOKIE 0x1c849313u /* 0x1c849303 with the word-size nibble that all V2 writers set */
#define HEADER_BYTES 40
#define LEB_MAX 9

static unsigned int index_of(uint64_t v)
{
	/* Bucket 0 holds 0..2047 one by one; bucket b counts in steps of 2^b. */
	unsigned int bucket = 63u - HDR_HALF_BITS - (unsigned int)__builtin_clzll(v | 2047);

	return (bucket << HDR_HALF_BITS) + (unsigned int)(v >> bucket);
}

void hdr_record(struct hdr *h, uint64_t value_ns)
{
	if (value_ns > HDR_HIGHEST)
		value_ns = HDR_HIGHEST;
	if (!value_ns)
		value_ns = 1;
	h->counts[index_of(value_ns)]++;
	h->total++;
}

size_t hdr_encoded_max(void)
{
	return HEADER_BYTES + (size_t)LEB_MAX * HDR_COUNTS;
}

static uint8_t *put_be(uint8_t *p, uint64_t v, unsigned int bytes)
{
	while (bytes--)
		*p++ = (uint8_t)(v >> 8 * bytes);
	return p;
}

/* ZigZag LEB128 in at most nine bytes; the ninth carries eight bits. */
static uint8_t *put_leb(uint8_t *p, int64_t v)
{
	uint64_t u = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	unsigned int i;

	for (i = 1; i < LEB_MAX && u >= 0x80; i++, u >>= 7)
		*p++ = (uint8_t)(u | 0x80);
	*p++ = (uint8_t)u;
	return p;
}

size_t hdr_encode(const struct hdr *h, uint8_t *out)
{
	uint8_t *p = out + HEADER_BYTES;
	unsigned int used = HDR_COUNTS, i = 0;
	double ratio = 1.0;
	uint64_t bits;

	while (used && !h->counts[used - 1])
		used--;
	while (i < used) {
		unsigned int zeros = 0;

		while (!h->counts[i + zeros])
			zeros++;
		if (zeros)
			p = put_leb(p, zeros > 1 ? -(int64_t)zeros : 0);
		i += zeros;
		p = put_leb(p, (int64_t)h->counts[i++]);
	}
	memcpy(&bits, &ratio, sizeof(bits));
	put_be(out, V2_COOKIE, 4);
	put_be(out + 4, (uint64_t)(p - out) - HEADER_BYTES, 4);
	put_be(out + 8, 0, 4); /* normalizing index offset */
	put_be(out + 12, 3, 4);
	put_be(out + 16, 1, 8);
	put_be(out + 24, HDR_HIGHEST, 8);
	put_be(out + 32, bits, 8);
	return (size_t)(p - out);
}
