// Products of many columns with tensor cores. A block computes `M` rows times `N` columns.
//
// Weights are decoded once per block, to f16 in shared memory. `w = factor h`, where the factor of a row is a power of two;
// activations have the same form (`halves.cuh`). Sums are f32, over K in steps of 16. An element has the same bits in
// every column and with every `M` and `N`.

// A column of `N` and a row of `M` have `STEP` elements in shared memory, 64 bytes. Chunks of 16 bytes are permuted so that
// neither stores of a column of chunks nor `ldmatrix` have bank conflicts.
enum { STEP = 32, STEP_BYTES = 64, COPIES = 3 };
DEVICE u32 step_chunk(u32 row, u32 chunk) { return row * STEP_BYTES + (chunk ^ (row >> 1 & 3)) * 16; }

// Returns the row of a weight for a row of the block, or of one of two weights (`which`).
struct OneWeight {
    enum { WEIGHTS = 1 };
    DEVICE u32 which(u32) { return 0; }
    DEVICE u32 row(u32 i) { return i; }
};
// Alternates 16 rows of the first weight and 16 of the second, so a thread has the sums of both.
struct TwoWeights {
    enum { WEIGHTS = 2 };
    DEVICE u32 which(u32 i) { return i >> 4 & 1; }
    DEVICE u32 row(u32 i) { return (i >> 5 << 4) + (i & 15); }
};

// The largest magnitudes of `step (code - ZERO)` and of `least`.
template <class P> struct Magnitudes {
    enum {
        CODE = P::TABLE == 1 || P::LOW == 8 ? 128 : P::TABLE == 2 ? 12 : P::ZERO ? P::ZERO : (1 << (P::LOW + P::HIGH)) - 1,
        STEP = P::STEPS == 0 ? 1 : P::TWO && P::LEAST ? 15 : P::TWO || P::STEPS == 1 ? 128 : 63,
        VALUE = CODE * STEP,
        LEAST = P::LEAST ? (P::STEPS ? STEP : 1) : 0,
    };
};

// Returns a bound of the magnitudes in a row. All lanes of the warp must call it.
template <class P> DEVICE float row_bound(const PlaneRow& row, u32 k) {
    u32 lane = threadIdx.x % 32;
    float most = 0.0f;
    if (P::HEAD == 0) {
        for (u32 i = lane; i < k / 32 * P::STEPS; i += 32) {
            u32 steps = row.steps[i];
            most = fmaxf(most, fabsf(P::step(steps, 0)) * Magnitudes<P>::CODE);
        }
    } else {
        for (u32 i = lane; i < k / 32 / P::SPAN; i += 32) {
            u32 head = P::HEAD == 4 ? load_global((const u32*)row.heads + i) : load_global((const u16*)row.heads + i);
            most = fmaxf(most, fabsf(P::d(head)) * Magnitudes<P>::VALUE + (P::LEAST ? fabsf(P::m(head)) * Magnitudes<P>::LEAST : 0.0f));
        }
    }
    return warp_max(most);
}

// The bytes from which a thread decodes 16 elements of a row: half `which` of a group.
template <class P> struct RawHalf {
    uint4 low;
    u32 high, steps, head;
};
template <class P> DEVICE RawHalf<P> load_half(const PlaneRow& row, u32 pairs, u32 group, u32 which) {
    RawHalf<P> out;
    u32 pair = group / 2, half = group % 2;
    PairTile tile = tile_of(pair / TILE * TILE, pairs);
    u32 in = pair % TILE;
    if (P::LOW == 2) {
        out.low.x = load_global((const u32*)chunk_of<P>(row, tile, in, 0) + 2 * half + which);
    } else {
        out.low = load_global(chunk_of<P>(row, tile, in, P::LOW == 8 ? 2 * half + which : half));
    }
    out.high = P::HIGH ? load_global((const u32*)row.high + group * P::HIGH + (P::HIGH == 2 ? which : 0)) : 0;
    out.steps = P::STEPS == 2 ? load_global((const u16*)row.steps + group) : P::STEPS == 1 ? row.steps[group] : 0;
    u32 head = P::SPAN == 1 ? group : group / P::SPAN;
    out.head = P::HEAD == 4 ? load_global((const u32*)row.heads + head) : P::HEAD == 2 ? load_global((const u16*)row.heads + head) : 0;
    return out;
}

