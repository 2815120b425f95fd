/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A histogram of latencies, 1 ns .. 60 s with 3 significant digits, in the
 * layout and the V2 encoding of HdrHistogram (AbstractHistogram.java,
 * encodeIntoByteBuffer: big-endian header, ZigZag LEB128 counts, a negative
 * count stands for a run of zeros).
 */
#ifndef KDELTA_HDR_H
#define KDELTA_HDR_H

#include <stddef.h>
#include <stdint.h>

#define HDR_HIGHEST 60000000000ull /* ns */
#define HDR_HALF_BITS 10	   /* half a bucket: 3 digits need 2000 sub-buckets, so 2048 */
#define HDR_COUNTS \
	(27u << HDR_HALF_BITS) /* 26 buckets reach 2^36 ns, and the first has two halves */

struct hdr {
	uint64_t total;
	uint64_t counts[HDR_COUNTS];
};

/* Values outside the range count as its end. */
void hdr_record(struct hdr *h, uint64_t value_ns);
/* A bound of what hdr_encode() writes. */
size_t hdr_encoded_max(void);
/* Writes the V2 payload to `out`; returns its length. */
size_t hdr_encode(const struct hdr *h, uint8_t *out);

#endif
