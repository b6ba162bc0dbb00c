// Collectives. A device reads the operands of all devices and writes its own result, the last view.

struct CollectiveParams {
    u32 count; // participants
    u32 axis;  // the axis along which the device's part of the operands begins at `start`
    u32 start;
    u32 join; // the axis of the concatenation
};

// Adds the operands in a binary tree: devices 0 and 1, devices 2 and 3, then these sums.
DEVICE void sum_parts(const View* v, const u8* params) {
    const CollectiveParams p = *(const CollectiveParams*)params;
    const View y = v[p.count];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, y.ne[0], y), from = to;
        from.i[p.axis] += p.start;
        float waiting[8];
        u32 depth = 0;
        for (u32 d = 0; d < p.count; d++) {
            float x = *(const float*)address(v[d], from);
            for (u32 carried = d + 1; carried % 2 == 0; carried /= 2) x += waiting[--depth];
            waiting[depth++] = x;
        }
        float sum = waiting[--depth];
        while (depth > 0) sum += waiting[--depth];
        *(float*)address(y, to) = sum;
    }
}

// Concatenates this device's part of each operand.
template <class X> DEVICE void join_parts(const View* v, const u8* params) {
    const CollectiveParams p = *(const CollectiveParams*)params;
    const View y = v[p.count];
    u32 units = y.ne[0] / X::LEN;
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from = to;
        u32 of = 0;
        for (; of + 1 < p.count; of++) {
            u32 len = p.join == 0 ? v[of].ne[0] / X::LEN : v[of].ne[p.join];
            if (from.i[p.join] < len) break;
            from.i[p.join] -= len;
        }
        from.i[p.axis] += p.start;
        copy_block<X>(address(y, to), address(v[of], from));
    }
}