// Decodes 16 elements, times `power`, to two chunks of eight f16.
template <class P> DEVICE void decode_half(const RawHalf<P>& raw, u32 which, float power, const Tables& tables, uint4* chunks) {
    const u32 SIGNED = P::TABLE == 1 || P::LOW == 8 ? 0x80808080u : 0;
    // The bits 0x6400 | code are the f16 number 1024 + code.
    const u32 zero = (u32)f2h(-(1024.0f + (SIGNED ? 128.0f : (float)P::ZERO))) * 0x10001u;
    float d = P::d(raw.head) * power;
    u32 scale = (u32)f2h(d * P::step(raw.steps, which)) * 0x10001u;
    u32 least = P::LEAST ? (u32)f2h(-(P::m(raw.head) * power) * P::least(raw.steps, which)) * 0x10001u : 0;
    u32 out[8];
#pragma unroll
    for (u32 j = 0; j < 4; j++) {
        u32 code;
        if (P::LOW == 8) {
            code = word_in(raw.low, j);
        } else if (P::LOW == 2) {
            code = raw.low.x >> (2 * j) & 0x03030303u;
        } else if (P::TABLE) {
            u32 low, high;
            look_up<P::TABLE>(word_in(raw.low, j) >> (16 * which), tables, &low, &high);
            code = low;
        } else {
            code = word_in(raw.low, j) >> (4 * which) & 0x0f0f0f0fu;
        }
        if (P::HIGH == 1) code |= (raw.high >> (4 * which + j) & 0x01010101u) << P::LOW;
        if (P::HIGH == 2) code |= (raw.high >> (2 * j) & 0x03030303u) << P::LOW;
        code ^= SIGNED;
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            u32 two = add_f16x2(byte_perm(code, 0x64646464u, i ? 0x4342u : 0x4140u), zero);
            out[2 * j + i] = P::LEAST ? fma_f16x2(two, scale, least) : mul_f16x2(two, scale);
        }
    }
    for (u32 i = 0; i < 2; i++) {
        uint4 chunk = {out[4 * i], out[4 * i + 1], out[4 * i + 2], out[4 * i + 3]};
        chunks[i] = chunk;
    }
}

// The sums of a thread: `ROWS` tiles of 16 rows times 4 tiles of 8 columns.
template <int M, int N> struct GemmBlock {
    enum {
        ACROSS = N / 32, THREADS = 64 * ACROSS, ROWS = M / 32, A_BYTES = M * STEP_BYTES, B_BYTES = N * STEP_BYTES,
        SHARED_BYTES = 2 * A_BYTES + COPIES * B_BYTES + M * 4,
    };
    float sums[ROWS][4][4];
};

// The columns of a block: neighbours in a batch.
struct BatchColumns {
    const View* h;
    Column first;
    DEVICE_MEMBER u32 count() const { return h->ne[1] - first.c; }
    DEVICE_MEMBER Column place(u32 n) const {
        Column at = {first.c + n, first.i2, first.i3};
        return at;
    }
    DEVICE_MEMBER const u8* at(u32 n) const { return row_of(*h, first.c + n, first.i2, first.i3); }
};

// The chunks of 16 bytes that a thread copies in each step.
template <int N, int THREADS> struct ColumnCopies {
    enum { EACH = N * 4 / THREADS };
    const u8* from[EACH];
    template <class Columns> DEVICE_MEMBER ColumnCopies(const Columns& columns) {
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 n = threadIdx.x + i * THREADS;
            from[i] = columns.at(min(n / 4, columns.count() - 1)) + n % 4 * 16;
        }
    }
    DEVICE_MEMBER void start(u32 step, u8* to) const {
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            u32 n = threadIdx.x + i * THREADS;
            cp_async16(to + step_chunk(n / 4, n % 4), from[i] + step * STEP_BYTES);
        }
        cp_async_commit();
    }
};

