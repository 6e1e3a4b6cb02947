//! Passes: their examples run, lossless ones keep the reference output bit for bit, their order is what they ask for.
#![allow(clippy::expect_used)] // a failed step is a failed test

mod common;

use aneforge_compile::pass::{Context, Effect, Pass, Stage};
use aneforge_compile::pipeline::{PASSES, ordered, run_one};
use aneforge_compile::{CompileError, CompileOptions, Notes, Rewrites, compile_body};
use aneforge_core::{Route, Target, chips, evaluate};
use common::{body, folder, inputs};

fn targets() -> Vec<Target> {
    let chips = || chips().iter();
    std::iter::once(Target::Generic).chain(chips().map(Target::e5rt)).chain(chips().map(Target::in_memory)).collect()
}

fn target_for(pass: &Pass) -> Target {
    targets().into_iter().find(|target| (pass.applies)(target)).expect("some target needs the pass")
}

#[test]
fn each_example_becomes_what_the_pass_says() {
    let folder = folder();
    for pass in PASSES {
        let target = target_for(pass);
        let context = Context { target: &target, rewrites: Rewrites::default() };
        let mut after = run_one(pass, body(pass.example.before, &folder), &context, &mut Notes::default()).expect(pass.name);
        after.compact();
        let wanted = body(pass.example.after, &folder);
        assert!(after.same_computation(&wanted), "{}: got {after:#?}\nwanted {wanted:#?}", pass.name);
    }
}

