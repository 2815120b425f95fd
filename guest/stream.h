/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The record stream (ARCHITECTURE.md, "Contract: records"). One process owns
 * it: a case hands its records over a pipe, so that killing it at any instant
 * leaves a valid stream.
 */
#ifndef KDELTA_STREAM_H
#define KDELTA_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A string that grows. Running out of memory sets `lost`; what follows is dropped. */
struct text {
	char *s;
	size_t len, cap;
	bool lost;
};

void text_free(struct text *t);
void text_bytes(struct text *t, const char *s, size_t n);
void text_put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes, ASCII only; bytes that are not UTF-8 become U+FFFD. */
void text_json(struct text *t, const char *s);
/* A JSON number, or null where the value is not finite. */
void text_number(struct text *t, double v);
void text_base64(struct text *t, const uint8_t *data, size_t n);

/* The CRC-32 of zlib; `crc` is 0 or the result so far. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t n);

struct stream {
	int fd;
	/* Where it does not go to fd: writes all of it, or returns errno. */
	int (*put)(const void *data, size_t n);
	uint64_t seq;
	int error; /* errno of the first write that failed, 0 while all is well */
};

/* Frames one JSON object and writes it out. */
void stream_record(struct stream *s, const char *json, size_t n);
void stream_note(struct stream *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void stream_end(struct stream *s);
/* All of it, or errno. */
int write_all(int fd, const void *data, size_t n);

#endif
