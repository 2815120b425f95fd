/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PID 1 of a guest: no root file system, no shell, no modules. It never ends
 * silently: what goes wrong becomes a note, then an end record, then the end of
 * the machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/serial.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "harness.h"
#include "init.h"
#include "readfile.h"

#define VIRTIO_CONSOLE 3
#define PORT_NAME "kdelta"

static void mount_all(void)
{
	static const struct {
		const char *type, *at, *options;
	} all[] = {
		{"proc", "/proc", NULL},
		{"sysfs", "/sys", NULL},
		{"devtmpfs", "/dev", NULL},
		{"tmpfs", "/tmp", NULL},
		{"tracefs", "/sys/kernel/tracing", NULL},
		{"cgroup2", "/sys/fs/cgroup", NULL},
	};
	size_t i;

	/* A kernel may lack any of them; whoever needs one says so. */
	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		mkdir(all[i].at, 0755);
		mount(all[i].type, all[i].at, all[i].type, 0, all[i].options);
	}
}

/* Without devtmpfs there is only what the archive brought. */
static void make_nodes(void)
{
	static const struct {
		const char *path;
		unsigned int major, minor;
	} nodes[] = {
		{"/dev/null", 1, 3},	{"/dev/zero", 1, 5},	{"/dev/random", 1, 8},
		{"/dev/urandom", 1, 9}, {"/dev/kmsg", 1, 11},	{"/dev/ttyS0", 4, 64},
		{"/dev/ttyS1", 4, 65},	{"/dev/console", 5, 1},
	};
	size_t i;

	for (i = 0; i < sizeof(nodes) / sizeof(*nodes); i++)
		mknod(nodes[i].path, S_IFCHR | 0600, makedev(nodes[i].major, nodes[i].minor));
	mkdir("/dev/shm", 01777);
	mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL);
}

/* Standard streams must exist, or the first files opened take their numbers. */
static void standard_streams(void)
{
	int fd = open("/dev/console", O_RDWR);

	if (fd < 0)
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 2)
		fd = dup(fd);
	if (fd > 2)
		close(fd);
	/* Nobody types at the console: a case that read from it would wait for its time limit. */
	fd = open("/dev/null", O_RDONLY);
	if (fd > 2) {
		dup2(fd, 0);
		close(fd);
	}
}

static void raise_limits(void)
{
	static const struct {
		int what;
		rlim_t most;
	} limits[] = {
		{RLIMIT_NOFILE, 1048576},
		{RLIMIT_NPROC, RLIM_INFINITY},
		{RLIMIT_MEMLOCK, RLIM_INFINITY},
		{RLIMIT_SIGPENDING, RLIM_INFINITY},
	};
	size_t i;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++)
		setrlimit(limits[i].what, &(struct rlimit){limits[i].most, limits[i].most});
	write_string("/proc/sys/vm/max_map_count", "16777216");
	/* Warnings still reach the console, as they do from the command line: a WARN is one. */
	write_string("/proc/sys/kernel/printk", "5");
}

/* As on any machine that has booted; a kernel may have no network. */
static void raise_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
}

static bool is_console(const char *tty)
{
	struct text t = {0};
	bool found;

	read_whole("/proc/consoles", &t);
	found = t.s && strstr(t.s, tty);
	text_free(&t);
	return found;
}

/* Nothing may be added, dropped or changed on the way. B0: at the speed that it has. */
static void make_raw(int fd, speed_t speed)
{
	struct termios t;

	if (tcgetattr(fd, &t))
		return;
	cfmakeraw(&t);
	t.c_cflag |= CLOCAL | CREAD;
	t.c_cflag &= ~(tcflag_t)CRTSCTS;
	if (speed != B0)
		cfsetspeed(&t, speed);
	tcsetattr(fd, TCSANOW, &t);
}

/* The UART that is not the console: the second of a PC, the only one of an arm64 guest. */
static int open_uart(void)
{
	static const char *const ttys[] = {"ttyS1", "ttyS0"};
	size_t i;

	for (i = 0; i < sizeof(ttys) / sizeof(*ttys); i++) {
		struct serial_struct info;
		char path[32];
		int fd;

		if (is_console(ttys[i]))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", ttys[i]);
		fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (!ioctl(fd, TIOCGSERIAL, &info) && info.type != PORT_UNKNOWN) {
			fcntl(fd, F_SETFL, 0);
			make_raw(fd, B115200);
			return fd;
		}
		close(fd);
	}
	return -1;
}

