// Activations as f16, for products of many columns: `x = factor h`, where the factor of a column is a power of two.
//
// A column has its elements, then the factor. The largest element is at least 2^13, so elements of every magnitude keep
// 11 bits. If a column has infinities or NaNs, its factor is NaN.

// Returns the power of two that brings `largest` to at least 2^13 and below 2^14, as far as it and its inverse are
// normal numbers.
DEVICE float power_to_2_13(float largest) {
    i32 exponent = 267 - (i32)(f2u(largest) >> 23 & 0xff);
    return u2f((u32)min(max(exponent, 14), 240) << 23);
}
DEVICE float inverse_power(float power) { return u2f((254u << 23) - f2u(power)); }

DEVICE const float* factor_at(const u8* column, u32 k) { return (const float*)(column + 2 * (u64)k); }

// One block per column.
template <class X> DEVICE void halves(const View* v) {
    const View x = v[0], h = v[1];
    u32 k = x.ne[0];
    for (u64 n = blockIdx.x; n < rows_of(x); n += gridDim.x) {
        Place at = place_of(n, 1, x);
        const u8* row = row_of(x, at.i[1], at.i[2], at.i[3]);
        u8* column = row_of(h, at.i[1], at.i[2], at.i[3]);
        float largest = 0.0f;
        for (u32 i = threadIdx.x; i < k; i += blockDim.x) {
            float size = fabsf(element<X>(x, row, i));
            // Treat NaN like infinity.
            largest = size <= largest ? largest : size == size ? size : u2f(0x7f800000u);
        }
        largest = block_max(largest);
        bool finite = largest < u2f(0x7f800000u);
        float power = power_to_2_13(largest);
        for (u32 i = threadIdx.x * 2; i < k; i += blockDim.x * 2) {
            u32 low = finite ? f2h(element<X>(x, row, i) * power) : 0, high = finite ? f2h(element<X>(x, row, i + 1) * power) : 0;
            *(u32*)(column + 2 * (u64)i) = low | high << 16;
        }
        if (threadIdx.x == 0) *(float*)factor_at(column, k) = finite ? inverse_power(power) : u2f(0x7fc00000u);
        __syncthreads();
    }
}
