//! Small programs put to the engine's classes directly, for questions that a device would not ask.

use aneforge_mil::op::builtin;
use aneforge_mil::{BlobWriter, Body, DType, EmitOptions, Operand, Output, TensorType, emit, print};
use aneforge_sys::ane::{AppleNeuralEngine, Client, Model, Request, SurfaceObject};
use aneforge_sys::surface::Surface;
use aneforge_sys::{Frameworks, Source, SysError};
use half::f16;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// Shape of every port: rows of 128 bytes, on which all sources' packings agree.
pub(super) const SHAPE: [usize; 4] = [1, 32, 1, 64];
/// Bytes of a port.
pub(super) const BYTES: usize = 32 * 64 * 2;
/// Bytes of a surface that all sources saw work (Orion, arXiv 2603.06728).
pub(super) const SURFACE: usize = 49152;
/// Quality of service that all public users give.
pub(super) const QUALITY: u32 = 21;

/// Small whole numbers, other ones for every element's neighbours.
pub(super) fn input() -> Vec<u8> {
    (0..BYTES / 2).flat_map(|index| f16::from_f64((index % 61) as f64).to_bits().to_le_bytes()).collect()
}

/// Whether bytes are `factor` times [`input`].
pub(super) fn is_times(bytes: &[u8], factor: f64) -> bool {
    let wanted = (0..BYTES / 2).flat_map(|index| f16::from_f64((index % 61) as f64 * factor).to_bits().to_le_bytes());
    bytes.len() >= BYTES && wanted.eq(bytes[..BYTES].iter().copied())
}

/// The text of a program whose one result is the sum of its inputs, in the order in which they are named.
pub(super) fn sum(inputs: &[&str], options: &EmitOptions) -> Result<String, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let record = builtin().get("add").ok_or("MIL has no add")?;
    let mut body = Body { name: "main".to_string(), ..Body::default() };
    let ids: Vec<_> = inputs.iter().map(|name| body.add_input(*name, TensorType::new(DType::Fp16, SHAPE))).collect();
    let mut total = *ids.first().ok_or("no input")?;
    // One input is added to itself.
    let others = if ids.len() == 1 { ids.clone() } else { ids[1..].to_vec() };
    for (index, other) in others.into_iter().enumerate() {
        let operands = vec![Operand::One(total), Operand::One(other)];
        let types = body.infer(record, &operands).map_err(|error| text(&error))?;
        let results = types.into_iter().map(|ty| (format!("sum_{index}"), ty)).collect();
        total = body.add_operation(record, operands, results).first().copied().ok_or("no result")?;
    }
    body.outputs = vec![Output { name: body.value(total).name.clone(), value: total }];
    let mut none = BlobWriter::new(Cursor::new(Vec::new())).map_err(|error| text(&error))?;
    Ok(print(&emit(&body, options, &mut none).map_err(|error| text(&error))?))
}

/// The engine's classes with a folder for programs.
pub(super) struct Bench {
    pub(super) engine: Arc<AppleNeuralEngine>,
    pub(super) client: Client,
    folder: tempfile::TempDir,
}

pub(super) fn words(error: SysError) -> String {
    error.to_string()
}

impl Bench {
    pub(super) fn open(source: &Source) -> Result<Self, String> {
        let engine = Frameworks::open(source).and_then(|frameworks| frameworks.in_memory()).map_err(words)?;
        let client = Client::shared(&engine).map_err(words)?;
        Ok(Self { engine, client, folder: tempfile::tempdir().map_err(|error| error.to_string())? })
    }

    /// The folder of a program.
    pub(super) fn place(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program, compiles it and loads it through the client.
    pub(super) fn model(&self, name: &str, text: &str) -> Result<Model, String> {
        let place = self.place(name);
        write(&place, text)?;
        let mut model = Model::new(&self.engine, &place, name).map_err(words)?;
        let options = self.engine.mil_options().map_err(words)?;
        self.client.compile(&mut model, &options, QUALITY).map_err(words)?;
        self.client.load(&mut model, self.engine.no_options(), QUALITY).map_err(words)?;
        Ok(model)
    }

    /// A surface of that many bytes that holds [`input`].
    pub(super) fn surface(&self, bytes: usize) -> Result<SurfaceObject, String> {
        let surface = Surface::new(self.engine.surfaces(), bytes).map_err(words)?;
        let input = input();
        surface.memory().write(0, &input[..input.len().min(bytes)]).map_err(words)?;
        SurfaceObject::new(&self.engine, &surface).map_err(words)
    }

    /// A request with one output at its symbol.
    pub(super) fn request(&self, model: &Model, inputs: &[&SurfaceObject], output: &SurfaceObject) -> Result<Request, String> {
        let (from, to) = (model.input_symbols(0).map_err(words)?, model.output_symbols(0).map_err(words)?);
        let inputs: Vec<_> = from.into_iter().zip(inputs.iter().copied()).collect();
        let outputs: Vec<_> = to.into_iter().zip([output]).collect();
        Request::new(&self.engine, &inputs, &outputs, 0).map_err(words)
    }

    /// What a surface holds.
    pub(super) fn read(&self, surface: &SurfaceObject) -> Result<Vec<u8>, String> {
        let memory = surface.surface().memory();
        let mut bytes = vec![0; memory.len().min(BYTES)];
        memory.read(0, &mut bytes).map_err(words)?;
        Ok(bytes)
    }
}

/// Writes a program's text into a folder of its own.
pub(super) fn write(folder: &Path, text: &str) -> Result<(), String> {
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(folder.join("model.mil"), text))
        .map_err(|error| format!("{}: {error}", folder.display()))
}
