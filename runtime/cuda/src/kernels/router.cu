// Chooses the experts of a token and computes their weights. A block computes one token at a time.

struct RouterParams {
    u32 scores;  // 0 logits, 1 softmax, 2 sigmoid
    u32 biased;  // 1 if a bias is added before the choice
    u32 weights; // 0 as scored, 1 divided by their sum, 2 softmax
    float least, most; // bounds of the sum
    float scale, bias; // applied to the weights last
    u32 scaled;
    u32 rows; // 1 if the weights of a token are a row
};

DEVICE float scores_of(const View& x, const u8* row, float* out, u32 kind) {
    u32 n = x.ne[0];
    float most = u2f(0xff800000u), sum = 0.0f;
    if (kind == 1) {
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, F32::at(row + i * x.nb[0], 0));
        most = block_max(most);
        if (most != u2f(0xff800000u))
            for (u32 i = threadIdx.x; i < n; i += blockDim.x) sum += expf(F32::at(row + i * x.nb[0], 0) - most);
        sum = block_sum(sum);
    }
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        float e = F32::at(row + i * x.nb[0], 0);
        if (kind == 1) e = sum > 0.0f ? expf(e - most) / sum : 0.0f;
        if (kind == 2) e = sigmoid(e);
        out[i] = e;
    }
    return sum;
}

// `I` is the type of expert indices. A token has at most 31 experts.
template <class B, class I> DEVICE void router(const View* v, const u8* params) {
    DYN_SHARED(float, scores);
    SHARED(u32, ids, 32);
    const RouterParams p = *(const RouterParams*)params;
    const View x = v[0], bias = v[p.biased ? 1 : 0], experts = v[p.biased ? 2 : 1], weights = v[p.biased ? 3 : 2];
    u32 n = x.ne[0], k = experts.ne[0], tokens = x.ne[1];
    float* choice = scores + n;
    for (u32 token = blockIdx.x; token < tokens; token += gridDim.x) {
        __syncthreads();
        scores_of(x, row_of(x, token, 0, 0), scores, p.scores);
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += blockDim.x)
            choice[i] = p.biased ? scores[i] + element<B>(bias, row_of(bias, token % bias.ne[1], 0, 0), i % bias.ne[0]) : scores[i];
        __syncthreads();
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
            u32 rank = 0;
            for (u32 j = 0; j < n; j++) rank += before(choice[j], j, choice[i], i, false) ? 1 : 0;
            if (rank >= k) continue;
            ids[rank] = i;
            I::put_integer(row_of(experts, token, 0, 0) + rank * experts.nb[0], i);
        }
        __syncthreads();
        if (threadIdx.x >= 32) continue;
        u32 slot = threadIdx.x;
        float weight = slot < k ? scores[ids[slot]] : 0.0f;
        if (p.weights == 1) {
            float sum = 0.0f;
            for (u32 s = 0; s < k; s++) sum += scores[ids[s]];
            weight = weight / within(sum, p.least, p.most);
        }
        if (p.weights == 2) {
            float top = warp_max(slot < k ? weight : u2f(0xff800000u));
            float e = slot < k && top != u2f(0xff800000u) ? expf(weight - top) : 0.0f;
            float sum = warp_sum(e);
            weight = sum > 0.0f ? e / sum : 0.0f;
        }
        if (p.scaled) weight = p.scale * weight + p.bias;
        u8* to = p.rows ? row_of(weights, token, 0, 0) + slot * weights.nb[0] : row_of(weights, slot, token, 0);
        if (slot < k) F32::put(to, &weight);
    }
}
