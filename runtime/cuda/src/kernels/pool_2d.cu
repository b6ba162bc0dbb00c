struct PoolParams {
    u32 window[2], stride[2], pad[2];
    u32 mean;
};

template <class X, class Y> DEVICE void pool_2d(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const PoolParams p = *(const PoolParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        float most = -3.402823466e38f, sum = 0.0f;
        for (u32 b = 0; b < p.window[1]; b++) {
            i64 row = (i64)at.i[1] * p.stride[1] + b - p.pad[1];
            if (row < 0 || row >= (i64)x.ne[1]) continue;
            for (u32 a = 0; a < p.window[0]; a++) {
                i64 column = (i64)at.i[0] * p.stride[0] + a - p.pad[0];
                if (column < 0 || column >= (i64)x.ne[0]) continue;
                float e = element<X>(x, row_of(x, (u32)row, at.i[2], at.i[3]), (u32)column);
                most = fmaxf(most, e);
                sum += e;
            }
        }
        float out = p.mean ? sum / (float)((u64)p.window[0] * p.window[1]) : most;
        Y::put(address(y, at), &out);
    }
}
