DEVICE float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
DEVICE float silu(float x) { return x / (1.0f + expf(-x)); }
DEVICE float softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }
DEVICE float relu(float x) { return x > 0.0f ? x : 0.0f; }
// Clamps `x`; NaN stays NaN.
DEVICE float within(float x, float low, float high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}
DEVICE float hard_sigmoid(float x) { return within((x + 3.0f) / 6.0f, 0.0f, 1.0f); }
DEVICE float gelu_erf(float x) { return 0.5f * x * erfcf(x * -0.70710678118654752f); }
// The tanh form of GELU: (1 + tanh u) / 2 equals sigmoid(2u), which is precise for small results.
DEVICE float gelu_tanh(float x) { return x / (1.0f + expf(-1.5957691216057307f * x * (1.0f + 0.044715f * x * x))); }
DEVICE float gelu_fast(float x) { return x / (1.0f + expf(-1.702f * x)); }
// Rounds input and output to f16, as ggml's table does.
DEVICE float gelu_table(float x) {
    if (x <= -10.0f) return 0.0f;
    if (x >= 10.0f) return x;
    return h2f(f2h(gelu_tanh(h2f(f2h(x)))));
}
DEVICE float gelu_fast_table(float x) {
    float h = h2f(f2h(x));
    return h2f(f2h(h * (1.0f / (1.0f + expf(-1.702f * h)))));
}

struct Numbers {
    float n[4];
};

struct Silu { DEVICE float of(float x, const Numbers&) { return silu(x); } };
struct Gelu { DEVICE float of(float x, const Numbers&) { return gelu_tanh(x); } };
struct GeluTable { DEVICE float of(float x, const Numbers&) { return gelu_table(x); } };
struct GeluErf { DEVICE float of(float x, const Numbers&) { return gelu_erf(x); } };
struct GeluQuick { DEVICE float of(float x, const Numbers&) { return gelu_fast(x); } };
struct GeluQuickTable { DEVICE float of(float x, const Numbers&) { return gelu_fast_table(x); } };
struct Relu { DEVICE float of(float x, const Numbers&) { return relu(x); } };
struct Sigmoid { DEVICE float of(float x, const Numbers&) { return sigmoid(x); } };
struct Tanh { DEVICE float of(float x, const Numbers&) { return tanhf(x); } };
struct Exp { DEVICE float of(float x, const Numbers&) { return expf(x); } };
struct Sqr { DEVICE float of(float x, const Numbers&) { return x * x; } };
struct Sqrt { DEVICE float of(float x, const Numbers&) { return sqrtf(x); } };
struct Softplus { DEVICE float of(float x, const Numbers&) { return softplus(x); } };
struct Neg { DEVICE float of(float x, const Numbers&) { return -x; } };
struct Abs { DEVICE float of(float x, const Numbers&) { return fabsf(x); } };
struct Log { DEVICE float of(float x, const Numbers&) { return logf(x); } };
struct Sin { DEVICE float of(float x, const Numbers&) { return sinf(x); } };
struct Cos { DEVICE float of(float x, const Numbers&) { return cosf(x); } };
struct Sgn { DEVICE float of(float x, const Numbers&) { return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f; } };
struct Step { DEVICE float of(float x, const Numbers&) { return x > 0.0f ? 1.0f : 0.0f; } };
struct Elu { DEVICE float of(float x, const Numbers&) { return x > 0.0f ? x : expm1f(x); } };
struct Expm1 { DEVICE float of(float x, const Numbers&) { return expm1f(x); } };
struct Hardswish { DEVICE float of(float x, const Numbers&) { return x * hard_sigmoid(x); } };
struct Hardsigmoid { DEVICE float of(float x, const Numbers&) { return hard_sigmoid(x); } };
struct Floor { DEVICE float of(float x, const Numbers&) { return floorf(x); } };
struct Ceil { DEVICE float of(float x, const Numbers&) { return ceilf(x); } };
struct Round { DEVICE float of(float x, const Numbers&) { return roundf(x); } };
struct Trunc { DEVICE float of(float x, const Numbers&) { return truncf(x); } };
struct Same { DEVICE float of(float x, const Numbers&) { return x; } };
struct LeakyRelu { DEVICE float of(float x, const Numbers& p) { return fmaxf(x, 0.0f) + p.n[0] * fminf(x, 0.0f); } };
struct Xielu {
    DEVICE float of(float x, const Numbers& p) {
        if (x > 0.0f) return p.n[1] * x * x + p.n[2] * x;
        return (expm1f(fminf(x, p.n[3])) - x) * p.n[0] + p.n[2] * x;
    }
};
struct Fill { DEVICE float of(float, const Numbers& p) { return p.n[0]; } };
struct Scale { DEVICE float of(float x, const Numbers& p) { return p.n[0] * x + p.n[1]; } };
struct Clamp { DEVICE float of(float x, const Numbers& p) { return within(x, p.n[0], p.n[1]); } };

struct Add { DEVICE float of(float a, float b, const Numbers&) { return a + b; } };
struct Sub { DEVICE float of(float a, float b, const Numbers&) { return a - b; } };
struct Mul { DEVICE float of(float a, float b, const Numbers&) { return a * b; } };
struct Div { DEVICE float of(float a, float b, const Numbers&) { return a / b; } };

struct Swiglu { DEVICE float of(float g, float u, const Numbers&) { return silu(g) * u; } };
struct Geglu { DEVICE float of(float g, float u, const Numbers&) { return gelu_tanh(g) * u; } };
struct GegluTable { DEVICE float of(float g, float u, const Numbers&) { return gelu_table(g) * u; } };
struct GegluErf { DEVICE float of(float g, float u, const Numbers&) { return gelu_erf(g) * u; } };
struct GegluQuick { DEVICE float of(float g, float u, const Numbers&) { return gelu_fast(g) * u; } };
struct GegluQuickTable { DEVICE float of(float g, float u, const Numbers&) { return gelu_fast_table(g) * u; } };
struct Reglu { DEVICE float of(float g, float u, const Numbers&) { return relu(g) * u; } };
struct SwigluClamp {
    DEVICE float of(float g, float u, const Numbers& p) { return silu(fminf(g, p.n[1])) * within(u, -p.n[1], p.n[1]); }
};
struct SwigluOai {
    DEVICE float of(float g, float u, const Numbers& p) {
        g = g > p.n[1] ? p.n[1] : g;
        return g / (1.0f + expf(-p.n[0] * g)) * (within(u, -p.n[1], p.n[1]) + 1.0f);
    }
};
