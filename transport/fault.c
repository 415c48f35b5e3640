/* fault.c - a transport that wraps the others and makes them fail, for tests: DENIZEN_FAULT is a list of
 *
 *   post=N    every Nth message finds no room (-EAGAIN)
 *   part=N    every Nth partition finds no room
 *   start=N   every Nth look whether an epoch may go says no
 *   get       nothing can be fetched or put: long messages are streamed
 *   open=N    every Nth end of a channel finds no memory
 *   dead=N    a peer is gone after N messages and partitions to it
 *
 * What is refused has not happened. Counted per process, so that a run repeats; threads share the counts. Where the
 * setting is empty nothing of this is in the way. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/transport.h"

enum { SLOTS = 4 }; /* transports that can be wrapped */

static const struct dz_transport *inner[SLOTS];
static struct dz_transport outer[SLOTS];
static struct fault {
    const char *name;
    bool counted;
    long every; /* 0: off */
    _Atomic long seen;
} post = {.name = "post", .counted = true}, part = {.name = "part", .counted = true},
  start = {.name = "start", .counted = true}, get = {.name = "get"}, open_end = {.name = "open", .counted = true},
  dead = {.name = "dead", .counted = true};
static struct fault *const faults[] = {&post, &part, &start, &get, &open_end, &dead};
enum { FAULTS = sizeof faults / sizeof *faults };
static _Atomic long *uses; /* of each peer */

static bool strikes(struct fault *f)
{
    return f->every && (atomic_fetch_add_explicit(&f->seen, 1, memory_order_relaxed) + 1) % f->every == 0;
}

static bool gone(const struct dz_peer *peer)
{
    return dead.every && atomic_load_explicit(&uses[peer->rank], memory_order_relaxed) >= dead.every;
}

static bool used(const struct dz_peer *peer)
{
    if (gone(peer))
        return true;
    if (dead.every)
        atomic_fetch_add_explicit(&uses[peer->rank], 1, memory_order_relaxed);
    return false;
}

/* The operations that can fail, once for each wrapped transport: a channel does not say whose it is. */
#define WRAPPED(i)                                                                                                   \
    static int am_post_##i(struct dz_peer *p, const struct dz_am *am, const struct dz_view *v, size_t off, size_t n) \
    {                                                                                                                \
        return used(p) ? -EHOSTDOWN : strikes(&post) ? -EAGAIN : inner[i]->am_post(p, am, v, off, n);                \
    }                                                                                                                \
    static int get_##i(struct dz_peer *p, uint64_t raddr, const struct dz_view *v, size_t off, size_t n)             \
    {                                                                                                                \
        return get.every ? -ENOTSUP : inner[i]->get(p, raddr, v, off, n);                                            \
    }                                                                                                                \
    static int expose_##i(struct dz_peer *p, const struct dz_view *v, size_t n, struct dz_landing *at, void **h)     \
    {                                                                                                                \
        return get.every ? -ENOTSUP : inner[i]->expose(p, v, n, at, h);                                              \
    }                                                                                                                \
    static bool dead_##i(struct dz_peer *p)                                                                          \
    {                                                                                                                \
        return gone(p) || inner[i]->dead(p);                                                                         \
    }                                                                                                                \
    static int send_open_##i(struct dz_peer *p, const struct dz_chan_desc *d, struct dz_schan **s, void *b, size_t *n) \
    {                                                                                                                \
        return strikes(&open_end) ? -ENOMEM : inner[i]->send_open(p, d, s, b, n);                                    \
    }                                                                                                                \
    static int recv_open_##i(struct dz_peer *p, const struct dz_chan_desc *own, const struct dz_chan_desc *remote,   \
                             const void *b, size_t n, struct dz_rchan **r, void *reply, size_t *rn)                  \
    {                                                                                                                \
        return strikes(&open_end) ? -ENOMEM : inner[i]->recv_open(p, own, remote, b, n, r, reply, rn);               \
    }                                                                                                                \
    static int send_start_##i(struct dz_schan *s, uint64_t epoch)                                                    \
    {                                                                                                                \
        return strikes(&start) ? -EAGAIN : inner[i]->send_start(s, epoch);                                           \
    }                                                                                                                \
    static int send_part_##i(struct dz_schan *s, uint32_t p, uint64_t epoch)                                         \
    {                                                                                                                \
        return strikes(&part) ? -EAGAIN : inner[i]->send_part(s, p, epoch);                                          \
    }                                                                                                                \
    static uint32_t send_list_##i(struct dz_schan *s, const uint32_t *parts, uint32_t n, uint64_t epoch, int *rc)    \
    {                                                                                                                \
        uint32_t some = 0;                                                                                           \
        while (some < n && !strikes(&part))                                                                          \
            some++;                                                                                                  \
        uint32_t given = some ? inner[i]->send_list(s, parts, some, epoch, rc) : 0;                                  \
        if (given == some && some < n)                                                                               \
            *rc = -EAGAIN;                                                                                           \
        return given;                                                                                                \
    }                                                                                                                \
    static void wrap_##i(void)                                                                                       \
    {                                                                                                                \
        outer[i] = *inner[i];                                                                                        \
        outer[i].am_post = am_post_##i;                                                                              \
        outer[i].get = get_##i;                                                                                      \
        outer[i].expose = expose_##i;                                                                                \
        outer[i].dead = dead_##i;                                                                                    \
        outer[i].send_open = send_open_##i;                                                                          \
        outer[i].recv_open = recv_open_##i;                                                                          \
        outer[i].send_start = send_start_##i;                                                                        \
        outer[i].send_part = send_part_##i;                                                                          \
        outer[i].send_list = send_list_##i;                                                                          \
    }
WRAPPED(0)
WRAPPED(1)
WRAPPED(2)
WRAPPED(3)
static void (*const wrap[SLOTS])(void) = {wrap_0, wrap_1, wrap_2, wrap_3};

static int refuse(const char *word, size_t n)
{
    snprintf(dz_boot_error, sizeof dz_boot_error, "DENIZEN_FAULT: '%.*s' is none of post=N, part=N, start=N, get, open=N, "
             "dead=N with N from 1 on", (int)n, word);
    return -EINVAL;
}

static int read_word(const char *word, size_t n)
{
    for (int i = 0; i < FAULTS; i++) {
        struct fault *f = faults[i];
        size_t len = strlen(f->name);
        if (n < len || memcmp(word, f->name, len) != 0)
            continue;
        if (!f->counted && n == len) {
            f->every = 1;
            return 0;
        }
        char *end;
        if (f->counted && n > len + 1 && word[len] == '=' && (f->every = strtol(word + len + 1, &end, 10)) > 0 &&
            end == word + n)
            return 0;
    }
    return refuse(word, n);
}

int dz_fault_init(void)
{
    for (const char *p = dz_set.fault; *p;) {
        size_t n = strcspn(p, ",");
        int rc = read_word(p, n);
        if (rc)
            return rc;
        p += n + (p[n] == ',');
    }
    if (*dz_set.fault && !(uses = calloc((size_t)dz_boot.size, sizeof *uses)))
        return -ENOMEM;
    return 0;
}

const struct dz_transport *dz_fault_wrap(const struct dz_transport *t)
{
    for (int i = 0; *dz_set.fault && i < SLOTS; i++) {
        if (!inner[i]) {
            inner[i] = t;
            wrap[i]();
        }
        if (inner[i] == t)
            return &outer[i];
    }
    return t;
}

void dz_fault_fini(void)
{
    free(uses);
    uses = NULL;
}
