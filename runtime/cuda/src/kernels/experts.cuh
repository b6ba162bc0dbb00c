struct ProductParams {
    u32 lanes;
    u32 start; // the first expert of the window; `len` is the number of experts
    u32 len;
    u32 windowed;
};

struct Entry {
    u32 slot, token;
    u8* out;
};

// True if an entry chose an expert in the window of this device; writes the index within the window to `expert`. If
// `told` is set, this thread reports an index out of range.
template <class I>
DEVICE bool find_expert(const View& a, const View& ids, const ProductParams& p, u32 slot, u32 token, bool told, Fault* fault, u32 launch, u64* expert) {
    i64 id = I::integer(row_of(ids, token, 0, 0) + slot * ids.nb[0]);
    i64 own = id - (i64)p.start;
    bool wrong = id < 0 || (!p.windowed && id >= (i64)a.ne[2]);
    if (wrong && told) report(fault, launch, id, a.ne[2]);
    *expert = (u64)own;
    return !wrong && own >= 0 && !(p.windowed && own >= (i64)p.len);
}

// Does the same. If the entry chose no expert of the window, sets the result to 0.
template <class I, class Y>
DEVICE bool find_expert_or_clear(const View& a, const View& ids, const View& y, const ProductParams& p, const Entry& entry, Fault* fault, u32 launch, u64* expert) {
    bool told = threadIdx.x == 0 && blockIdx.x == 0;
    if (find_expert<I>(a, ids, p, entry.slot, entry.token, told, fault, launch, expert)) return true;
    float zero = 0.0f;
    for (u32 i = (u32)thread_number(); i < y.ne[0]; i += (u32)thread_count()) Y::put(entry.out + i * y.nb[0], &zero);
    return false;
}

DEVICE Entry entry_of(const View& ids, const View& y, u32 n) {
    Entry entry = {n % ids.ne[0], n / ids.ne[0], nullptr};
    entry.out = row_of(y, entry.slot, entry.token, 0);
    return entry;
}
