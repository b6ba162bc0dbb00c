// The factors follow, then the first row and the number of rows of each table.
struct NgramParams {
    u32 factors, tables;
    u64 end;
};

// A thread hashes the n-grams that end at one token.
template <class X, class Y> DEVICE void ngram_rows(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const NgramParams p = *(const NgramParams*)params;
    const u64* factors = (const u64*)(params + sizeof(NgramParams));
    const u64* tables = factors + p.factors;
    u32 per_length = p.tables / (p.factors - 1);
    u64 n = (u64)y.ne[1] * y.ne[2];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        u32 token = (u32)(i % y.ne[1]), seq = (u32)(i / y.ne[1]);
        const u8* ids = row_of(x, seq, 0, 0);
        u8* rows = row_of(y, token, seq, 0);
        u64 mixed = 0;
        bool over = false;
        for (u32 j = 0; j < p.factors; j++) {
            float id = element<X>(x, ids, token + p.factors - 1 - j);
            u64 own = id >= 1.0f ? (u64)(id - 1.0f) : p.end;
            over = over || (j > 0 && own == p.end);
            mixed ^= factors[j] * (over ? p.end : own);
            for (u32 g = 0; j > 0 && g < per_length; g++) {
                u32 table = (j - 1) * per_length + g;
                u64 row = tables[2 * table] + mixed % tables[2 * table + 1];
                Y::put_integer(rows + table * y.nb[0], (u32)row);
            }
        }
    }
}
