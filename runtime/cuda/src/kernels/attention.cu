struct AttentionParams {
    float scale;
    float softcap;
    u32 sinks;
    u32 unused;
    // The slope of each head follows.
};

// A block computes one token and query head. Its warps take turns with 32 cells: each lane scores one cell, then each
// lane adds the values of all cells for its own columns. At the end, the block combines the results of its warps.
//
// Shared memory holds the query and 32 scores per warp, later the maximum, sum and values of each warp.
//
// `T` is `PLAIN`, `WITH_TERMS` or `WITH_LSE`. A column of terms has all heads of a token in order.
template <class Q, class K, class V, class M, class S, class Y, int T> DEVICE void flash_attn(const View* v, const u8* params) {
    DYN_SHARED(float, shared);
    const View q = v[0], k = v[1], val = v[2], mask = v[3];
    const AttentionParams p = *(const AttentionParams*)params;
    const View y = v[p.sinks ? 5 : 4], made = v[(p.sinks ? 5 : 4) + (T == WITH_TERMS)];
    const float* slopes = (const float*)(params + sizeof(AttentionParams));
    u32 dk = q.ne[0], tokens = q.ne[1], heads = q.ne[2], streams = q.ne[3], cells = k.ne[1], dv = val.ne[0];
    u32 warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float* query = shared;
    float* scores = query + dk + warp * 32;
    float* ends = query + dk + warps * 32;
    float* values = ends + 2 * warps;
    float* own = values + warp * dv;
    u64 units = (u64)tokens * heads * streams;
    for (u64 unit = blockIdx.x; unit < units; unit += gridDim.x) {
        u32 head = (u32)(unit % heads), token = (u32)(unit / heads % tokens), stream = (u32)(unit / heads / tokens);
        u32 kv = head / (heads / k.ne[2]);
        __syncthreads();
        const u8* from = row_of(q, token, head, stream);
        for (u32 i = threadIdx.x; i < dk; i += blockDim.x) query[i] = element<Q>(q, from, i);
        for (u32 i = lane; i < dv; i += 32) own[i] = 0.0f;
        __syncthreads();
        const u8* seen = row_of(mask, token, head % mask.ne[2], stream % mask.ne[3]);
        float most = minus_infinity(), sum = 0.0f, slope = slopes[head];
        for (u32 first = warp * 32; first < cells; first += warps * 32) {
            u32 cell = first + lane;
            float score = minus_infinity();
            if (cell < cells) {
                float m = M::at(seen + cell * mask.nb[0], 0);
                if (m != minus_infinity()) {
                    const u8* row = row_of(k, cell, kv, stream);
                    float dot = 0.0f, part[16];
                    for (u32 at = 0; at < dk; at += 16) {
                        sixteen<K>(k, row, at, dk, part);
                        for (u32 j = 0; j < 16; j++)
                            if (at + j < dk) dot = fmaf(part[j], query[at + j], dot);
                    }
                    dot = p.softcap == 0.0f ? dot * p.scale : p.softcap * tanhf(dot * (p.scale / p.softcap));
                    score = dot + slope * m;
                }
            }
            float top = fmaxf(most, warp_max(score));
            if (top == minus_infinity()) continue;
            float weight = score == minus_infinity() ? 0.0f : expf(score - top);
            float kept = most == minus_infinity() ? 0.0f : expf(most - top);
            most = top;
            sum = sum * kept + weight;
            scores[lane] = weight;
            __syncwarp();
            for (u32 i = lane; i < dv; i += 32) {
                float out = own[i] * kept;
                for (u32 c = 0; c < 32; c++) {
                    float w = scores[c];
                    if (w != 0.0f) out = fmaf(w, element<V>(val, row_of(val, first + c, kv, stream), i), out);
                }
                own[i] = out;
            }
            __syncwarp();
        }
        sum = warp_sum(sum);
        if (lane == 0) {
            ends[2 * warp] = most;
            ends[2 * warp + 1] = sum;
        }
        __syncthreads();
        float sink = p.sinks ? S::at(v[4].at + head * v[4].nb[0], 0) : minus_infinity();
        float top = sink, total = 0.0f;
        for (u32 w = 0; w < warps; w++) top = fmaxf(top, ends[2 * w]);
        for (u32 w = 0; w < warps; w++)
            if (ends[2 * w] != minus_infinity()) total += ends[2 * w + 1] * expf(ends[2 * w] - top);
        if (sink != minus_infinity()) total += expf(sink - top);
        u8* to = row_of(y, head, token, stream);
        if (T == WITH_LSE && threadIdx.x == 0) {
            float lse = log_sum_exp(top, total);
            Y::put(to + dv * y.nb[0], &lse);
        }
        // To write terms, a thread needs four adjacent elements.
        const u32 each = T == WITH_TERMS ? 4 : 1;
        const u8* terms = T == WITH_TERMS ? made.at + ((u64)stream * tokens + token) * made.nb[1] : nullptr;
        for (u32 first = 0; first < dv; first += blockDim.x * each) {
            float e[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            u32 i = first + threadIdx.x * each;
            for (u32 j = 0; j < each && i + j < dv; j++) {
                float out = 0.0f;
                for (u32 w = 0; w < warps; w++)
                    if (ends[2 * w] != minus_infinity()) out += values[w * dv + i + j] * expf(ends[2 * w] - top);
                e[j] = total > 0.0f ? out / total : 0.0f;
                Y::put(to + (i + j) * y.nb[0], &e[j]);
            }
            if (T == WITH_TERMS) put_terms(e, (head * dv + i) / 32, terms, i < dv);
        }
    }
}

struct SoftMaxParams {
    float scale;
    u32 masked;
    u32 sinks;
    u32 unused;
};

template <class X, class M> DEVICE float logit(const View& x, const u8* row, const View& mask, const u8* seen, u32 i, const SoftMaxParams& p, float slope) {
    float out = element<X>(x, row, i) * p.scale;
    return p.masked ? fmaf(slope, M::at(seen + i * mask.nb[0], 0), out) : out;
}

// A block computes one row at a time.
template <class X, class M, class S, class Y> DEVICE void soft_max(const View* v, const u8* params) {
    const SoftMaxParams p = *(const SoftMaxParams*)params;
    const float* slopes = (const float*)(params + sizeof(SoftMaxParams));
    const View x = v[0], mask = v[p.masked ? 1 : 0], sinks = v[p.sinks ? 2 : 0], y = v[1 + p.masked + p.sinks];
    for (u64 row = blockIdx.x; row < rows_of(x); row += gridDim.x) {
        Place at = place_of(row, 1, x);
        u32 head = at.i[2];
        float slope = slopes[head];
        const u8* from = address(x, at);
        const u8* seen = p.masked ? row_of(mask, at.i[1], head % mask.ne[2], at.i[3] % mask.ne[3]) : from;
        u8* to = address(y, at);
        float sink = p.sinks ? S::at(sinks.at + head * sinks.nb[0], 0) : minus_infinity();
        float most = minus_infinity(), sum = 0.0f;
        for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) most = fmaxf(most, logit<X, M>(x, from, mask, seen, i, p, slope));
        most = fmaxf(block_max(most), sink);
        if (most != minus_infinity())
            for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) sum += expf(logit<X, M>(x, from, mask, seen, i, p, slope) - most);
        sum = block_sum(sum);
        if (p.sinks && most != minus_infinity()) sum += expf(sink - most);
        for (u32 i = threadIdx.x; i < x.ne[0]; i += blockDim.x) {
            float out = sum > 0.0f ? expf(logit<X, M>(x, from, mask, seen, i, p, slope) - most) / sum : 0.0f;
            Y::put(to + i * y.nb[0], &out);
        }
    }
}
