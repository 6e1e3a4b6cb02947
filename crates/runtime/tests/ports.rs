//! What every device says about wrong inputs, before anything is computed.
#![allow(clippy::unwrap_used)]

use aneforge_core::HostArray;
use aneforge_mil::NoBlobs;
use aneforge_runtime::{DeviceError, Executable, Program, open};
use std::sync::Arc;

const DEVICES: &[&str] = &["null", "reference", "cpu", "emulator:m1", "emulator:m5"];

const TEXT: &str = r#"program(1.3)
[buildInfo = dict<string, string>({})]
{
    func main<ios18>(tensor<fp16, [2, 4]> x, tensor<fp16, [4]> y) {
        tensor<fp16, [2, 4]> s = add(x = x, y = y)[name = string("s")];
        tensor<fp16, [2, 4]> r = relu(x = s)[name = string("r")];
    } -> (r);
}
"#;

fn loaded(device: &str) -> Arc<dyn Executable> {
    let program = Arc::new(Program::from_text("test", TEXT, &NoBlobs).unwrap());
    open(device).unwrap().load(&program).unwrap()
}

fn x() -> HostArray {
    HostArray::fp16_from_f32([2, 4], &[1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0]).unwrap()
}

fn y() -> HostArray {
    HostArray::fp16_from_f32([4], &[0.5, 0.5, 0.5, 8.5]).unwrap()
}

#[test]
fn arrays_go_in_by_position_or_by_name() {
    for device in DEVICES.iter().filter(|device| **device != "null") {
        let executable = loaded(device);
        let by_position = executable.run(&[&x(), &y()]).unwrap();
        assert_eq!(by_position[0].to_f32(), [1.5, 0.0, 3.5, 4.5, 5.5, 0.0, 7.5, 0.5], "{device}");
        let by_name = executable.run_named(&[("y", &y()), ("x", &x())]).unwrap();
        assert_eq!(by_name, [("r".to_string(), by_position[0].clone())], "{device}");
    }
}

#[test]
fn null_gives_zeros_of_the_right_type() {
    let results = loaded("null").run(&[&x(), &y()]).unwrap();
    assert_eq!(results, [HostArray::zeros(aneforge_core::DType::Fp16, [2, 4])]);
}

#[test]
fn a_wrong_number_of_inputs_names_the_ports() {
    for device in DEVICES {
        let error = loaded(device).run(&[&x()]).unwrap_err();
        assert!(
            matches!(&error, DeviceError::PortCount { expected: 2, got: 1, names, .. } if names == "x, y"),
            "{device}: {error}"
        );
    }
}

#[test]
fn a_wrong_shape_or_type_names_the_port_and_both_sides() {
    for device in DEVICES {
        let executable = loaded(device);
        let error = executable.run(&[&x(), &x()]).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, DeviceError::PortShape { .. }), "{device}: {text}");
        assert!(text.contains("\"y\"") && text.contains("[4]") && text.contains("[2, 4]"), "{device}: {text}");
        let single = HostArray::from_f32([4], &[0.0; 4]).unwrap();
        let text = executable.run(&[&x(), &single]).unwrap_err().to_string();
        assert!(text.contains("\"y\"") && text.contains("fp16") && text.contains("fp32"), "{device}: {text}");
    }
}

#[test]
fn a_buffer_of_the_wrong_length_is_refused_and_outputs_stay_untouched() {
    for device in DEVICES {
        let mut out = [7u8; 16];
        let error = loaded(device).execute(&[&[0; 16], &[0; 6]], &mut [&mut out]).unwrap_err();
        assert!(matches!(&error, DeviceError::PortLength { port, bytes: 8, got: 6, .. } if port == "y"), "{device}: {error}");
        assert_eq!(out, [7; 16], "{device}");
        let error = loaded(device).execute(&[&[0; 16], &[0; 8]], &mut [&mut out[..15]]).unwrap_err();
        assert!(matches!(&error, DeviceError::PortLength { port, .. } if port == "r"), "{device}: {error}");
    }
}

#[test]
fn unknown_missing_and_repeated_names_are_told_apart() {
    for device in DEVICES {
        let executable = loaded(device);
        let problem = |inputs: &[(&str, &HostArray)]| executable.run_named(inputs).unwrap_err().to_string();
        assert!(problem(&[("x", &x()), ("z", &y())]).contains("\"z\" does not exist"), "{device}");
        assert!(problem(&[("x", &x())]).contains("\"y\" was not given"), "{device}");
        assert!(problem(&[("x", &x()), ("x", &x())]).contains("\"x\" was given twice"), "{device}");
    }
}

#[test]
fn buffers_need_no_alignment() {
    let mut bytes = vec![0u8];
    bytes.extend_from_slice(x().bytes());
    let mut out = [0u8; 17];
    loaded("cpu").execute(&[&bytes[1..], y().bytes()], &mut [&mut out[1..]]).unwrap();
    assert_eq!(out[1..], *loaded("cpu").run(&[&x(), &y()]).unwrap()[0].bytes());
}

#[test]
fn bad_text_names_line_and_column() {
    for (text, place) in [("program(1.3", "1:"), (&TEXT.replace("relu(x = s)", "relu(x = q)"), "6:"), ("", "1:1")] {
        let error = Program::from_text("test", text, &NoBlobs).unwrap_err().to_string();
        assert!(error.contains(place) || error.contains("line"), "{error}");
    }
    assert!(Program::open("no such folder").unwrap_err().to_string().contains("model.mil"));
}
