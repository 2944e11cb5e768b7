/* Forwards frames between two interfaces, each one later by a fixed time: `delay LEFT RIGHT MICROSECONDS`.
 * Stands in for the kernel's netem, which many kernels lack. Frames keep their virtio header, so that offloads work. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BYTES (70 * 1024)
#define QUEUE_BYTES (256u << 20) /* beyond this, frames are lost, as on a real link */

struct frame { struct frame *next; int64_t due_ns; int to; size_t size; char bytes[]; };

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int open_interface(const char *name) {
    int on = 1, buffer = 16 << 20, fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name)};
    struct packet_mreq promiscuous = {.mr_ifindex = address.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
    if (fd < 0 || !address.sll_ifindex || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on)
        || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous)
        || bind(fd, (struct sockaddr *)&address, sizeof address)) {
        perror(name);
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof buffer);
    return fd;
}

int main(int argc, char **argv) {
    static char bytes[FRAME_BYTES];
    if (argc != 4) return 2;
    struct pollfd ends[2] = {{open_interface(argv[1]), POLLIN, 0}, {open_interface(argv[2]), POLLIN, 0}};
    int64_t delay_ns = atoll(argv[3]) * 1000;
    struct frame *first = NULL, **last = &first;
    size_t queued = 0;
    prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        struct timespec wait = {0, 0}, *timeout = NULL;
        if (first) {
            int64_t left = first->due_ns - now_ns();
            if (left > 0) { wait.tv_sec = left / 1000000000; wait.tv_nsec = left % 1000000000; }
            timeout = &wait;
        }
        if (ppoll(ends, 2, timeout, NULL) < 0) return 1;
        for (int side = 0; side < 2; side++) {
            if (!(ends[side].revents & POLLIN)) continue;
            ssize_t size;
            while ((size = recv(ends[side].fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
                if (queued + size > QUEUE_BYTES) continue;
                struct frame *frame = malloc(sizeof *frame + size);
                if (!frame) return 1;
                frame->next = NULL;
                frame->due_ns = now_ns() + delay_ns;
                frame->to = ends[1 - side].fd;
                frame->size = size;
                memcpy(frame->bytes, bytes, size);
                queued += size;
                *last = frame;
                last = &frame->next;
            }
        }
        for (int64_t now = now_ns(); first && first->due_ns <= now;) {
            struct frame *frame = first;
            if (send(frame->to, frame->bytes, frame->size, 0) < 0) perror("send");
            queued -= frame->size;
            if (!(first = frame->next)) last = &first;
            free(frame);
        }
    }
}
