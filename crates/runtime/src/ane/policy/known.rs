//! What the frameworks' errors usually mean. They say little themselves; people who met them found out more.

/// A failure that somebody met, and what it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The framework's code, where it identifies the failure.
    pub code: Option<i64>,
    /// Words in the framework's text that identify it; empty where the code does.
    pub text: &'static str,
    /// Where it happens: `compile`, `load`, `bind`, `execute`; empty for anywhere.
    pub step: &'static str,
    /// What it usually comes from.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Who met it.
    pub source: &'static str,
}

const GUIDE: &str = "ANE guide, arXiv 2606.22283";
const PACKAGE: &str = "PyPI package aneforge 0.4.0";
const ORION: &str = "Orion, arXiv 2603.06728";
const MADERIX: &str = "maderix/ANE";

/// Most telling first: a text beats a code, and a longer text a shorter one.
pub const KNOWN_FAILURES: &[Cause] = &[
    Cause {
        code: None,
        text: "status=0x1d",
        step: "execute",
        cause: "surfaces that are too small or of unequal sizes, or a shape that the engine cannot run (rows under 32 elements, masks of one channel)",
        remedy: "keep the surfaces that binding gave; widen the last axis to a multiple of 32",
        source: ORION,
    },
    Cause {
        code: None,
        text: "status=0x16",
        step: "execute",
        cause: "a fault of the engine's driver in macOS 14 betas",
        remedy: "update macOS",
        source: "reports on Core ML stable diffusion",
    },
    Cause {
        code: None,
        text: "must re-compile",
        step: "",
        cause: "the daemon no longer has the program: about 128 are loaded in this process, or the daemon restarted",
        remedy: "drop executables that are not needed, or lower the limit of loaded programs",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "Must re-compile the E5 bundle",
        step: "",
        cause: "the bundle was compiled by another process; compiled programs live in the daemon's cache of one process",
        remedy: "compile it in this process",
        source: PACKAGE,
    },
    Cause {
        code: None,
        text: "Some ops are not supported on any of the specified backends",
        step: "compile",
        cause: "an operator that this chip's compiler does not lower (three-dimensional convolution, matrix products of rank 5, state types)",
        remedy: "compile the graph for this chip, which checks operators first; `aneforge ops` lists them",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "exceeds ANE family",
        step: "compile",
        cause: "an axis that is longer than the chip's limit",
        remedy: "split the axis",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "can not fit the Kmem",
        step: "compile",
        cause: "a matrix product whose right side needs more than the 64 KiB of kernel memory of the engine",
        remedy: "split the output channels",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "InvalidMILProgram",
        step: "compile",
        cause: "a text that the engine's parser refuses: wrong header for the op-set, a wrong type, an output that nothing makes",
        remedy: "compile the graph for this route; report the program if it was",
        source: ORION,
    },
    Cause {
        code: None,
        text: "CompilationFailure",
        step: "compile",
        cause: "an operator that this chip's compiler does not lower; it gives no diagnostics",
        remedy: "compile the graph for this chip and route; leave out operators until it compiles to find the one",
        source: "Espresso (christopherkarani), issue 18",
    },
    Cause {
        code: None,
        text: "ANECCompile() FAILED",
        step: "compile",
        cause: "an operator that is not lowered, a tensor that is too big, or a process that used up its compilations (about 119)",
        remedy: "compile the graph for this chip and route; start a new process if many programs were compiled in this one",
        source: MADERIX,
    },
    Cause {
        code: None,
        text: "Op has not been encoded",
        step: "execute",
        cause: "an operation was reset before it was encoded once",
        remedy: "report it: a defect of this library",
        source: PACKAGE,
    },
    Cause {
        code: None,
        text: "Invalid BufferType",
        step: "bind",
        cause: "a kind of buffer that this system does not know",
        remedy: "report it with the version of macOS",
        source: PACKAGE,
    },
    Cause {
        code: None,
        text: "verifyBundleAtPath",
        step: "load",
        cause: "macOS 27 refuses the folder of a model",
        remedy: "use the e5rt route",
        source: "omlx, issue 3124",
    },
    Cause {
        code: None,
        text: "0x20004",
        step: "load",
        cause: "a program with more weights than the engine maps (15 GiB failed, 7.9 GiB loaded)",
        remedy: "split the program",
        source: "omlx",
    },
    Cause {
        code: None,
        text: "0xe00002e2",
        step: "load",
        cause: "a program that this machine's daemon did not compile: the kernel checks its signature",
        remedy: "compile it on this machine",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "0xe00002c7",
        step: "",
        cause: "a call that needs an entitlement of Apple's",
        remedy: "report it: a defect of this library",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "interrupted",
        step: "",
        cause: "the daemon ended or restarted; the program was loaded again once",
        remedy: "try again; look for a crash report of aned or ANECompilerService",
        source: GUIDE,
    },
    Cause {
        code: None,
        text: "invalidated",
        step: "",
        cause: "the connection to the daemon was closed",
        remedy: "try again; open the device anew",
        source: GUIDE,
    },
    Cause {
        code: Some(4097),
        text: "",
        step: "",
        cause: "the connection to the daemon was interrupted: it ended or restarted",
        remedy: "try again; look for a crash report of aned or ANECompilerService",
        source: "Foundation, FoundationErrors.h",
    },
    Cause {
        code: Some(4099),
        text: "",
        step: "",
        cause: "the connection to the daemon is no longer valid",
        remedy: "open the device anew",
        source: "Foundation, FoundationErrors.h",
    },
    Cause {
        code: Some(11),
        text: "",
        step: "compile",
        cause: "the program does not fit the engine, and no other unit was allowed",
        remedy: "compile the graph for this chip, which checks operators and sizes first",
        source: PACKAGE,
    },
    Cause {
        code: Some(13),
        text: "",
        step: "bind",
        cause: "surfaces cannot be mapped ahead on in-memory models",
        remedy: "report it: a defect of this library",
        source: "ane-infer (thebasedcapital)",
    },
    Cause {
        code: Some(2),
        text: "",
        step: "execute",
        cause: "a symbol index that belongs to another procedure",
        remedy: "report it: a defect of this library",
        source: "ane-infer (thebasedcapital)",
    },
    Cause {
        code: Some(8),
        text: "",
        step: "execute",
        cause: "the engine refused the request",
        remedy: "check shapes against the chip's limits",
        source: ORION,
    },
];

