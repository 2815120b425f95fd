/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The smallest programs that execve(2) takes, made in memory: they exit with 0 and do nothing else. */
#ifndef KDELTA_SYSCALLS_PROGRAM_H
#define KDELTA_SYSCALLS_PROGRAM_H

#include <elf.h>

#include "parts.h"

#if defined(__x86_64__)
#define PROGRAM_MACHINE EM_X86_64
static const uint8_t program_code[] = {
	0xb8, 0x3c, 0, 0, 0, /* mov $SYS_exit, %eax */
	0x31, 0xff,	     /* xor %edi, %edi */
	0x0f, 0x05,	     /* syscall */
};
#elif defined(__aarch64__)
#define PROGRAM_MACHINE EM_AARCH64
static const uint32_t program_code[] = {
	0xd2800000, /* mov x0, #0 */
	0xd2800ba8, /* mov x8, #SYS_exit */
	0xd4000001, /* svc #0 */
};
#endif

/* A position-independent program; with an interpreter, that is what runs. */
static inline void program(struct wl_task *t, const char *name, const char *interpreter)
{
	struct {
		Elf64_Ehdr e;
		Elf64_Phdr load, interp;
		uint8_t code[sizeof(program_code)];
		char path[64];
	} p = {
		.e = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				  EV_CURRENT},
		      .e_type = ET_DYN,
		      .e_machine = PROGRAM_MACHINE,
		      .e_version = EV_CURRENT,
		      .e_entry = offsetof(__typeof__(p), code),
		      .e_phoff = sizeof(Elf64_Ehdr),
		      .e_ehsize = sizeof(Elf64_Ehdr),
		      .e_phentsize = sizeof(Elf64_Phdr),
		      .e_phnum = interpreter ? 2 : 1},
		.load = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_filesz = sizeof(p),
			 .p_memsz = sizeof(p),
			 .p_align = PAGE},
		.interp = {.p_type = PT_INTERP, .p_offset = offsetof(__typeof__(p), path)},
	};
	int made = OK(open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700));

	memcpy(p.code, program_code, sizeof(program_code));
	if (interpreter) {
		snprintf(p.path, sizeof(p.path), "%s", interpreter);
		p.interp.p_filesz = strlen(interpreter) + 1;
	}
	EXPECT(write(made, &p, sizeof(p)) == sizeof(p));
	OK(close(made));
	NEED("CONFIG_BINFMT_ELF", access(name, X_OK));
}

#endif
