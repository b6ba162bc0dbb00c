// The sum over devices as a binary tree: devices 0 and 1, devices 2 and 3, then these sums. Remaining devices are added
// last.

template <int N> struct SumTree {
    // The left subtree: the largest power of two below `N`.
    enum { LEFT = N > 32 ? 32 : N > 16 ? 16 : N > 8 ? 8 : N > 4 ? 4 : N > 2 ? 2 : 1 };
    DEVICE float sum(const float* parts) { return SumTree<LEFT>::sum(parts) + SumTree<N - LEFT>::sum(parts + LEFT); }
};
template <> struct SumTree<1> {
    DEVICE float sum(const float* parts) { return parts[0]; }
};
