/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of the kernel that any process may have, one at a time: what a seed makes, keeps and
 * ends, so that the next ones lie elsewhere. Each maker returns a file, or a process, or -1.
 */
#ifndef KDELTA_OBJECTS_H
#define KDELTA_OBJECTS_H

int object_file(unsigned int nr);  /* a struct file alone */
int object_memfd(unsigned int nr); /* with an inode of tmpfs and a name */
int object_pipe(unsigned int nr);
int object_socket(unsigned int nr);
int object_packet(unsigned int nr); /* a socket with a number for each CPU */
int object_eventfd(unsigned int nr);
int object_epoll(unsigned int nr);
int object_timerfd(unsigned int nr);
int object_signalfd(unsigned int nr);
int object_inotify(unsigned int nr);
int object_cached(unsigned int nr);  /* an inode, a page, and the nodes that find it */
int object_mapping(unsigned int nr); /* and the nodes that find it; stays, returns 0 */
void object_close(int fd);
int object_process(unsigned int nr); /* a task, its memory, mappings, signals, files */
#define TASKS 16
int object_task(unsigned int nr); /* nr < TASKS: a task and its signals; the rest is its maker's */
void object_end_process(int pid);

#endif