/// The likely cause of a failure in a step.
pub fn cause(step: &str, code: Option<i64>, text: &str) -> Option<&'static Cause> {
    let at = |known: &&Cause| known.step.is_empty() || known.step == step;
    let named = KNOWN_FAILURES.iter().filter(at).filter(|known| !known.text.is_empty() && text.contains(known.text));
    let numbered = || KNOWN_FAILURES.iter().filter(at).find(|known| known.code.is_some() && known.code == code);
    named.max_by_key(|known| known.text.len()).or_else(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_decides_before_the_code_and_the_step_limits_both() {
        let text = "ANEProgramProcessRequestDirect() Failed with status=0x1d : statusType=0x9: Program Inference error";
        assert_eq!(cause("execute", Some(8), text).map(|known| known.text), Some("status=0x1d"));
        assert_eq!(cause("execute", Some(8), "something").map(|known| known.code), Some(Some(8)));
        assert_eq!(cause("compile", Some(8), "something"), None);
        let bundle = "GetANEFModel: Must re-compile the E5 bundle";
        assert_eq!(cause("load", None, bundle).map(|known| known.text), Some("Must re-compile the E5 bundle"));
        let both = "ANECCompile() FAILED: err=(CompilationFailure)";
        assert!(cause("compile", Some(1), both).is_some_and(|known| known.text == "ANECCompile() FAILED"));
    }

    #[test]
    fn every_entry_can_be_found_and_says_what_to_do_and_who_met_it() {
        for known in KNOWN_FAILURES {
            assert_eq!(known.code.is_some(), known.text.is_empty(), "{known:?} is found by a code or by a text");
            assert!(!known.cause.is_empty() && !known.remedy.is_empty() && !known.source.is_empty(), "{known:?}");
            assert!(["", "compile", "load", "bind", "execute"].contains(&known.step), "{known:?}");
            assert_eq!(cause(known.step, known.code, known.text), Some(known));
        }
    }
}