static int open_virtio_once(void)
{
	DIR *dir = opendir("/sys/class/virtio-ports");
	struct dirent *e;
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir))) {
		unsigned int major, minor;
		char path[320], line[64];

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", e->d_name);
		if (!read_line(path, line, sizeof(line)) || strcmp(line, PORT_NAME))
			continue;
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/dev", e->d_name);
		if (!read_line(path, line, sizeof(line)) ||
		    sscanf(line, "%u:%u", &major, &minor) != 2)
			continue;
		snprintf(path, sizeof(path), "/dev/%s", e->d_name);
		mknod(path, S_IFCHR | 0600, makedev(major, minor));
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* Whether a virtio console waits for its driver to say which ports it has. */
static bool virtio_console_there(void)
{
	DIR *dir = opendir("/sys/bus/virtio/devices");
	bool found = false;
	struct dirent *e;

	while (dir && !found && (e = readdir(dir))) {
		char path[320], line[32];

		snprintf(path, sizeof(path), "/sys/bus/virtio/devices/%s/device", e->d_name);
		if (read_line(path, line, sizeof(line)))
			found = strtoul(line, NULL, 16) == VIRTIO_CONSOLE;
	}
	if (dir)
		closedir(dir);
	return found && !access("/sys/class/virtio-ports", F_OK);
}

static int open_port(const char **name)
{
	int tries = virtio_console_there() ? 200 : 1, fd = open_virtio_once();

	*name = "virtio";
	while (fd < 0 && --tries) {
		usleep(5000);
		fd = open_virtio_once();
	}
	if (fd >= 0)
		return fd;
	*name = "uart";
	fd = open_uart();
	if (fd >= 0)
		return fd;
	*name = "console";
	return dup(1); /* its reader will find no valid stream there, but a reason */
}

/*
 * A machine that is no guest has one serial line for the console and the
 * records. A message between the bytes of a record would spoil it, so only what
 * ends the kernel is printed; a kernel that locks up panics, and panic= on its
 * command line brings the machine back.
 */
static int open_machine(const char *tty, const char **name)
{
	char path[32];
	int fd;

	write_string("/proc/sys/kernel/printk", "1");
	write_string("/proc/sys/kernel/softlockup_panic", "1");
	write_string("/proc/sys/kernel/hardlockup_panic", "1");
	*name = "console";
	snprintf(path, sizeof(path), "/dev/%s", tty);
	fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return dup(1);
	fcntl(fd, F_SETFL, 0);
	make_raw(fd, B0);
	return fd;
}

/*
 * QEMU runs with -no-reboot, so a reset ends it, on kernels with and without a
 * way to switch the power off (RB_POWER_OFF without one halts for good).
 */
static __attribute__((noreturn)) void end_machine(struct stream *s, bool restored)
{
	stream_end(s);
	if (restored)
		snapshot_end();
	tcdrain(s->fd);
	close(s->fd);
	reboot(RB_AUTOBOOT);
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static int parse(struct jobs *js, const struct text *t, char *why, size_t size)
{
	return jobs_parse(js, t->s ? t->s : "", t->len, why, size);
}

static int load_jobs(struct jobs *js, char *why, size_t size)
{
	struct text t = {0};
	int error = read_whole("/jobs", &t);

	if (error) {
		snprintf(why, size, "/jobs cannot be read: %s", strerror(error));
		return -1;
	}
	error = parse(js, &t, why, size);
	text_free(&t);
	return error;
}

/*
 * The snapshot is taken in here. A restored guest runs the jobs that it finds
 * then, in place of those it booted with; all that does not need to know them
 * has been done before.
 */
static int resumed_jobs(struct supervisor *sv, struct jobs *js, char *why, size_t size)
{
	static struct prepared prepared;
	static struct text t;
	int error;

	sv->prepared = &prepared;
	error = order_prepare() || supervisor_prepare(sv);
	if (error) {
		snprintf(why, size, "no process could be forked ahead: %s", strerror(errno));
		return error;
	}
	error = snapshot_pause(&t, why, size);
	if (error)
		return error;
	jobs_free(js);
	error = parse(js, &t, why, size);
	if (error)
		return error;
	prepared.source = t.s; /* what the child of the first job is told */
	prepared.source_bytes = t.len;
	if (js->turns_ms) /* several CPUs never part: what they would be told moved their turns */
		js->turns_ns = now_ns() + js->turns_ms * 1000000u;
	else if (js->exact && order_part(sv, js, why, size))
		return -1;
	if (js->exact && supervisor_perturb(sv, js->seed)) {
		snprintf(why, size, "the guest cannot be perturbed: %s", strerror(errno));
		return -1;
	}
	if (!js->turns_ms)
		perturb_rest();
	return 0;
}

static void settle(uint64_t ms)
{
	struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

	if (ms)
		nanosleep(&t, NULL);
}

/*
 * Each CPU folds its counts of memory every second (vmstat_update(), mm/vmstat.c), and all guests
 * that are restored from a boot do so at the same instant: in 2 of 20 boots of Debian's 7.3 with
 * 8 CPUs getppid had 24 and 41 % more instructions.
 */
static void fold_no_counts(void)
{
	write_string("/proc/sys/vm/stat_interval", "86400");
}

void init_main(char **argv)
{
	struct stream s = {0};
	struct supervisor sv = {.stream = &s, .data_dir = "/data", .init = true, .argv = argv};
	struct text hello = {0};
	struct jobs js = {0};
	const char *port;
	char why[256];
	int error;

	mount_all();
	make_nodes();
	standard_streams();
	raise_limits();
	raise_loopback();
	error = load_jobs(&js, why, sizeof(why));
	crng_seed(js.seed);
	if (!error && js.scatter) {
		fold_no_counts();
		scatter(js.scatter);
	}
	if (!error && js.snapshot) {
		port = "debugcon";
		s = (struct stream){.fd = -1, .put = snapshot_put};
	} else if (!error && js.port) {
		s.fd = open_machine(js.port, &port);
	} else {
		s.fd = open_port(&port);
	}
	if (!error)
		settle(js.settle_ms);
	supervisor_hello(&sv, port, &hello);
	if (!error && js.snapshot)
		error = resumed_jobs(&sv, &js, why, sizeof(why));
	exact_quiet();
	stream_record(&s, hello.s, hello.len);
	if (!error && js.port)
		supervisor_kernel(&s);
	if (error)
		stream_note(&s, "%s", why);
	else
		supervisor_run(&sv, &js);
	end_machine(&s, sv.prepared);
}
