//! The framework's classes and the exact types of their methods.

use crate::library::Search;
use crate::objc::Core;
use crate::objc::methods::methods;
use crate::objc::types::{BlockRef, Bool, Id, SurfaceRef};

methods! {
    pub(super) struct DescriptorMethods for "_ANEInMemoryModelDescriptor" {
        text: + "modelWithMILText:weights:optionsPlist:" (text: Id, weights: Id, options: Id) -> Id;
        network: + "modelWithNetworkDescription:weights:optionsPlist:" (network: Id, weights: Id, options: Id) -> Id;
    }
}
methods! {
    pub(super) struct InMemoryMethods for "_ANEInMemoryModel" {
        make: + "inMemoryModelWithDescriptor:" (descriptor: Id) -> Id;
        identifier: - "hexStringIdentifier" () -> Id;
        compile: - "compileWithQoS:options:error:" (quality: u32, options: Id, error: *mut Id) -> Bool;
        load_it: - "loadWithQoS:options:error:" (quality: u32, options: Id, error: *mut Id) -> Bool;
        evaluate: - "evaluateWithQoS:options:request:error:" (quality: u32, options: Id, request: Id, error: *mut Id) -> Bool;
        unload: - "unloadWithQoS:error:" (quality: u32, error: *mut Id) -> Bool;
        @optional {
            path: - "localModelPath" () -> Id;
            attributes: - "modelAttributes" () -> Id;
            map: - "mapIOSurfacesWithRequest:cacheInference:error:" (request: Id, cache: Bool, error: *mut Id) -> Bool;
            unmap: - "unmapIOSurfacesWithRequest:" (request: Id);
            exists: - "compiledModelExists" () -> Bool;
            state: - "state" () -> u64;
            inner: - "model" () -> Id;
            set_depth: - "setQueueDepth:" (depth: i8);
            set_stats: - "setPerfStatsMask:" (mask: u32);
        }
    }
}
methods! {
    pub(super) struct ModelMethods for "_ANEModel" {
        make: + "modelAtURL:key:" (folder: Id, key: Id) -> Id;
        @optional {
            attributes: - "modelAttributes" () -> Id;
            inputs: - "inputSymbolIndicesForProcedureIndex:" (procedure: u32) -> Id;
            outputs: - "outputSymbolIndicesForProcedureIndex:" (procedure: u32) -> Id;
            handle: - "programHandle" () -> u64;
            set_stats: - "setPerfStatsMask:" (mask: u32);
        }
    }
}
methods! {
    pub(super) struct ClientMethods for "_ANEClient" {
        shared: + "sharedConnection" () -> Id;
        compile: - "compileModel:options:qos:error:" (model: Id, options: Id, quality: u32, error: *mut Id) -> Bool;
        load_it: - "loadModel:options:qos:error:" (model: Id, options: Id, quality: u32, error: *mut Id) -> Bool;
        unload: - "unloadModel:options:qos:error:" (model: Id, options: Id, quality: u32, error: *mut Id) -> Bool;
        evaluate: - "evaluateWithModel:options:request:qos:error:" (model: Id, options: Id, request: Id, quality: u32, error: *mut Id) -> Bool;
        @optional {
            direct: - "initWithRestrictedAccessAllowed:" (allowed: Bool) -> Id;
            evaluate_directly: - "doEvaluateDirectWithModel:options:request:qos:error:" (model: Id, options: Id, request: Id, quality: u32, error: *mut Id) -> Bool;
            exists: - "compiledModelExistsFor:" (model: Id) -> Bool;
        }
    }
}
methods! {
    pub(super) struct RequestMethods for "_ANERequest" {
        short: + "requestWithInputs:inputIndices:outputs:outputIndices:procedureIndex:" (inputs: Id, input_indices: Id, outputs: Id, output_indices: Id, procedure: Id) -> Id;
        @optional {
            long: + "requestWithInputs:inputIndices:outputs:outputIndices:weightsBuffer:perfStats:procedureIndex:" (inputs: Id, input_indices: Id, outputs: Id, output_indices: Id, weights: Id, stats: Id, procedure: Id) -> Id;
            set_completion: - "setCompletionHandler:" (block: BlockRef);
            stats: - "perfStatsArray" () -> Id;
            validate: - "validate" () -> Bool;
        }
    }
}
methods! {
    pub(super) struct SurfaceObjectMethods for "_ANEIOSurfaceObject" {
        make: + "objectWithIOSurface:" (surface: SurfaceRef) -> Id;
    }
}
methods! {
    pub(super) struct StatsMethods for "_ANEPerformanceStats" {
        make: + "statsWithHardwareExecutionNS:" (time: u64) -> Id;
        time: - "hwExecutionTime" () -> u64;
    }
}
methods! {
    pub(super) struct DeviceMethods for "_ANEDeviceInfo" {
        subtype: + "aneSubType" () -> Id;
    }
}

/// All tables. Of the client and its models some systems' routes make no use, so they are optional like statistics.
pub(super) struct Tables {
    pub(super) descriptor: DescriptorMethods,
    pub(super) in_memory: InMemoryMethods,
    pub(super) request: RequestMethods,
    pub(super) surface_object: SurfaceObjectMethods,
    pub(super) model: Option<ModelMethods>,
    pub(super) client: Option<ClientMethods>,
    pub(super) stats: Option<StatsMethods>,
    pub(super) device: Option<DeviceMethods>,
}

impl Tables {
    pub(super) fn load(core: &Core, search: &mut Search<'_>) -> Option<Self> {
        let descriptor = DescriptorMethods::load(core, search, true);
        let in_memory = InMemoryMethods::load(core, search, true);
        let request = RequestMethods::load(core, search, true);
        let surface_object = SurfaceObjectMethods::load(core, search, true);
        let model = ModelMethods::load(core, search, false);
        let client = ClientMethods::load(core, search, false);
        let stats = StatsMethods::load(core, search, false);
        let device = DeviceMethods::load(core, search, false);
        Some(Self {
            descriptor: descriptor?,
            in_memory: in_memory?,
            request: request?,
            surface_object: surface_object?,
            model,
            client,
            stats,
            device,
        })
    }
}
