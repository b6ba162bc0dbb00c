// Products of several weights with the same activations. Each product has its own blocks.

struct GroupedParams {
    u32 lanes;
    u32 blocks; // the blocks of this product and of all earlier products
};

template <class P_, class E_, class Y_, int R_> struct GroupedProduct {
    typedef P_ P;
    typedef E_ E;
    typedef Y_ Y;
    enum { R = R_, OPERANDS = 1 + E_::OPERANDS };
};

// Selects the product of a block. `in` has the weight and the added tensors, `out` is the result.
template <class... Parts> struct GroupedProducts {
    enum { OPERANDS = 0 };
    DEVICE void columns(const View&, const View*, const View*, const GroupedParams*, u32) {}
    DEVICE void tiles(const View&, const View*, const View*, const GroupedParams*, u32) {}
    template <int M, int N> DEVICE void gemms(const View*, const View*, const View*, const GroupedParams*, u32) {}
    DEVICE void prefetch(const View*, const GroupedParams*, u32) {}
};
template <class J, class... Rest> struct GroupedProducts<J, Rest...> {
    enum { OPERANDS = J::OPERANDS + GroupedProducts<Rest...>::OPERANDS };
    DEVICE void columns(const View& q, const View* in, const View* out, const GroupedParams* p, u32 before) {
        if (blockIdx.x >= p->blocks) {
            GroupedProducts<Rest...>::columns(q, in + J::OPERANDS, out + 1, p + 1, p->blocks);
            return;
        }
        const View a = in[0], y = out[0];
        Blocks b = {blockIdx.x - before, p->blocks - before};
        columns_of<typename J::P, typename J::E, typename J::Y, J::R>(a, q, in + 1, y, p->lanes, b);
    }
    DEVICE void tiles(const View& q, const View* in, const View* out, const GroupedParams* p, u32 before) {
        if (blockIdx.x >= p->blocks) {
            GroupedProducts<Rest...>::tiles(q, in + J::OPERANDS, out + 1, p + 1, p->blocks);
            return;
        }
        const View a = in[0], y = out[0];
        Blocks b = {blockIdx.x - before, p->blocks - before};
        tiles_of<typename J::P, typename J::E, typename J::Y>(a, q, in + 1, y, b);
    }
    template <int M, int N> DEVICE void gemms(const View* h, const View* in, const View* out, const GroupedParams* p, u32 before) {
        if (blockIdx.y >= p->blocks) {
            GroupedProducts<Rest...>::template gemms<M, N>(h, in + J::OPERANDS, out + 1, p + 1, p->blocks);
            return;
        }
        Blocks b = {blockIdx.y - before, p->blocks - before};
        gemm_of<typename J::P, typename J::E, typename J::Y, M, N>(in, h, in + 1, out, b);
    }
    DEVICE void prefetch(const View* in, const GroupedParams* p, u32 before) {
        if (blockIdx.x >= p->blocks) {
            GroupedProducts<Rest...>::prefetch(in + J::OPERANDS, p + 1, p->blocks);
            return;
        }
        Blocks b = {blockIdx.x - before, p->blocks - before};
        columns_prefetch<typename J::P, J::R>(in[0], p->lanes, b);
    }
};

template <class... Parts> DEVICE void grouped_columns_prefetch(const View* v, const u8* params) {
    GroupedProducts<Parts...>::prefetch(v + 1, (const GroupedParams*)params, 0);
}
template <class... Parts> DEVICE void grouped_columns(const View* v, const u8* params) {
    const View q = v[0];
    GroupedProducts<Parts...>::columns(q, v + 1, v + 1 + GroupedProducts<Parts...>::OPERANDS, (const GroupedParams*)params, 0);
}
template <class... Parts> DEVICE void grouped_tiles(const View* v, const u8* params) {
    const View q = v[0];
    GroupedProducts<Parts...>::tiles(q, v + 1, v + 1 + GroupedProducts<Parts...>::OPERANDS, (const GroupedParams*)params, 0);
}

// The activations as f16 follow the results.
template <int M, int N, class... Parts> DEVICE void grouped_gemms(const View* v, const u8* params) {
    const View* out = v + 1 + GroupedProducts<Parts...>::OPERANDS;
    GroupedProducts<Parts...>::template gemms<M, N>(out + sizeof...(Parts), v + 1, out, (const GroupedParams*)params, 0);
}
