/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where locks are taken and released, as the plugin reads it. */
#include "target.h"

#include "../../plugin/hold.c"

/* Of QEMU, which nothing here calls. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, vcpu_udata_cb cb,
					    int flags, void *udata)
{
	(void)insn, (void)cb, (void)flags, (void)udata;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	places = xalloc(room = 1, sizeof(*places)); /* to grow within a few lines */
	hold_open(as_file(data, size), "/dev/null");
	for (size_t i = 0; i < n_places; i++)
		HOLDS(places[i].site < n_sites && places[i].group < n_groups);
	if (out)
		fclose(out);
	free(places);
	free(sites);
	free(groups);
	places = NULL;
	sites = NULL;
	groups = NULL;
	out = NULL;
	n_places = room = n_sites = n_groups = 0;
	return 0;
}
