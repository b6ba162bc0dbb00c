// A fake CUDA driver. Device memory is host memory. Graphs run in the order of their nodes; a kernel node only records
// its launch parameters. The FAKE_ variables, such as FAKE_VERSION and FAKE_DEVICES, set the reported properties.
//
// Copies and graphs run as late as the specification allows. Work of the stream runs when the host waits for it. A copy
// from pageable memory by cuMemcpy lands with the next call on the null stream; the stream, which is non-blocking, does
// not wait for it. An asynchronous copy reads page-locked memory when it runs.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef int R;
typedef uint64_t P;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NO_BINARY = 209, NO_PEER = 217, NOT_READY = 600 };
typedef struct { int kind; void *params[12]; uint64_t bytes[4]; } Node;
struct Copy { size_t sx, sy, sz, sl; int st; void *sh; P sd; void *sa, *r0; size_t sp, shh, dx, dy, dz, dl; int dt; void *dh; P dd; void *da, *r1; size_t dp, dhh, w, h, z; };
typedef struct { long clock; } Event;
typedef struct { Node nodes[64]; struct Copy copies[64]; int count, edges, early, timed, next[64], waits[64]; } Graph;
static long set(const char *name, long otherwise) { const char *v = getenv(name); return v ? atol(v) : otherwise; }
static size_t used;
enum { STREAM = 0x55, MANY = 4096 };
typedef struct { P at; size_t bytes; int device; } Range;
static Range pinned[64], allocated[MANY];
static int pinned_count, allocated_count, current;
typedef struct { int kind; P to, from; size_t bytes; void *staged; Graph *graph; } Op;
static Op late[MANY], queue[MANY];
static int late_count, queue_count;
static int is_pinned(P at, size_t n) {
    for (int i = 0; i < pinned_count; i++) if (at >= pinned[i].at && at + n <= pinned[i].at + pinned[i].bytes) return 1;
    return 0;
}
// The device of an address, or -1 for host memory.
static int owner(P at) {
    for (int i = allocated_count; i-- > 0;) if (at >= allocated[i].at && at < allocated[i].at + allocated[i].bytes) return allocated[i].device;
    return -1;
}
static void land(void) {
    for (int i = 0; i < late_count; i++) memcpy((void *)late[i].to, late[i].staged, late[i].bytes), free(late[i].staged);
    late_count = 0;
}
static void run(Graph *g);
static void copy(P to, P from, size_t n) {
    memmove((void *)to, (void *)from, n);
    int a = owner(to), b = owner(from);
    // Peer copies behind an IOMMU may return other data.
    if (a >= 0 && b >= 0 && a != b && set("FAKE_WRONG_PEERS", 0)) memset((void *)to, 0xff, n < 64 ? n : 64);
}
static void drain(void) {
    for (int i = 0; i < queue_count; i++) {
        Op *o = &queue[i];
        if (o->kind == 1) copy(o->to, o->staged ? (P)o->staged : o->from, o->bytes), free(o->staged);
        else run(o->graph);
    }
    queue_count = 0;
}
R cuInit(unsigned f) { return f ? INVALID : OK; }
R cuDriverGetVersion(int *v) { *v = (int)set("FAKE_VERSION", 13000); return OK; }
R cuDeviceGetCount(int *n) { *n = (int)set("FAKE_DEVICES", 2); return OK; }
R cuDeviceGet(int *d, int i) { *d = 10 + i; return OK; }
R cuDeviceGetName(char *s, int n, int d) { strncpy(s, d == 10 ? "first" : "second", n); return OK; }
R cuDeviceTotalMem_v2(size_t *n, int d) { *n = set("FAKE_MEMORY", 1 << 20); return OK; }
R cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? (int)set("FAKE_MAJOR", 9) : a == 76 ? 0 : a == 16 ? 132 : a == 97 ? 232448 : -1; return OK; }
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(intptr_t)(100 + d); return OK; }
R cuDevicePrimaryCtxRelease_v2(int d) { return OK; }
R cuCtxSetCurrent(void *c) { current = (int)(intptr_t)c - 110; return c ? OK : INVALID; }
R cuCtxEnablePeerAccess(void *c, unsigned f) { return OK; }
R cuDeviceCanAccessPeer(int *can, int a, int b) { *can = (int)set("FAKE_PEERS", 1); return OK; }
R cuMemGetInfo_v2(size_t *f, size_t *t) { *t = set("FAKE_MEMORY", 1 << 20); *f = *t - used; return OK; }
R cuMemAlloc_v2(P *p, size_t n) { if (used + n > set("FAKE_MEMORY", 1 << 20)) return NO_MEMORY; used += n; *p = (P)malloc(n); allocated[allocated_count++] = (Range){*p, n, current}; return OK; }
R cuMemFree_v2(P p) {
    land();
    drain();
    for (int i = 0; i < allocated_count; i++) if (allocated[i].at == p) used -= allocated[i].bytes, allocated[i] = allocated[--allocated_count];
    free((void *)p);
    return OK;
}
R cuMemHostAlloc(void **p, size_t n, unsigned f) { *p = malloc(n); pinned[pinned_count++] = (Range){(P)*p, n, -1}; return f == 3 ? OK : INVALID; }
R cuMemFreeHost(void *p) {
    for (int i = 0; i < pinned_count; i++) if (pinned[i].at == (P)p) pinned[i] = pinned[--pinned_count];
    free(p);
    return OK;
}
R cuMemcpy(P to, P from, size_t n) {
    land();
    if (owner(to) < 0 || is_pinned(from, n)) { copy(to, from, n); return OK; }
    void *staged = memcpy(malloc(n), (void *)from, n);
    late[late_count++] = (Op){1, to, from, n, staged, 0};
    return OK;
}
R cuMemcpyAsync(P to, P from, size_t n, void *stream) {
    if (stream != (void *)STREAM || queue_count == MANY) return INVALID;
    int pageable = owner(from) < 0 && !is_pinned(from, n);
    queue[queue_count++] = (Op){1, to, from, n, pageable ? memcpy(malloc(n), (void *)from, n) : 0, 0};
    return OK;
}
R cuModuleLoadData(void **m, const char *code) { *m = (void *)code; return memcmp(code, "code", 4) && memcmp(code, "\x7f" "ELF", 4) ? NO_BINARY : OK; }
R cuModuleUnload(void *m) { return OK; }
R cuModuleGetFunction(void **f, void *m, const char *name) { *f = (void *)0x77; return strcmp(name, "k") ? NOT_FOUND : OK; }
R cuFuncGetAttribute(int *v, int a, void *f) { *v = a == 0 ? (int)set("FAKE_MAX_THREADS", 1024) : -1; return OK; }
R cuFuncSetAttribute(void *f, int a, int v) { return a == 8 && v <= 232448 ? OK : INVALID; }
R cuStreamCreate(void **s, unsigned f) { *s = (void *)STREAM; return OK; }
R cuStreamDestroy_v2(void *s) { return OK; }
R cuStreamSynchronize(void *s) { drain(); return s == (void *)STREAM ? (R)set("FAKE_SYNCHRONIZE", OK) : INVALID; }
R cuGetErrorString(R r, const char **s) { *s = "a fake error"; return OK; }
R cuGraphCreate(Graph **g, unsigned f) { *g = calloc(1, sizeof(Graph)); return OK; }
R cuGraphDestroy(Graph *g) { free(g); return OK; }
static R add(void **node, Graph *g, int kind, const void *params, size_t n) {
    Node *at = &g->nodes[g->count];
    at->kind = kind;
    if (n) memcpy(at->params, params, n < sizeof at->params ? n : sizeof at->params);
    *node = (void *)(intptr_t)++g->count;
    return OK;
}
struct Kernel { void *f; unsigned g[3], b[3], shared; void **params, **extra, *kern, *ctx; };
// The first argument of a kernel is the address for its launch parameters.
R cuGraphAddKernelNode_v2(void **node, Graph *g, const void *d, size_t n, const struct Kernel *k) {
    R r = add(node, g, 1, k, 0);
    Node *at = &g->nodes[g->count - 1];
    at->bytes[0] = *(uint64_t *)k->params[0];
    at->bytes[1] = *(uint32_t *)k->params[1];
    at->bytes[2] = (uint64_t)k->g[0] * 1000000 + k->b[0] * 1000 + k->shared;
    at->bytes[3] = (uint64_t)k->ctx;
    return k->f == (void *)0x77 ? r : INVALID;
}
R cuGraphAddMemcpyNode(void **node, Graph *g, const void *d, size_t n, const struct Copy *c, void *ctx) {
    g->copies[g->count] = *c;
    return c->st == 4 && c->dt == 4 && c->h == 1 && c->z == 1 && ctx ? add(node, g, 2, 0, 0) : INVALID;
}
struct Set { P to; size_t pitch; unsigned value, size; size_t w, h; };
R cuGraphAddMemsetNode(void **node, Graph *g, const void *d, size_t n, const struct Set *s, void *ctx) { return s->size == 1 && s->h == 1 && ctx ? add(node, g, 3, s, sizeof *s) : INVALID; }
struct Host { void (*f)(void *); void *data; };
R cuGraphAddHostNode(void **node, Graph *g, const void *d, size_t n, const struct Host *h) { return add(node, g, 4, h, sizeof *h); }
R cuEventCreate(Event **e, unsigned f) { *e = calloc(1, sizeof(Event)); return f ? INVALID : OK; }
R cuEventDestroy_v2(Event *e) { free(e); return OK; }
R cuEventElapsedTime(float *ms, Event *from, Event *to) { *ms = (float)(to->clock - from->clock); return from->clock ? OK : NOT_READY; }
R cuGraphAddEventRecordNode(void **node, Graph *g, const void *d, size_t n, Event *e) { g->timed = 1; return add(node, g, 6, &e, sizeof e); }
R cuGraphAddEmptyNode(void **node, Graph *g, const void *d, size_t n) { return add(node, g, 5, 0, 0); }
struct Edge { unsigned char from, to, type, rest[5]; };
R cuGraphAddDependencies_v2(Graph *g, void *const *from, void *const *to, const struct Edge *e, size_t n) {
    g->edges += (int)n;
    g->early += e->type == 1 && e->from == 1;
    g->next[(intptr_t)*from - 1] = (int)(intptr_t)*to;
    g->waits[(intptr_t)*to - 1] = 1;
    return n == 1 && (e->type == 1) == (e->from == 1) ? OK : INVALID;
}
R cuGraphInstantiateWithFlags(Graph **x, Graph *g, unsigned long long f) { *x = malloc(sizeof(Graph)); **x = *g; return OK; }
R cuGraphExecDestroy(Graph *g) { drain(); free(g); return OK; }
static long clock_ms = 1;
// Graphs with events are sequences: the first node has no edge to it. A kernel takes 3 ms, any other node 1 ms.
static void run(Graph *g) {
    int at = 0;
    while (g->timed && at < g->count && g->waits[at]) at++;
    for (int k = 0; k < g->count; k++) {
        int i = g->timed ? at : k;
        Node *n = &g->nodes[i];
        if (g->timed) at = g->next[i] - 1;
        if (n->kind == 6) ((Event *)n->params[0])->clock = clock_ms;
        else clock_ms += n->kind == 1 ? 3 : 1;
        uint64_t *to = (uint64_t *)n->bytes[0];
        if (n->kind == 1) to[0] = n->bytes[1], to[1] = n->bytes[2], to[2] = n->bytes[3], to[3] = g->edges * 100 + g->early;
        if (n->kind == 2) copy(g->copies[i].dd, g->copies[i].sd, g->copies[i].w);
        if (n->kind == 3) { struct Set *s = (void *)n->params; memset((void *)s->to, (int)s->value, s->w); }
        if (n->kind == 4) { struct Host *h = (void *)n->params; h->f(h->data); }
    }
}
R cuGraphLaunch(Graph *g, void *stream) {
    queue[queue_count++] = (Op){2, 0, 0, 0, 0, g};
    return stream == (void *)STREAM ? OK : INVALID;
}
