// True if element `a` at index `i` sorts before `b` at `j`. Equal elements keep their order; NaN sorts last.
DEVICE bool before(float a, u32 i, float b, u32 j, bool ascending) {
    bool a_nan = !(a == a), b_nan = !(b == b);
    // Treat a NaN like the largest value in this order.
    float left = a_nan ? u2f(0x7f800000u) : ascending ? a : -a;
    float right = b_nan ? u2f(0x7f800000u) : ascending ? b : -b;
    return left < right || (left == right && i < j);
}
