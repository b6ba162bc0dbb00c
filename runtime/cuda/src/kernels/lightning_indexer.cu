
// A thread scores one cell for one token.
template <class Q, class K, class W, class Y> DEVICE void lightning_indexer(const View* v) {
    const View q = v[0], k = v[1], w = v[2], y = v[3];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        u32 cell = at.i[0], token = at.i[1], stream = at.i[3];
        const u8* key = row_of(k, 0, cell, stream);
        const u8* weights = row_of(w, token, 0, stream);
        float score = 0.0f;
        for (u32 head = 0; head < q.ne[1]; head++) {
            const u8* query = row_of(q, head, token, stream);
            float dot = 0.0f;
            for (u32 d = 0; d < q.ne[0]; d++) dot += element<Q>(q, query, d) * element<K>(k, key, d);
            score += element<W>(w, weights, head) * fmaxf(dot, 0.0f);
        }
        Y::put(address(y, at), &score);
    }
}
