// Element-wise functions. A thread computes one element at a time. The result may share the memory of an operand.

template <class X, class Y, class F> DEVICE void unary(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const Numbers numbers = *(const Numbers*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place p = place_of(i, y.ne[0], y);
        float out = F::of(element<X>(x, row_of(x, p.i[1], p.i[2], p.i[3]), p.i[0]), numbers);
        Y::put(address(y, p), &out);
    }
}

// Computes `y = f(a, b)`; `b` is broadcast over `a`.
template <class A, class B, class Y, class F> DEVICE void binary(const View* v, const u8* params) {
    const View a = v[0], b = v[1], y = v[2];
    const Numbers numbers = *(const Numbers*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place p = place_of(i, y.ne[0], y);
        float s = element<A>(a, row_of(a, p.i[1], p.i[2], p.i[3]), p.i[0]);
        const u8* row = row_of(b, p.i[1] % b.ne[1], p.i[2] % b.ne[2], p.i[3] % b.ne[3]);
        float out = F::of(s, element<B>(b, row, p.i[0] % b.ne[0]), numbers);
        Y::put(address(y, p), &out);
    }
}

// Computes `y = f(gate, up)` of the two halves of each row.
template <class X, class Y, class F> DEVICE void halves(const View* v, const u8* params) {
    const View x = v[0], y = v[1];
    const Numbers numbers = *(const Numbers*)params;
    u64 n = rows_of(y) * y.ne[0];
    for (u64 i = thread_number(); i < n; i += thread_count()) {
        Place p = place_of(i, y.ne[0], y);
        const u8* row = row_of(x, p.i[1], p.i[2], p.i[3]);
        float out = F::of(element<X>(x, row, p.i[0]), element<X>(x, row, p.i[0] + y.ne[0]), numbers);
        Y::put(address(y, p), &out);
    }
}
