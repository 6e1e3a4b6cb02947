//! From a package to bodies.

mod edge;
mod error;
mod function;
mod state;
#[cfg(test)]
mod tests;
mod value;

pub use error::{ReadError, ReadFault};

use crate::proto::{self, ModelKind};
use crate::{OpSet, manifest};
use aneforge_map::Mapping;
use aneforge_mil::op::{OpTable, builtin};
use aneforge_mil::{BlobFolder, Body};
use function::Importer;
use prost::Message;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The function that is read where none is named.
const MAIN: &str = "main";
/// Largest manifest and model file that are read: weights stand in files of their own, so that larger ones are a mistake.
const MAX_MANIFEST: usize = 1 << 20;
const MAX_MODEL: usize = 1 << 28;

/// An ML Program package that was read, but not its weights, which stay on disk.
#[derive(Debug)]
pub struct Package {
    /// Folder of the model file, which weight paths start from.
    folder: PathBuf,
    specification: i32,
    description: proto::ModelDescription,
    program: proto::Program,
}

/// What is to be read of a package.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The function; `None` takes the package's default, which is `main` or the only one.
    pub function: Option<String>,
    /// Shapes of inputs by name, for inputs that have no fixed one. Those that are not named take their defaults.
    pub shapes: BTreeMap<String, Vec<usize>>,
}

/// A function of a package in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionOutline {
    /// Its name.
    pub name: String,
    /// The op-set as the package calls it: `CoreML6`.
    pub opset: String,
    /// Inputs with their types as MIL text writes them; `?` is an extent that is not fixed.
    pub inputs: Vec<(String, String)>,
    /// Names of the results.
    pub outputs: Vec<String>,
    /// How often each operator is used, `const` included.
    pub operations: BTreeMap<String, usize>,
}

impl Package {
    /// Reads the manifest and the model file of the package at `folder`.
    ///
    /// # Errors
    /// [`ReadError`] where a file is missing, damaged, or no ML Program.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, ReadError> {
        let folder = folder.as_ref();
        let path = folder.join(manifest::MANIFEST);
        let text = file(&path, MAX_MANIFEST)?;
        let model = manifest::model_path(text.bytes()).map_err(|problem| ReadError::Manifest { path, problem })?;
        let path = folder.join(model);
        let bytes = file(&path, MAX_MODEL)?;
        let parent = path.parent().unwrap_or(folder).to_path_buf();
        Self::decode(&path, bytes.bytes(), parent)
    }

    fn decode(path: &Path, bytes: &[u8], folder: PathBuf) -> Result<Self, ReadError> {
        let path = path.to_path_buf();
        let damaged = |problem: String| ReadError::Decode { path: path.clone(), problem };
        let model = proto::Model::decode(bytes).map_err(|error| damaged(error.to_string()))?;
        let program = match model.kind {
            Some(ModelKind::MlProgram(program)) => program,
            other => return Err(ReadError::Kind { path, kind: kind(other.as_ref()) }),
        };
        if program.functions.is_empty() {
            return Err(damaged("the program has no function".to_string()));
        }
        let description = model.description.unwrap_or_default();
        Ok(Self { folder, specification: model.specification_version, description, program })
    }

    /// The specification version: 6 to 10 for ML Programs.
    pub fn specification(&self) -> i32 {
        self.specification
    }

    /// The functions by name.
    pub fn functions(&self) -> Vec<FunctionOutline> {
        self.program.functions.iter().map(|(name, function)| outline(name, function)).collect()
    }

    /// One function with its names resolved, by the operator table of MIL. Weights are mapped, not copied. Operations on integers
    /// that depend on nothing but shapes and constants are computed on the way.
    ///
    /// # Errors
    /// [`ReadError`]; the first operation at fault is named.
    pub fn body(&self, options: &ReadOptions) -> Result<Body, ReadError> {
        self.body_with(options, builtin())
    }

    /// As [`Self::body`], with another table of operators.
    ///
    /// # Errors
    /// As [`Self::body`].
    pub fn body_with(&self, options: &ReadOptions, table: &OpTable) -> Result<Body, ReadError> {
        let (name, function) = self.function(options.function.as_deref())?;
        let opset = |problem| ReadError::OpSet { function: name.to_string(), opset: function.opset.clone(), problem };
        OpSet::from_package_name(&function.opset).ok_or_else(|| opset("which is not known here: CoreML5 to CoreML9 are"))?;
        let block = function.blocks.get(&function.opset).ok_or_else(|| opset("but has no block for it"))?;
        let unknown = options.shapes.keys().find(|shape| function.inputs.iter().all(|input| input.name != **shape));
        if let Some(unknown) = unknown {
            let problem = "is given a shape but does not exist".to_string();
            return Err(ReadError::Input { function: name.to_string(), name: unknown.clone(), problem });
        }
        let blobs = BlobFolder::new(&self.folder);
        let mut importer = Importer::new(name, block, table, &blobs);
        for port in &function.inputs {
            let input = |problem| ReadError::Input { function: name.to_string(), name: port.name.clone(), problem };
            if let Some(contents) = value::state(port.ty.as_ref()) {
                let declared = value::declared(&port.name, contents).map_err(|fault| input(format!("cannot be read: {fault}")))?;
                let ty = declared.fixed().ok_or_else(|| input("is a state of unknown extent".to_string()))?;
                importer.state(&port.name, ty).map_err(|fault| input(format!("cannot be read: {fault}")))?;
                continue;
            }
            let declared =
                value::declared(&port.name, port.ty.as_ref()).map_err(|fault| input(format!("cannot be read: {fault}")))?;
            let given = options.shapes.get(&port.name).map(Vec::as_slice);
            let ty = edge::bind(&declared, self.feature(name, &port.name), given).map_err(input)?;
            importer.input(&port.name, ty).map_err(|fault| input(format!("cannot be read: {fault}")))?;
        }
        let at = |index, op: &str, value: &str, fault| ReadError::Operation {
            function: name.to_string(),
            index,
            op: op.to_string(),
            name: value.to_string(),
            fault: Box::new(fault),
        };
        for (index, operation) in block.operations.iter().enumerate() {
            let value = operation.outputs.first().map_or("", |port| port.name.as_str());
            importer.operation(operation).map_err(|fault| at(index, &operation.op, value, fault))?;
        }
        importer.finish(&block.outputs).map_err(|fault| at(block.operations.len(), "return", "", fault))
    }

    fn function(&self, name: Option<&str>) -> Result<(&str, &proto::Function), ReadError> {
        let functions = &self.program.functions;
        let default = Some(self.description.default_function.as_str()).filter(|name| !name.is_empty());
        let only = functions.keys().next().filter(|_| functions.len() == 1).map(String::as_str);
        let name = name.or(default).or(only).unwrap_or(MAIN);
        functions.get_key_value(name).map(|(name, function)| (name.as_str(), function)).ok_or_else(|| ReadError::Function {
            name: name.to_string(),
            known: functions.keys().cloned().collect::<Vec<_>>().join(", "),
        })
    }

    /// What the description says about an input of a function.
    fn feature(&self, function: &str, input: &str) -> Option<&proto::FeatureDescription> {
        let described = self.description.functions.iter().find(|described| described.name == function);
        described.map_or(&self.description.inputs, |described| &described.inputs).iter().find(|feature| feature.name == input)
    }
}

