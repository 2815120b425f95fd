/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream.h"

void text_free(struct text *t)
{
	free(t->s);
	*t = (struct text){0};
}

static bool text_room(struct text *t, size_t n)
{
	size_t cap = t->cap ? t->cap : 256;
	char *grown;

	if (t->lost)
		return false;
	while (cap - t->len <= n)
		cap *= 2;
	if (cap == t->cap)
		return true;
	grown = realloc(t->s, cap);
	if (!grown) {
		t->lost = true;
		return false;
	}
	t->s = grown;
	t->cap = cap;
	return true;
}

void text_bytes(struct text *t, const char *s, size_t n)
{
	if (!text_room(t, n))
		return;
	if (n)
		memcpy(t->s + t->len, s, n);
	t->len += n;
	t->s[t->len] = '\0';
}

static void text_vput(struct text *t, const char *fmt, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0 || !text_room(t, (size_t)n))
		return;
	vsnprintf(t->s + t->len, (size_t)n + 1, fmt, args);
	t->len += (size_t)n;
}

void text_put(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text_vput(t, fmt, args);
	va_end(args);
}

/* One code point of UTF-8 from s; its length in *n. U+FFFD and 1 for a byte that starts none. */
static uint32_t utf8_next(const unsigned char *s, size_t *n)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t want = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc2 ? 2 : 0, i;
	uint32_t c;

	*n = 1;
	if (s[0] < 0x80)
		return s[0];
	if (!want || s[0] > 0xf4)
		return 0xfffd;
	c = s[0] & (0xffu >> (want + 1));
	for (i = 1; i < want; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0xfffd;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[want] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0xfffd;
	*n = want;
	return c;
}

void text_json(struct text *t, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n;

	text_bytes(t, "\"", 1);
	for (; *p; p += n) {
		uint32_t c = utf8_next(p, &n);

		if (c == '"' || c == '\\')
			text_put(t, "\\%c", (int)c);
		else if (c >= 0x20 && c < 0x7f)
			text_put(t, "%c", (int)c);
		else if (c < 0x10000)
			text_put(t, "\\u%04" PRIx32, c);
		else
			text_put(t, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((c - 0x10000) >> 10),
				 0xdc00 + ((c - 0x10000) & 0x3ff));
	}
	text_bytes(t, "\"", 1);
}

void text_number(struct text *t, double v)
{
	if (isfinite(v))
		text_put(t, "%.17g", v);
	else
		text_put(t, "null");
}

void text_base64(struct text *t, const uint8_t *data, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t i;

	for (i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)data[i] << 16;
		char four[4];

		v |= i + 1 < n ? (uint32_t)data[i + 1] << 8 : 0;
		v |= i + 2 < n ? data[i + 2] : 0;
		four[0] = digit[v >> 18];
		four[1] = digit[v >> 12 & 63];
		four[2] = i + 1 < n ? digit[v >> 6 & 63] : '=';
		four[3] = i + 2 < n ? digit[v & 63] : '=';
		text_bytes(t, four, sizeof(four));
	}
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t n)
{
	const uint8_t *p = data;
	int bit;

	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

int write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done > 0) {
			p += done;
			n -= (size_t)done;
		} else if (done < 0 && errno == EAGAIN) {
			poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 100);
		} else if (done < 0 && errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

void stream_record(struct stream *s, const char *json, size_t n)
{
	struct text line = {0};
	char seq[24];
	int digits = snprintf(seq, sizeof(seq), "%" PRIu64 " ", s->seq);
	uint32_t crc = crc32_update(crc32_update(0, seq, (size_t)digits), json, n);

	if (s->error)
		return;
	text_put(&line, "kd1 %" PRIu64 " %08" PRIx32 " ", s->seq, crc);
	text_bytes(&line, json, n);
	text_bytes(&line, "\n", 1);
	if (line.lost)
		s->error = ENOMEM;
	else
		s->error = s->put ? s->put(line.s, line.len) : write_all(s->fd, line.s, line.len);
	s->seq++;
	text_free(&line);
}

void stream_note(struct stream *s, const char *fmt, ...)
{
	struct text plain = {0}, json = {0};
	va_list args;

	va_start(args, fmt);
	text_vput(&plain, fmt, args);
	va_end(args);
	text_put(&json, "{\"t\":\"note\",\"text\":");
	text_json(&json, plain.s ? plain.s : "");
	text_put(&json, "}");
	if (!json.lost)
		stream_record(s, json.s, json.len);
	text_free(&plain);
	text_free(&json);
}

void stream_end(struct stream *s)
{
	char json[64];
	int n = snprintf(json, sizeof(json), "{\"t\":\"end\",\"records\":%" PRIu64 "}", s->seq);

	stream_record(s, json, (size_t)n);
}