// Multiplies the rows and columns of a step in shared memory. `row` and `column` are the chunks that the lane addresses
// first, as offsets.
template <int M, int N> DEVICE void multiply_step(GemmBlock<M, N>& block, const u8* a, const u8* b, u32 row, u32 column) {
    enum { ROWS = GemmBlock<M, N>::ROWS };
#pragma unroll
    for (u32 half = 0; half < 2; half++) {
        // The chunks of the second half differ in one bit.
        const u8 *rows = a + (row ^ half * 32), *columns = b + (column ^ half * 32);
        u32 left[2][4], right[2][4];
        ldmatrix_x4(left[0], rows);
#pragma unroll
        for (u32 i = 0; i < 2; i++) ldmatrix_x4(right[i], columns + i * 16 * STEP_BYTES);
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            if (i + 1 < ROWS) ldmatrix_x4(left[(i + 1) % 2], rows + (i + 1) * 16 * STEP_BYTES);
#pragma unroll
            for (u32 j = 0; j < 4; j++) mma_m16n8k16_f16(block.sums[i][j], left[i % 2], right[j / 2] + j % 2 * 2);
        }
    }
}

// The rows of one weight, or of two weights that are `apart` views apart.
struct GemmWeights {
    const View* first;
    u32 apart, rows;
    u64 matrix[2];
    template <class P> DEVICE_MEMBER PlaneRow row(u32 which, u32 row) const {
        const View a = first[which * apart];
        return plane_row<P>(a, matrix[which] + min(row, rows - 1));
    }
};