fn file(path: &Path, limit: usize) -> Result<Mapping, ReadError> {
    let fail = |problem: String| ReadError::File { path: path.to_path_buf(), problem };
    let mapping = Mapping::open(path).map_err(|error| fail(error.source.to_string()))?;
    match mapping.bytes().len() {
        length if length > limit => Err(fail(format!("it has {length} bytes; {limit} are read at most"))),
        _ => Ok(mapping),
    }
}

fn outline(name: &str, function: &proto::Function) -> FunctionOutline {
    let block = function.blocks.get(&function.opset);
    let mut operations = BTreeMap::new();
    for operation in block.iter().flat_map(|block| &block.operations) {
        *operations.entry(operation.op.clone()).or_insert(0) += 1;
    }
    let input = |port: &proto::NamedValueType| {
        let contents = value::state(port.ty.as_ref());
        let ty = value::declared(&port.name, contents.unwrap_or(port.ty.as_ref()));
        let shown = ty.map_or_else(|fault| fault.to_string(), |ty| ty.to_string());
        (port.name.clone(), if contents.is_some() { format!("state<{shown}>") } else { shown })
    };
    FunctionOutline {
        name: name.to_string(),
        opset: function.opset.clone(),
        inputs: function.inputs.iter().map(input).collect(),
        outputs: block.map_or_else(Vec::new, |block| block.outputs.clone()),
        operations,
    }
}

fn kind(found: Option<&ModelKind>) -> &'static str {
    match found {
        Some(ModelKind::NeuralNetwork(_)) => "a neural network",
        Some(ModelKind::NeuralNetworkClassifier(_)) => "a neural network classifier",
        Some(ModelKind::NeuralNetworkRegressor(_)) => "a neural network regressor",
        Some(ModelKind::Pipeline(_) | ModelKind::PipelineClassifier(_) | ModelKind::PipelineRegressor(_)) => "a pipeline of models",
        Some(ModelKind::MlProgram(_)) => "an ML Program",
        None => "a model of another kind",
    }
}
