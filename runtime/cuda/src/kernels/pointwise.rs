use tpc_ir::op::{
    Binary, BinaryKind, Clamp, Fill, Glu, GluKind, LeakyRelu, Scale, Unary, UnaryKind, Xielu,
};
use tpc_runtime::Gelu;

use super::kernel::{Request, Selection, grid_1d, instance, kernel};
use super::params::Params;
use super::source::{Arguments, Family};

pub(super) const FAMILY: Family = Family {
    name: "pointwise",
    text: concat!(
        include_str!("pointwise.cuh"),
        "\n#line 1 \"pointwise.cu\"\n",
        include_str!("pointwise.cu")
    ),
};

fn number_params(numbers: [f32; 4]) -> Params {
    numbers.iter().fold(Params::new(), |p, x| p.f32(*x))
}

fn unary_kernel(function: &str, given: [f32; 4], request: &Request<'_>) -> Selection {
    let ([x], y) = (request.reals()?, request.real_result()?);
    let types = [x.dtype, y.dtype];
    let template = instance(FAMILY, "unary", &types, Arguments::Params).with(function);
    kernel(
        template,
        number_params(given),
        grid_1d(y.elements(), request),
    )
}

pub(super) fn unary(op: &Unary, request: &Request<'_>) -> Selection {
    let table = request.options.gelu == Gelu::GgmlTable;
    let function = match op.kind {
        UnaryKind::Silu => "Silu",
        UnaryKind::Gelu if table => "GeluTable",
        UnaryKind::Gelu => "Gelu",
        UnaryKind::GeluErf => "GeluErf",
        UnaryKind::GeluQuick if table => "GeluQuickTable",
        UnaryKind::GeluQuick => "GeluQuick",
        UnaryKind::Relu => "Relu",
        UnaryKind::Sigmoid => "Sigmoid",
        UnaryKind::Tanh => "Tanh",
        UnaryKind::Exp => "Exp",
        UnaryKind::Sqr => "Sqr",
        UnaryKind::Sqrt => "Sqrt",
        UnaryKind::Softplus => "Softplus",
        UnaryKind::Neg => "Neg",
        UnaryKind::Abs => "Abs",
        UnaryKind::Log => "Log",
        UnaryKind::Sin => "Sin",
        UnaryKind::Cos => "Cos",
        UnaryKind::Sgn => "Sgn",
        UnaryKind::Step => "Step",
        UnaryKind::Elu => "Elu",
        UnaryKind::Expm1 => "Expm1",
        UnaryKind::Hardswish => "Hardswish",
        UnaryKind::Hardsigmoid => "Hardsigmoid",
        UnaryKind::Floor => "Floor",
        UnaryKind::Ceil => "Ceil",
        UnaryKind::Round => "Round",
        UnaryKind::Trunc => "Trunc",
    };
    unary_kernel(function, [0.0; 4], request)
}

pub(super) fn leaky_relu(op: &LeakyRelu, request: &Request<'_>) -> Selection {
    unary_kernel("LeakyRelu", [op.slope, 0.0, 0.0, 0.0], request)
}

pub(super) fn xielu(op: &Xielu, request: &Request<'_>) -> Selection {
    unary_kernel("Xielu", [op.alpha_n, op.alpha_p, op.beta, op.eps], request)
}

pub(super) fn fill(op: &Fill, request: &Request<'_>) -> Selection {
    unary_kernel("Fill", [op.value, 0.0, 0.0, 0.0], request)
}

pub(super) fn scale(op: &Scale, request: &Request<'_>) -> Selection {
    unary_kernel("Scale", [op.scale, op.bias, 0.0, 0.0], request)
}

pub(super) fn clamp(op: &Clamp, request: &Request<'_>) -> Selection {
    unary_kernel("Clamp", [op.min, op.max, 0.0, 0.0], request)
}

pub(super) fn cast(request: &Request<'_>) -> Selection {
    unary_kernel("Same", [0.0; 4], request)
}

pub(super) fn binary(op: &Binary, request: &Request<'_>) -> Selection {
    let function = match op.kind {
        BinaryKind::Add => "Add",
        BinaryKind::Sub => "Sub",
        BinaryKind::Mul => "Mul",
        BinaryKind::Div => "Div",
    };
    binary_kernel(function, number_params([0.0; 4]), request)
}

fn binary_kernel(function: &str, given: Params, request: &Request<'_>) -> Selection {
    let ([a, b], y) = (request.reals()?, request.real_result()?);
    let types = [a.dtype, b.dtype, y.dtype];
    let template = instance(FAMILY, "binary", &types, Arguments::Params).with(function);
    kernel(template, given, grid_1d(y.elements(), request))
}

pub(super) fn gate(op: &Glu, options: tpc_runtime::Options) -> (&'static str, Params) {
    let table = options.gelu == Gelu::GgmlTable;
    let function = match op.kind {
        GluKind::Swiglu => "Swiglu",
        GluKind::Geglu if table => "GegluTable",
        GluKind::Geglu => "Geglu",
        GluKind::GegluErf => "GegluErf",
        GluKind::GegluQuick if table => "GegluQuickTable",
        GluKind::GegluQuick => "GegluQuick",
        GluKind::Reglu => "Reglu",
        GluKind::SwigluClamp => "SwigluClamp",
        GluKind::SwigluOai => "SwigluOai",
    };
    (function, number_params([op.alpha, op.limit, 0.0, 0.0]))
}

pub(super) fn glu(op: &Glu, request: &Request<'_>) -> Selection {
    let (function, given) = gate(op, request.options);
    if request.operands.len() == 2 {
        return binary_kernel(function, given, request);
    }
    let ([x], y) = (request.reals()?, request.real_result()?);
    let types = [x.dtype, y.dtype];
    let template = instance(FAMILY, "halves", &types, Arguments::Params).with(function);
    kernel(template, given, grid_1d(y.elements(), request))
}