// Computes `M` rows times `N` columns, then calls `put(row, column, sums)` for each row and column of the thread, with
// one sum per weight. All threads of the block must call it. Views are read again after the loop, which saves registers.
template <class P, class Rows, int M, int N, class Columns, class Put>
DEVICE void gemm_block(const GemmWeights& a, u32 top, const Columns& columns, Put put) {
    typedef GemmBlock<M, N> Block;
    DYN_SHARED(u8, memory);
    u8 *left = memory, *right = memory + 2 * Block::A_BYTES;
    float* powers = (float*)(memory + 2 * Block::A_BYTES + COPIES * Block::B_BYTES);
    u32 k = columns.h->ne[0], steps = k / STEP, pairs = pairs_of(*a.first), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // The last block used the same shared memory.
    __syncthreads();
    const ColumnCopies<N, Block::THREADS> copies(columns);
    for (u32 i = 0; i < COPIES - 1; i++) copies.start(min(i, steps - 1), right + i * Block::B_BYTES);
    for (u32 i = warp; i < M; i += Block::THREADS / 32) {
        float power = power_to_2_13(row_bound<P>(a.row<P>(Rows::which(i), top + Rows::row(i)), k));
        if (lane == 0) powers[i] = power;
    }
    __syncthreads();
    // A thread decodes 16 elements of a row in each step. It loads them two steps earlier.
    u32 mine = threadIdx.x / (Block::THREADS / M), part = threadIdx.x % 2;
    float power = powers[mine];
    const PlaneRow at = a.row<P>(Rows::which(mine), top + Rows::row(mine));
    RawHalf<P> even = load_half<P>(at, pairs, 0, part), odd = load_half<P>(at, pairs, min(1u, steps - 1), part);
    // Rows are shorter than 2^31, so this is 0.
    const Tables tables = tables_of<P>(lane & k >> 31);
    auto decode = [&](const RawHalf<P>& raw, u8* to) {
        uint4 chunks[2];
        decode_half<P>(raw, part, power, tables, chunks);
        for (u32 i = 0; i < 2; i++) *(uint4*)(to + step_chunk(mine, 2 * part + i)) = chunks[i];
    };
    decode(even, left);
    even = load_half<P>(at, pairs, min(2u, steps - 1), part);
    Block block;
#pragma unroll
    for (u32 i = 0; i < Block::ROWS; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            for (u32 l = 0; l < 4; l++) block.sums[i][j][l] = 0.0f;
    u32 high = warp / Block::ACROSS * (M / 2), across = warp % Block::ACROSS * 32, slot = 0;
    u32 row_chunk = step_chunk(high + lane % 16, lane / 16), column_chunk = step_chunk(across + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    auto one = [&](u32 step, RawHalf<P>& next, const u8* now, u8* then) {
        cp_async_wait<COPIES - 2>();
        __syncthreads();
        u32 free = slot == 0 ? COPIES - 1 : slot - 1;
        copies.start(min(step + COPIES - 1, steps - 1), right + free * Block::B_BYTES);
        multiply_step<M, N>(block, now, right + slot * Block::B_BYTES, row_chunk, column_chunk);
        decode(next, then);
        next = load_half<P>(at, pairs, min(step + 3, steps - 1), part);
        slot = slot == COPIES - 1 ? 0 : slot + 1;
    };
    for (u32 step = 0; step < steps; step += 2) {
        one(step, odd, left, left + Block::A_BYTES);
        if (step + 1 < steps) one(step + 1, even, left + Block::A_BYTES, left);
    }
    cp_async_wait<0>();
#pragma unroll
    for (u32 n = 0; n < 8; n++) {
        u32 column = across + n / 2 * 8 + lane % 4 * 2 + n % 2;
        if (column >= columns.count()) continue;
        float factor = *factor_at(columns.at(column), k);
#pragma unroll
        for (u32 i = 0; i < Block::ROWS / Rows::WEIGHTS; i++)
#pragma unroll
            for (u32 l = 0; l < 2; l++) {
                u32 row = high + i * 16 * Rows::WEIGHTS + 8 * l + lane / 4;
                float sums[Rows::WEIGHTS];
#pragma unroll
                for (u32 w = 0; w < Rows::WEIGHTS; w++)
                    sums[w] = block.sums[Rows::WEIGHTS * i + w][n / 2][2 * l + n % 2] * inverse_power(powers[row + 16 * w]) * factor;
                u32 to = top + Rows::row(row);
                if (to < a.rows) put(to, column, sums);
            }
    }
}

// Calls `block(top, columns)` for the blocks of a product. Columns of blocks are axis 0 of the grid, so blocks with the
// same weights run together.
template <int EACH, int N, class F> DEVICE void gemm_blocks(u32 rows, const View* h, Blocks b, F block) {
    for (u32 batch = blockIdx.z; batch < h->ne[2] * h->ne[3]; batch += gridDim.z) {
        BatchColumns columns = {h, {0, batch % h->ne[2], batch / h->ne[2]}};
        for (u32 top = b.at * EACH; top < rows; top += b.count * EACH)
            for (columns.first.c = blockIdx.x * N; columns.first.c < h->ne[1]; columns.first.c += gridDim.x * N) block(top, columns);
    }
}

DEVICE Blocks all_row_blocks() {
    Blocks b = {blockIdx.y, gridDim.y};
    return b;
}

template <class P, class E, class Y, int M, int N> DEVICE void gemm_of(const View* a, const View* h, const View* more, const View* y, Blocks b) {
    gemm_blocks<M, N>(a->ne[1], h, b, [&](u32 top, const BatchColumns& columns) {
        const GemmWeights weights = {a, 0, a->ne[1], {matrix_of(*a, *h, columns.first.i2, columns.first.i3), 0}};
        gemm_block<P, OneWeight, M, N>(weights, top, columns, [&](u32 row, u32 n, const float* sums) {
            Column at = columns.place(n);
            float sum = E::of(more, sums[0], row, at);
            Y::put(row_of(*y, at.c, at.i2, at.i3) + (u64)row * y->nb[0], &sum);
        });
    });
}

template <class P, class Y, int M, int N> DEVICE void plane_gemm(const View* v) {
    gemm_of<P, NoEpilogue, Y, M, N>(v, v + 3, nullptr, v + 2, all_row_blocks());
}
template <class P, class E, class Y, int M, int N> DEVICE void plane_gemm_add(const View* v) {
    gemm_of<P, E, Y, M, N>(v, v + 3 + E::OPERANDS, v + 2, v + 2 + E::OPERANDS, all_row_blocks());
}
