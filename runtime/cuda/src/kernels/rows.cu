struct WindowParams {
    u32 windowed;
    u32 start;
    u32 len;
};

// Returns the local row of an index; -1 if the index is outside the window. Reports an index out of range.
DEVICE i64 windowed_row(i64 index, const WindowParams& p, u32 bound, Fault* fault, u32 launch) {
    if (index < 0 || (!p.windowed && index >= (i64)bound)) {
        report(fault, launch, index, bound);
        return -1;
    }
    if (!p.windowed) return index;
    i64 local = index - (i64)p.start;
    return local >= 0 && local < (i64)p.len ? local : -1;
}

// Computes `y[:, r, i, j] = x[:, index[r, i, j], i, j]`.
template <class X, class I, class Y> DEVICE void get_rows(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View x = v[0], index = v[1], y = v[2];
    const WindowParams p = *(const WindowParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        i64 id = I::integer(row_of(index, at.i[2], at.i[3], 0) + at.i[1] * index.nb[0]);
        i64 row = windowed_row(id, p, x.ne[1], fault, launch);
        float out = row < 0 ? 0.0f : element<X>(x, row_of(x, (u32)row, at.i[2], at.i[3]), at.i[0]);
        Y::put(address(y, at), &out);
    }
}

template <class X, class I, class Y> DEVICE void get_integers(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View x = v[0], index = v[1], y = v[2];
    const WindowParams p = *(const WindowParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        i64 id = I::integer(row_of(index, at.i[2], at.i[3], 0) + at.i[1] * index.nb[0]);
        i64 row = windowed_row(id, p, x.ne[1], fault, launch);
        Y::put_integer(address(y, at), row < 0 ? 0 : X::integer(row_of(x, (u32)row, at.i[2], at.i[3]) + at.i[0] * x.nb[0]));
    }
}

// Computes `y = x + bias[:, ids]`. Rows outside the window are copied.
template <class X, class B, class I, class Y> DEVICE void add_id(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View x = v[0], bias = v[1], ids = v[2], y = v[3];
    const WindowParams p = *(const WindowParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        i64 id = I::integer(row_of(ids, at.i[2], 0, 0) + at.i[1] * ids.nb[0]);
        i64 row = windowed_row(id, p, bias.ne[1], fault, launch);
        float out = element<X>(x, row_of(x, at.i[1], at.i[2], at.i[3]), at.i[0]);
        if (row >= 0) out += element<B>(bias, row_of(bias, (u32)row, 0, 0), at.i[0]);
        Y::put(address(y, at), &out);
    }
}

// Converts elements of a row of `x`, from `from` on, to a block of type `Y`.
template <class X, class Y> DEVICE void convert(const View& x, const u8* row, u32 from, u8* to) {
    float values[Y::LEN];
    for (u32 j = 0; j < Y::LEN; j++) values[j] = element<X>(x, row, from + j);
    Y::put(to, values);
}

struct SetRowsParams {
    u32 axis;
    CellParts cells;
};

// Writes slices of `dst` along an axis by index. Cells of other parts are skipped. If indices are equal, the last slice wins. `y` is the memory of `dst`.
template <class X, class I, class Y> DEVICE void set_rows(const View* v, const u8* params, Fault* fault, u32 launch) {
    const View x = v[1], index = v[2], y = v[3];
    const SetRowsParams p = *(const SetRowsParams*)params;
    u32 axis = p.axis, blocks = x.ne[0] / Y::LEN;
    u64 n = rows_of(x) * blocks;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, blocks, x);
        const u8* entries = index.at;
        if (axis == 1) entries = row_of(index, at.i[2] % index.ne[1], at.i[3] % index.ne[2], 0);
        i64 named = I::integer(entries + at.i[axis] * index.nb[0]), to = named;
        if (p.cells.of && named >= 0) {
            to = local_cell(named, p.cells);
            if (to < 0) continue;
        }
        if (to < 0 || to >= (i64)y.ne[axis]) {
            report(fault, launch, to, y.ne[axis]);
            continue;
        }
        bool last = true;
        for (u32 j = at.i[axis] + 1; j < x.ne[axis] && last; j++) last = I::integer(entries + j * index.nb[0]) != named;
        if (!last) continue;
        Place there = at;
        there.i[axis] = (u32)to;
        convert<X, Y>(x, row_of(x, at.i[1], at.i[2], at.i[3]), at.i[0] * Y::LEN, address(y, there));
    }
}

// Writes a slice of `dst` along an axis, from the runtime size of the launch on. `y` is the memory of `dst`.
template <class X, class Y> DEVICE void set_slice(const View* v, const u8* params) {
    const View x = v[1], y = v[2];
    u32 axis = *(const u32*)params, start = v[3].ne[0];
    u32 blocks = x.ne[0] / Y::LEN;
    u64 n = rows_of(x) * blocks;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, blocks, x), there = at;
        there.i[axis] += start;
        convert<X, Y>(x, row_of(x, at.i[1], at.i[2], at.i[3]), at.i[0] * Y::LEN, address(y, there));
    }
}
