//! Which chip families have an operator, and who says so.

use std::fmt;

/// How the families stand to an operator, oldest first, with the limits that the source names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Support {
    /// Standing per family of [`FAMILIES`]. The last one stands for every later family too.
    pub families: [Standing; 4],
    /// What the engine's form is limited to, in words; empty where nothing is said.
    pub limits: &'static str,
    /// Who says so.
    pub source: &'static str,
}

/// Engine generations that [`Support::families`] speaks of, by Apple's A-series number: those of M1, M2, M3, M4 and later.
pub const FAMILIES: [u8; 4] = [13, 14, 15, 16];

/// How one family stands to an operator, in the words of the ANE guide's appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// The engine executes it.
    Native,
    /// It is composed of other operators, folded, or done in software around the engine.
    Bridged,
    /// The compiler knows it and refuses it for this family.
    Gated,
    /// No compiler for the engine takes it.
    Absent,
}

impl Support {
    /// First family with a native form, by its A-series number; `None` where no engine has one.
    pub fn native_from(&self) -> Option<u8> {
        self.families.iter().position(|&standing| standing == Standing::Native).map(|index| FAMILIES[index])
    }

    /// How a family, by its A-series number, has the operator; families before the first fare like that one.
    pub fn standing(&self, family: u8) -> Standing {
        let place = FAMILIES.iter().rposition(|&from| from <= family).unwrap_or(0);
        self.families[place]
    }

    /// The same with limits.
    pub const fn limited(self, limits: &'static str) -> Self {
        Self { limits, ..self }
    }

    /// The same with another source.
    pub const fn told_by(self, source: &'static str) -> Self {
        Self { source, ..self }
    }
}

impl Standing {
    /// The letter of the ANE guide's tables: N, B, G or X.
    pub fn letter(self) -> char {
        match self {
            Self::Native => 'N',
            Self::Bridged => 'B',
            Self::Gated => 'G',
            Self::Absent => 'X',
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Bridged => "bridged",
            Self::Gated => "gated",
            Self::Absent => "absent",
        })
    }
}

/// The ANE guide, arXiv 2606.22283, appendix A (operator by device).
pub const GUIDE: &str = "ANE guide, arXiv 2606.22283, appendix A";

/// Native on every family from that of the M1 on, according to the ANE guide.
pub const ALL_FAMILIES: Support = everywhere(Standing::Native);

/// No engine has it, according to the ANE guide.
pub const NOWHERE: Support = everywhere(Standing::Absent);

/// Software or folding on every family, according to the ANE guide.
pub const BRIDGED: Support = everywhere(Standing::Bridged);

/// Native from a later generation on and bridged before it, according to the ANE guide.
pub const fn native_from(generation: u8) -> Support {
    since(generation, Standing::Bridged)
}

/// Native from a later generation on and refused before it, according to the ANE guide.
pub const fn gated_before(generation: u8) -> Support {
    since(generation, Standing::Gated)
}

const fn everywhere(standing: Standing) -> Support {
    Support { families: [standing; 4], limits: "", source: GUIDE }
}

const fn since(generation: u8, before: Standing) -> Support {
    let mut families = [Standing::Native; 4];
    let mut index = 0;
    while index < families.len() && FAMILIES[index] < generation {
        families[index] = before;
        index += 1;
    }
    Support { families, limits: "", source: GUIDE }
}
