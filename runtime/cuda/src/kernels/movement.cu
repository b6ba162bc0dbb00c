// Moves elements. If types are equal, kernels copy whole blocks and axis 0 counts blocks. Otherwise they convert
// elements.

template <class X> DEVICE u32 blocks_of(const View& x) { return x.ne[0] / X::LEN; }

template <class X, class Y> struct Mover {
    DEVICE void move(const View& x, const Place& from, const View& y, const Place& to) {
        float value = element<X>(x, row_of(x, from.i[1], from.i[2], from.i[3]), from.i[0]);
        Y::put(address(y, to), &value);
    }
};
template <class X> struct Mover<X, X> {
    DEVICE void move(const View& x, const Place& from, const View& y, const Place& to) {
        copy_block<X>(address(y, to), address(x, from));
    }
};

// The unit of a move along axis 0: a block for equal types, otherwise an element.
template <class X, class Y> struct Units {
    enum { LEN = 1 };
    DEVICE u32 of(const View& v) { return v.ne[0]; }
};
template <class X> struct Units<X, X> {
    enum { LEN = X::LEN };
    DEVICE u32 of(const View& v) { return v.ne[0] / X::LEN; }
};

template <class X, class Y> DEVICE void flatten(const View* v) {
    const View x = v[0], y = v[1];
    u32 from = Units<X, Y>::of(x), to = Units<X, Y>::of(y);
    u64 n = rows_of(y) * to;
    for (u64 i = thread_number(); i < n; i += thread_count()) Mover<X, Y>::move(x, place_of(i, from, x), y, place_of(i, to, y));
}

// Permutes axes: axis `i` of `x` becomes axis `axes[i]` of `y`.
template <class X, class Y> DEVICE void permute(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const u32* axes = (const u32*)params;
    u32 units = Units<X, Y>::of(y);
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from;
        for (u32 a = 0; a < 4; a++) from.i[a] = to.i[axes[a]];
        Mover<X, Y>::move(x, from, y, to);
    }
}

// Copies a slice along an axis, from the runtime size of the launch on.
template <class X, class Y> DEVICE void slice(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    u32 axis = *(const u32*)params, start = v[2].ne[0];
    if (axis == 0) start /= Units<X, Y>::LEN;
    u32 units = Units<X, Y>::of(y);
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from = to;
        from.i[axis] += start;
        Mover<X, Y>::move(x, from, y, to);
    }
}

template <class X> DEVICE void repeat(const View* v) {
    const View x = v[0], y = v[1];
    u32 units = blocks_of<X>(y);
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from = to;
        from.i[0] %= blocks_of<X>(x);
        for (u32 a = 1; a < 4; a++) from.i[a] %= x.ne[a];
        Mover<X, X>::move(x, from, y, to);
    }
}

// Concatenates along an axis. The parameters are the axis and the number of operands.
template <class X> DEVICE void concat(const View* v, const u8* params) {
    u32 axis = ((const u32*)params)[0], count = ((const u32*)params)[1];
    const View y = v[count];
    u32 units = blocks_of<X>(y);
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from = to;
        u32 of = 0;
        for (; of + 1 < count; of++) {
            u32 len = axis == 0 ? v[of].ne[0] / X::LEN : v[of].ne[axis];
            if (from.i[axis] < len) break;
            from.i[axis] -= len;
        }
        Mover<X, X>::move(v[of], from, y, to);
    }
}

// Pads with zeros along an axis. The parameters are the axis and the number of blocks before the tensor.
template <class X> DEVICE void pad(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    u32 axis = ((const u32*)params)[0], before = ((const u32*)params)[1];
    u32 units = blocks_of<X>(y), len = axis == 0 ? blocks_of<X>(x) : x.ne[axis];
    u64 n = rows_of(y) * units;
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place to = place_of(i, units, y), from = to;
        if (to.i[axis] < before || to.i[axis] - before >= len) {
            u8* out = address(y, to);
            for (u32 b = 0; b < X::BYTES; b++) out[b] = 0;
            continue;
        }
        from.i[axis] -= before;
        Mover<X, X>::move(x, from, y, to);
    }
}

struct TriParams {
    u64 offset;
    u32 keep; // 0 lower, 1 lower and diagonal, 2 upper, 3 upper and diagonal
    float fill;
};

template <class X, class Y> DEVICE void tri(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const TriParams p = *(const TriParams*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        u64 diagonal = p.offset + at.i[1];
        if (diagonal < p.offset) diagonal = ~0ull;
        bool kept = p.keep == 0 ? at.i[0] < diagonal : p.keep == 1 ? at.i[0] <= diagonal : p.keep == 2 ? at.i[0] > diagonal : at.i[0] >= diagonal;
        float out = kept ? element<X>(x, row_of(x, at.i[1], at.i[2], at.i[3]), at.i[0]) : p.fill;
        Y::put(address(y, at), &out);
    }
}

template <class X, class Y> DEVICE void diag(const View* v) {
    const View x = v[0], y = v[1];
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        float out = at.i[0] == at.i[1] ? element<X>(x, row_of(x, 0, at.i[2], at.i[3]), at.i[0]) : 0.0f;
        Y::put(address(y, at), &out);
    }
}

// Writes the normalised Walsh-Hadamard matrix. The parameter is the absolute value of its elements.
template <class Y> DEVICE void hadamard(const View* v, const u8* params) {
    const View y = v[0];
    float unit = *(const float*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        float out = __popc(at.i[0] & at.i[1]) & 1 ? -unit : unit;
        Y::put(address(y, at), &out);
    }
}

// Writes an arithmetic sequence. The parameters are the first number and the step.
template <class Y> DEVICE void arange(const View* v, const u8* params) {
    const View y = v[0];
    float start = ((const float*)params)[0], step = ((const float*)params)[1];
    // Per run of the device's part: its first element on the device, and over all devices.
    u64 runs = ((const u64*)params)[1];
    const u64* run = (const u64*)params + 2;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place at = place_of(i, y.ne[0], y);
        u64 number = at.i[0];
        for (u64 r = 0; r < runs && run[2 * r] <= at.i[0]; r++) number = run[2 * r + 1] + at.i[0] - run[2 * r];
        float out = start + (float)number * step;
        Y::put(address(y, at), &out);
    }
}
