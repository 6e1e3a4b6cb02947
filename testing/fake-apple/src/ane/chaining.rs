//! Classes of doors that are reported closed: chaining, performance counters, events. They exist and lead nowhere.

use crate::objc::{ClassSpec, Id, Method, Sel, method};
use std::ffi::c_void;

/// Body of an object that only exists.
struct Shell;

fn shell(class: &str) -> Id {
    Id::make(class, Shell).autoreleased()
}

extern "C" fn buffer(_: Id, _: Sel, _surface: Id, _symbol: Id, _source: i64) -> Id {
    shell("_ANEBuffer")
}

extern "C" fn output_sets(_: Id, _: Sel, statistics: crate::objc::SurfaceRef, _buffers: Id) -> Id {
    // maderix/ANE: the surface for statistics must not be null.
    if statistics.0.is_null() { Id::NIL } else { shell("_ANEIOSurfaceOutputSets") }
}

#[allow(clippy::too_many_arguments)]
extern "C" fn chain(_: Id, _: Sel, _a: Id, _b: Id, _c: Id, _d: Id, _e: Id, _f: Id, _g: Id, _h: Id, _i: Id) -> Id {
    shell("_ANEChainingRequest")
}

extern "C" fn buffers_ready(_: Id, _: Sel, _procedure: u32, _buffers: Id, _values: Id, _delay: u64) -> Id {
    shell("_ANEInputBuffersReady")
}

extern "C" fn output_set(_: Id, _: Sel, _procedure: u32, _set: u32, _value: u64, _silent: bool, _open: bool) -> Id {
    shell("_ANEOutputSetEnqueue")
}

extern "C" fn is_valid(_: Id, _: Sel) -> bool {
    true
}

/// Statistics are nil wherever anybody asked (Espresso, dev-erik/ANE).
extern "C" fn no_statistics(_: Id, _: Sel, _nanoseconds: u64) -> Id {
    Id::NIL
}

extern "C" fn no_statistics_of(_: Id, _: Sel, _buffer: *mut *mut c_void, _size: *mut u32) -> Id {
    Id::NIL
}

/// Bits 1, 2, 4 and 8 are the valid ones (Espresso, M3 Max).
extern "C" fn driver_mask(_: Id, _: Sel, mask: u32) -> u32 {
    if mask < 16 { mask } else { 0 }
}

extern "C" fn nothing(this: Id, _: Sel) -> Id {
    this.release();
    Id::NIL
}

extern "C" fn no_time(_: Id, _: Sel) -> u64 {
    0
}

static STATISTICS_CLASS: &[Method] = &[
    method!("statsWithHardwareExecutionNS:", no_statistics, 1),
    method!("statsWithRequestPerformanceBuffer:statsBufferSize:", no_statistics_of, 2),
    method!("driverMaskForANEFMask:", driver_mask, 1),
];

static STATISTICS: &[Method] = &[method!("init", nothing, 0), method!("hwExecutionTime", no_time, 0)];

pub(super) static SPECS: &[ClassSpec] = &[
    ClassSpec {
        name: "_ANEBuffer",
        superclass: "NSObject",
        class_methods: &[method!("bufferWithIOSurfaceObject:symbolIndex:source:", buffer, 3)],
        methods: &[],
    },
    ClassSpec {
        name: "_ANEIOSurfaceOutputSets",
        superclass: "NSObject",
        class_methods: &[method!("objectWithstatsSurRef:outputBuffer:", output_sets, 2)],
        methods: &[],
    },
    ClassSpec {
        name: "_ANEChainingRequest",
        superclass: "NSObject",
        class_methods: &[method!(
            "chainingRequestWithInputs:outputSets:lbInputSymbolId:lbOutputSymbolId:procedureIndex:signalEvents:transactionHandle:fwEnqueueDelay:memoryPoolId:",
            chain,
            9
        )],
        methods: &[method!("validate", is_valid, 0)],
    },
    ClassSpec {
        name: "_ANEInputBuffersReady",
        superclass: "NSObject",
        class_methods: &[method!(
            "inputBuffersWithProcedureIndex:inputBufferInfoIndex:inputFreeValue:executionDelay:",
            buffers_ready,
            4
        )],
        methods: &[],
    },
    ClassSpec {
        name: "_ANEOutputSetEnqueue",
        superclass: "NSObject",
        class_methods: &[method!("outputSetWithProcedureIndex:setIndex:signalValue:signalNotRequired:isOpenLoop:", output_set, 5)],
        methods: &[],
    },
    ClassSpec { name: "_ANEPerformanceStats", superclass: "NSObject", class_methods: STATISTICS_CLASS, methods: STATISTICS },
];