#[test]
fn constants_that_a_pass_adds_have_the_type_of_what_they_meet() {
    let folder = folder();
    // Beyond what a text holds as a literal, factors are written out into the weight file.
    let large = "func main<ios18>(tensor<fp32, [64, 64]> x) {
        tensor<fp32, [64, 64]> f = floor(x = x)[name = string(\"f\")];
        tensor<fp32, [64, 64]> y = mul(x = f, y = fp32(0x1p-1))[name = string(\"y\")];
    } -> (y);";
    let examples = PASSES.iter().map(|pass| pass.example.before).filter(|before| !before.contains("BLOBFILE"));
    let wide: Vec<String> = examples.map(|before| before.replace("fp16", "fp32")).chain([large.to_string()]).collect();
    for target in targets() {
        for example in &wide {
            for pass in ordered(PASSES).expect("an order exists").into_iter().filter(|pass| (pass.applies)(&target)) {
                let result = run_one(
                    pass,
                    body(example, &folder),
                    &Context { target: &target, rewrites: Rewrites::default() },
                    &mut Notes::default(),
                );
                let after = match result {
                    Ok(after) => after,
                    // A rule of its own: an engine has no output that is an fp32 input.
                    Err(CompileError::Output { .. }) => continue,
                    Err(error) => panic!("{} for {target} on {example}: {error}", pass.name),
                };
                after.verify().unwrap_or_else(|error| panic!("{} for {target} on {example}: {error}", pass.name));
            }
        }
    }
}

#[test]
fn lossless_passes_keep_the_meaning_bit_for_bit() {
    let folder = folder();
    let mut checked = 0;
    for pass in PASSES.iter().filter(|pass| pass.effect == Effect::Lossless) {
        let target = target_for(pass);
        for example in PASSES.iter().flat_map(|pass| [pass.example.before, pass.example.after]) {
            let before = body(example, &folder);
            let after =
                run_one(pass, before.clone(), &Context { target: &target, rewrites: Rewrites::default() }, &mut Notes::default())
                    .expect(pass.name);
            for given in inputs(&before) {
                let bits = |body| -> Vec<u64> {
                    let arrays = evaluate(body, &given).expect("the example runs");
                    arrays.iter().flat_map(|array| array.data.iter().map(|value| value.to_bits())).collect()
                };
                assert_eq!(bits(&before), bits(&after), "{} on {example}", pass.name);
                checked += 1;
            }
        }
    }
    assert!(checked > 100, "only {checked} programs were compared");
}

#[test]
fn passes_run_by_stage_and_after_those_they_name() {
    let order = ordered(PASSES).expect("an order exists");
    assert_eq!(order.len(), PASSES.len());
    assert!(order.windows(2).all(|pair| pair[0].stage <= pair[1].stage));
    for (place, pass) in order.iter().enumerate() {
        for earlier in pass.after {
            assert!(order[..place].iter().any(|other| other.name == *earlier), "{} before {earlier}", pass.name);
        }
    }
}

#[test]
fn an_order_that_cannot_be_kept_is_refused() {
    static CIRCLE: [Pass; 2] = [Pass { name: "a", after: &["b"], ..template() }, Pass { name: "b", after: &["a"], ..template() }];
    static UNKNOWN: [Pass; 1] = [Pass { name: "a", after: &["nothing"], ..template() }];
    assert!(ordered(&CIRCLE).expect_err("a circle").to_string().contains("a, b"));
    assert!(ordered(&UNKNOWN).expect_err("unknown").to_string().contains("nothing"));
}

const fn template() -> Pass {
    Pass {
        name: "",
        summary: "",
        stage: Stage::Canonicalise,
        effect: Effect::Lossless,
        after: &[],
        applies: |_| true,
        run: |body, _, _| Ok(body),
        example: aneforge_compile::pass::Example { before: "", after: "" },
    }
}

#[test]
fn all_passes_together_reach_a_fixed_point() {
    let folder = folder();
    for target in ["generic", "m1", "m5", "m1:in-memory", "m5:in-memory"] {
        let target: Target = target.parse().expect("a target");
        let options = CompileOptions { target, ..CompileOptions::default() };
        // A small weight that one pass expands is a literal that constant folding takes further the next time.
        let expands = |pass: &&Pass| pass.example.before.contains("constexpr_blockwise") && !(pass.applies)(&target);
        for pass in PASSES.iter().filter(|pass| !expands(pass)) {
            // Models in memory take no computed weight, in one image or many.
            if pass.name == "computed-weight-per-image" && target.route() == Some(Route::InMemory) {
                continue;
            }
            let once = compile_body(body(pass.example.before, &folder), &options).expect(pass.name);
            let twice = compile_body(once.body.clone(), &options).expect(pass.name);
            assert!(once.body.same_computation(&twice.body), "{} on {target}", pass.name);
        }
    }
}

#[test]
fn a_generic_program_keeps_its_operators() {
    let folder = folder();
    let text = "func main<ios18>(tensor<fp16, [2]> x) {
        tensor<fp16, [2]> r = round(x = x)[name = string(\"r\")];
        tensor<fp16, [2]> y = softplus(x = r)[name = string(\"y\")];
    } -> (y);";
    let compiled = compile_body(body(text, &folder), &CompileOptions::default()).expect("compiles");
    let names: Vec<_> = compiled.body.operations.iter().map(|operation| operation.op.name).collect();
    assert_eq!(names, ["round", "softplus"]);
}

#[test]
fn near_misses_are_noted() {
    let folder = folder();
    let text = "func main<ios18>(tensor<fp16, [2]> x) {
        tensor<fp16, [2]> y = add(x = x, y = fp16(0x0p+0))[name = string(\"y\")];
    } -> (y);";
    let compiled = compile_body(body(text, &folder), &CompileOptions::default()).expect("compiles");
    let missed: Vec<_> = compiled.notes.all().iter().filter(|note| !note.applied).collect();
    assert_eq!(missed.len(), 1);
    assert!(missed[0].text.contains("-0"), "{}", missed[0].text);
}

#[test]
fn what_a_chip_cannot_take_is_an_error_that_says_what_to_do() {
    let folder = folder();
    let wide = "func main<ios18>(tensor<fp16, [1, 20000]> x) {
        tensor<fp16, [1, 20000]> y = relu(x = x)[name = string(\"y\")];
    } -> (y);";
    let compiled = |text: &str, target: &str| {
        let options = CompileOptions { target: target.parse().expect("a target"), ..CompileOptions::default() };
        compile_body(body(text, &folder), &options).map_err(|error| error.to_string())
    };
    assert!(compiled(wide, "generic").is_ok());
    assert!(compiled(wide, "m4").is_ok());
    let error = compiled(wide, "m1").expect_err("beyond the limit of an M1");
    assert!(error.contains("20000") && error.contains("16384") && error.contains("M1") && error.contains("split"), "{error}");
    let volume = "func main<ios18>(tensor<fp16, [1, 1, 3, 3, 3]> x, tensor<fp16, [1, 1, 2, 2, 2]> w) {
        tensor<fp16, [1, 1, 2, 2, 2]> y = conv(x = x, weight = w)[name = string(\"y\")];
    } -> (y);";
    let order = "func main<ios18>(tensor<fp16, [4]> x) {
        tensor<fp16, [1]> y, tensor<int32, [1]> i = topk(x = x)[name = string(\"y\")];
    } -> (y);";
    let integer = "func main<ios18>(tensor<int32, [4]> x) {
        tensor<fp16, [4]> y = cast(x = x, dtype = string(\"fp16\"))[name = string(\"y\")];
    } -> (y);";
    for (text, works, fails, words) in [
        (volume, "generic", "m5", ["three spatial axes", "sum convolutions of two axes"]),
        (order, "m2", "m1", ["gated here and native from A14 on", "a later chip"]),
        (integer, "generic", "m4", ["int32 to fp16", "on the host"]),
    ] {
        assert!(compiled(text, works).is_ok(), "{:?}", compiled(text, works));
        let error = compiled(text, fails).expect_err(fails);
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
