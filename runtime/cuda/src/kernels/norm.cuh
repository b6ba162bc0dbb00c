struct NormParams {
    u32 kind; // 0 RMS, 1 layer, 2 L2
    float eps;
    float n; // elements of a whole row, if the statistics are sums over parts
};

struct Affine {
    float shift, factor;
};

DEVICE Affine affine(const NormParams& p, float mean, float moment, float squares) {
    Affine out;
    out.shift = p.kind == 1 ? mean : 0.0f;
    out.factor = p.kind == 2 ? 1.0f / fmaxf(sqrtf(squares), p.eps) : 1.0f / sqrtf(moment + p.eps);
    return out;
}
