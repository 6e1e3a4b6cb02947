//! Printing and parsing are inverse for every program.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use aneforge_mil::{
    Argument, Attribute, DType, Dialect, Function, Literal, LiteralValue, Location, Port, Program, Statement, Type, parse, print,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-zA-Z_][a-zA-Z0-9_]{0,7}",
        1 => proptest::sample::select(vec!["fp16", "tensor", "string", "nan", "const", "BLOBFILE"]).prop_map(str::to_string),
    ]
    .prop_filter("true and false are values", |name| !matches!(name.as_str(), "true" | "false"))
}

fn element() -> impl Strategy<Value = DType> {
    use DType::*;
    proptest::sample::select(vec![
        Bool, Fp16, Bf16, Fp32, Fp64, Int4, Int8, Int16, Int32, Int64, UInt1, UInt2, UInt3, UInt4, UInt6, UInt8, UInt16, UInt32,
        UInt64, String,
    ])
}

fn tensor_type() -> impl Strategy<Value = Type> {
    (element(), vec(0usize..4, 0..4)).prop_map(|(dtype, shape)| Type::tensor(dtype, shape))
}

fn ty() -> impl Strategy<Value = Type> {
    let leaf = prop_oneof![element().prop_map(Type::Scalar), tensor_type()];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(key, value)| Type::Dict(Box::new(key), Box::new(value))),
            (inner.clone(), proptest::option::of(0usize..3)).prop_map(|(element, n)| Type::List(Box::new(element), n)),
            vec(inner, 0..3).prop_map(Type::Tuple),
        ]
    })
}

fn scalar(dtype: DType) -> BoxedStrategy<LiteralValue> {
    let float = |round: fn(u64) -> f64| {
        any::<u64>()
            .prop_map(move |bits| {
                let value = round(bits);
                LiteralValue::Float(if value.is_nan() { f64::NAN } else { value })
            })
            .boxed()
    };
    match dtype {
        DType::Bool => any::<bool>().prop_map(LiteralValue::Bool).boxed(),
        DType::String => prop_oneof!["[ -~]{0,12}", any::<String>()].prop_map(LiteralValue::Text).boxed(),
        DType::Fp16 => float(|bits| half::f16::from_bits(bits as u16).to_f64()),
        DType::Bf16 => float(|bits| half::bf16::from_bits(bits as u16).to_f64()),
        DType::Fp32 => float(|bits| f64::from(f32::from_bits(bits as u32))),
        DType::Fp64 => float(f64::from_bits),
        _ => {
            let bits = dtype.bits() as u32;
            let signed = matches!(dtype, DType::Int4 | DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64);
            let low = if signed { -(1i128 << (bits - 1)) } else { 0 };
            (low..low + (1i128 << bits)).prop_map(LiteralValue::Int).boxed()
        }
    }
}

fn blob() -> impl Strategy<Value = LiteralValue> {
    ("[a-z@/._\"\\\\]{0,12}", any::<u64>()).prop_map(|(path, offset)| LiteralValue::Blob { path, offset })
}

fn value(ty: &Type) -> BoxedStrategy<LiteralValue> {
    match ty {
        Type::Scalar(dtype) => prop_oneof![9 => scalar(*dtype), 1 => blob()].boxed(),
        Type::Tensor(tensor) if tensor.shape.is_empty() => scalar(tensor.dtype),
        Type::Tensor(tensor) => {
            let elements = vec(scalar(tensor.dtype), tensor.count()).prop_map(LiteralValue::Elements);
            prop_oneof![3 => elements, 1 => blob()].boxed()
        }
        Type::Dict(key, value) => {
            let entry =
                |ty: &Type| prop_oneof![4 => literal_of(ty.clone()), 1 => element().prop_flat_map(|d| literal_of(Type::Scalar(d)))];
            vec((entry(key), entry(value)), 0..3).prop_map(LiteralValue::Pairs).boxed()
        }
        Type::List(element, length) => {
            let range = length.map_or(0..3, |n| n..n + 1);
            vec(value(element), range).prop_map(LiteralValue::Elements).boxed()
        }
        Type::Tuple(parts) => parts.iter().map(value).collect::<Vec<_>>().prop_map(LiteralValue::Elements).boxed(),
        Type::State(_) => unreachable!("no literal has a state's type"),
    }
}

fn literal_of(ty: Type) -> BoxedStrategy<Literal> {
    value(&ty).prop_map(move |value| Literal { ty: ty.clone(), value }).boxed()
}

fn literal() -> impl Strategy<Value = Literal> {
    ty().prop_flat_map(literal_of)
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    vec((name(), literal()).prop_map(|(name, value)| Attribute { name, value }), 0..3)
}

fn port() -> impl Strategy<Value = Port> {
    let state = tensor_type().prop_map(|ty| Type::State(ty.as_tensor().unwrap()));
    (name(), prop_oneof![6 => tensor_type(), 2 => ty(), 1 => state]).prop_map(|(name, ty)| Port { name, ty })
}

fn argument() -> impl Strategy<Value = Argument> {
    let leaf = prop_oneof![name().prop_map(Argument::Name), literal().prop_map(Argument::Literal)];
    leaf.prop_recursive(2, 6, 3, |inner| vec(inner, 0..3).prop_map(Argument::Tuple))
}

fn statement() -> impl Strategy<Value = Statement> {
    (vec(port(), 1..3), name(), vec((name(), argument()), 0..3), attributes()).prop_map(|(outputs, op, arguments, attributes)| {
        Statement { outputs, op, arguments, attributes, location: Location::default() }
    })
}

fn function() -> impl Strategy<Value = Function> {
    (name(), name(), vec(port(), 0..3), attributes(), vec(statement(), 0..4), vec(name(), 0..3))
        .prop_map(|(name, opset, inputs, attributes, body, outputs)| Function { name, opset, inputs, attributes, body, outputs })
}

fn program() -> impl Strategy<Value = Program> {
    let version = prop_oneof![Just((1, 3)), Just((1, 0)), any::<(u32, u32)>()];
    (version, attributes(), vec(function(), 0..3)).prop_map(|(version, attributes, functions)| Program {
        version,
        attributes,
        functions,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_program_parses_to_itself(program in program()) {
        let text = print(&program);
        let back = parse(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&back, &program, "{}", text);
        prop_assert_eq!(print(&back), text);
    }

    #[test]
    fn a_program_has_a_form_in_each_dialect_and_never_a_mixture(program in program()) {
        for dialect in [Dialect::Modern, Dialect::Old] {
            let moved = program.to_dialect(dialect);
            prop_assert_eq!(Dialect::of(&moved), dialect);
            prop_assert_eq!(&moved.to_dialect(dialect), &moved);
            let text = print(&moved);
            prop_assert_eq!(&parse(&text).unwrap(), &moved);
            let scalar = match dialect {
                Dialect::Modern => " Tensor(TensorType { dtype: Fp16, shape: [] })",
                Dialect::Old => "Scalar(Fp16)",
            };
            let shown = format!("{moved:?}");
            prop_assert!(!shown.contains(scalar), "{}", text);
        }
    }
}
