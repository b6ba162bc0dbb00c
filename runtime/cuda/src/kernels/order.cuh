// The order of elements.

// Whether element `a` at `i` comes before `b` at `j`: equals stay in order, NaN comes last.
DEVICE bool before(float a, u32 i, float b, u32 j, bool ascending) {
    bool a_nan = !(a == a), b_nan = !(b == b);
    // A NaN sorts as the last of all numbers does.
    float left = a_nan ? u2f(0x7f800000u) : ascending ? a : -a;
    float right = b_nan ? u2f(0x7f800000u) : ascending ? b : -b;
    return left < right || (left == right && i < j);
}
