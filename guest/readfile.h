/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small files of proc and sys, and whole job lists. */
#ifndef KDELTA_READFILE_H
#define KDELTA_READFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text;

/* The first line without its newline; false and buf unchanged where it cannot be read. */
bool read_line(const char *path, char *buf, size_t size);
/* Field nr (from 0) of the first line as a number, -1 where there is none. */
int64_t read_field(const char *path, unsigned int nr);
/* Whole file appended to t; 0 or errno. */
int read_whole(const char *path, struct text *t);
/* 0 or errno. */
int write_string(const char *path, const char *s);

#endif
