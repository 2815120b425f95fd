/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A target without libFuzzer, for make test: tries the files that it is given. */
#include "target.h"

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		FILE *in = fopen(argv[i], "rb");
		uint8_t *data = malloc(1 << 20);
		size_t size = in && data ? fread(data, 1, 1 << 20, in) : 0;
		uint8_t *exact = malloc(size ? size : 1);

		if (!in || !exact)
			return 2;
		fclose(in);
		memcpy(exact, data, size); /* so that the sanitizer sees the end */
		free(data);
		fprintf(stderr, "%s\n", argv[i]); /* the last one is the one that broke it */
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	return 0;
}
