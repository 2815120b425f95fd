/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin's decoder: bytes of the guest's code, of any length. */
#include "../../plugin/kdelta.h"
#include "target.h"

#define LONGEST 15 /* bytes of an instruction; Intel SDM, vol. 2, 2.3.11 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at++) {
		size_t left = size - at < LONGEST ? size - at : LONGEST;
		uint8_t *code = malloc(left);
		struct decoded d;

		HOLDS(code);
		memcpy(code, data + at, left);
		d = decode_x86(code, left, at);
		HOLDS(d.kind != KIND_REP || (d.rep_accesses && d.rep_width && d.rep_width <= 8));
		HOLDS(d.kind != KIND_MARK || d.mark);
		free(code);
		if (at % 4 || size - at < 4)
			continue;
		code = malloc(4);
		HOLDS(code);
		memcpy(code, data + at, 4);
		d = decode_arm64(code, 4, at);
		HOLDS(d.kind != KIND_REP);
		free(code);
	}
	return 0;
}
