//! From the numbers of a weight to its compressed form, format by format.

use super::blocks::Blocks;
use super::encoded::{Encoded, Part, Step};
use super::linear::{Integers, Line};
use super::{CompressError, Format, Slot, Tables, palette};
use aneforge_mil::{Body, Constant, DType, WeightError};
use half::f16;

/// The numbers of a weight.
///
/// # Errors
/// [`CompressError::Read`], also for numbers that are not finite: no format keeps them.
pub fn read(body: &Body, slot: &Slot) -> Result<Vec<f16>, CompressError> {
    let fail = |source| CompressError::Read { weight: body.value(slot.value).name.clone(), source };
    let Some(Constant::Weight(weight)) = body.constant(slot.value) else {
        return Err(fail(WeightError::Other("it is no constant".to_string())));
    };
    let values = weight.to_fp16().map_err(fail)?;
    match values.iter().position(|value| !value.is_finite()) {
        Some(place) => Err(fail(WeightError::Other(format!("element {place} is {}; mend the model first", values[place])))),
        None => Ok(values),
    }
}

/// Puts a weight into a format. `importance` has one number per input channel that weighs the errors there, for example the mean
/// square of what the channel receives.
///
/// # Errors
/// [`CompressError::Rule`] where the format cannot hold the weight.
pub fn encode(
    body: &Body,
    slot: &Slot,
    values: &[f16],
    format: Format,
    importance: Option<&[f32]>,
) -> Result<Encoded, CompressError> {
    let source = Source::new(body, slot, values, format, importance)?;
    let (steps, dense) = match format {
        Format::Int8 { symmetric } => source.affine(symmetric)?,
        Format::Blockwise { bits, block_size, offset } => source.blockwise(bits, block_size, offset)?,
        Format::Palette { bits, tables } => source.palette(bits, tables)?,
        Format::Sparse { sparsity } => source.sparse(sparsity, None)?,
        Format::SparsePalette { sparsity, bits } => source.sparse(sparsity, Some(bits))?,
    };
    Ok(Encoded { format, dense, steps })
}

/// Operators with their data, and what they expand to.
type Parts = (Vec<Step>, Vec<f16>);

/// A weight on its way into a format.
struct Source<'a> {
    name: &'a str,
    shape: &'a [usize],
    slot: &'a Slot,
    format: Format,
    /// Each element with the weight of its error.
    elements: Vec<(f16, f32)>,
    /// Whether the weights of errors differ.
    weighed: bool,
}

impl<'a> Source<'a> {
    fn new(
        body: &'a Body,
        slot: &'a Slot,
        values: &[f16],
        format: Format,
        importance: Option<&[f32]>,
    ) -> Result<Self, CompressError> {
        let value = body.value(slot.value);
        let mut source =
            Self { name: &value.name, shape: &value.ty.shape, slot, format, elements: Vec::new(), weighed: importance.is_some() };
        let (inputs, step) = (source.shape[slot.input_axis], source.shape[slot.input_axis + 1..].iter().product::<usize>());
        source.elements = match importance {
            Some(channels) if channels.len() != inputs || channels.iter().any(|value| !value.is_finite() || *value < 0.0) => {
                return Err(source.rule("importance needs a number of at least zero for each input channel"));
            }
            Some(channels) => values.iter().enumerate().map(|(place, &value)| (value, channels[place / step % inputs])).collect(),
            None => values.iter().map(|&value| (value, 1.0)).collect(),
        };
        Ok(source)
    }

    fn rule(&self, rule: impl Into<String>) -> CompressError {
        CompressError::Rule {
            weight: self.name.to_string(),
            shape: self.shape.to_vec(),
            format: self.format.to_string(),
            rule: rule.into(),
        }
    }

    fn read(&self, source: WeightError) -> CompressError {
        CompressError::Read { weight: self.name.to_string(), source }
    }

    fn codes(&self, dtype: DType, shape: &[usize], codes: &[u8]) -> Result<Part, CompressError> {
        Part::codes(dtype, shape, codes).map_err(|error| self.read(error))
    }

    fn fp16(&self, shape: Vec<usize>, values: &[f16]) -> Result<Part, CompressError> {
        Part::fp16(shape, values).map_err(|error| self.read(error))
    }

    fn channels(&self) -> usize {
        self.shape[self.slot.channel_axis]
    }

    /// Blocks of equal runs of output and input channels.
    fn blocks(&self, channels: usize, inputs: usize) -> Result<Blocks, CompressError> {
        let mut grid = vec![1; self.shape.len()];
        grid[self.slot.channel_axis] = channels;
        grid[self.slot.input_axis] = inputs;
        Blocks::new(self.shape, grid).ok_or_else(|| self.rule("it cannot be cut into equal blocks"))
    }

    fn quantised(&self, blocks: &Blocks, integers: Integers) -> (Vec<u8>, Vec<Line>, Vec<f16>) {
        let (codes, lines) = blocks.encode(&self.elements, |_, elements, codes| {
            let (values, importance) = split(elements, self.weighed);
            integers.quantise(&values, importance.as_deref(), codes)
        });
        let mut dense = vec![f16::ZERO; codes.len()];
        blocks.for_each(|place, block| dense[place] = integers.decode(integers.integer(codes[place]), lines[block]));
        (codes, lines, dense)
    }

    fn affine(&self, symmetric: bool) -> Result<Parts, CompressError> {
        let channels = self.channels();
        let (codes, lines, dense) = self.quantised(&self.blocks(channels, 1)?, Integers { bits: 8, offset: !symmetric });
        let (dtype, zero_point) = if symmetric {
            (DType::Int8, Part::Number(DType::Int8, 0.0))
        } else {
            (DType::UInt8, self.codes(DType::UInt8, &[channels], &offsets(&lines))?)
        };
        let ports = vec![
            ("quantized_data", self.codes(dtype, self.shape, &codes)?),
            ("zero_point", zero_point),
            ("scale", self.fp16(vec![channels], &scales(&lines))?),
            ("axis", Part::Number(DType::Int32, self.slot.channel_axis as f64)),
        ];
        Ok((vec![Step { op: "constexpr_affine_dequantize", ports }], dense))
    }

    fn blockwise(&self, bits: u8, block_size: Option<usize>, offset: bool) -> Result<Parts, CompressError> {
        let inputs = self.shape[self.slot.input_axis];
        let size = block_size.unwrap_or(inputs);
        if !inputs.is_multiple_of(size) {
            return Err(self.rule(format!(
                "its {inputs} input channels are no multiple of {size}; choose a block that divides them, or -channel"
            )));
        }
        let blocks = self.blocks(self.channels(), inputs / size)?;
        let (codes, lines, dense) = self.quantised(&blocks, Integers { bits, offset });
        let dtype = match (bits, offset) {
            (4, false) => DType::Int4,
            (4, true) => DType::UInt4,
            (_, false) => DType::Int8,
            (_, true) => DType::UInt8,
        };
        let mut ports =
            vec![("data", self.codes(dtype, self.shape, &codes)?), ("scale", self.fp16(blocks.grid.clone(), &scales(&lines))?)];
        if offset {
            ports.push(("offset", self.codes(dtype, &blocks.grid, &offsets(&lines))?));
        }
        Ok((vec![Step { op: "constexpr_blockwise_shift_scale", ports }], dense))
    }

    fn palette(&self, bits: u8, tables: Tables) -> Result<Parts, CompressError> {
        let channels = self.channels();
        let size = match tables {
            Tables::Tensor => channels,
            Tables::Group(size) => size,
        };
        if !channels.is_multiple_of(size) {
            return Err(
                self.rule(format!("its {channels} output channels are no multiple of {size}; choose a group that divides them"))
            );
        }
        let blocks = self.blocks(channels / size, 1)?;
        let (codes, table) = palettised(&blocks, bits, &self.elements, self.weighed);
        let entries = 1 << bits;
        let mut dense = vec![f16::ZERO; codes.len()];
        blocks.for_each(|place, block| dense[place] = table[block * entries + usize::from(codes[place])]);
        let mut lut = blocks.grid.clone();
        lut.extend([entries, 1]);
        let ports = vec![("indices", self.codes(index_type(bits), self.shape, &codes)?), ("lut", self.fp16(lut, &table)?)];
        Ok((vec![Step { op: "constexpr_lut_to_dense", ports }], dense))
    }

    fn sparse(&self, sparsity: Option<u8>, palette: Option<u8>) -> Result<Parts, CompressError> {
        let kept = kept(&self.elements, sparsity);
        let nonzero: Vec<(f16, f32)> =
            self.elements.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(&element, _)| element).collect();
        if nonzero.is_empty() {
            return Err(self.rule("every element is zero; leave the weight out of the model"));
        }
        if sparsity.is_none() && nonzero.len() * 2 > kept.len() {
            let percent = 100 * (kept.len() - nonzero.len()) / kept.len();
            return Err(
                self.rule(format!("{percent} % of its elements are zero, the engine wants half; ask for sparse50 to prune it"))
            );
        }
        let mask: Vec<u8> = kept.iter().map(|&kept| u8::from(kept)).collect();
        let mask = self.codes(DType::UInt1, self.shape, &mask)?;
        let mut values: Vec<f16> = nonzero.iter().map(|element| element.0).collect();
        let steps = match palette {
            Some(bits) => {
                let one = Blocks::new(&[values.len()], vec![1]).ok_or_else(|| self.rule("it is empty"))?;
                let (codes, table) = palettised(&one, bits, &nonzero, self.weighed);
                codes.iter().zip(&mut values).for_each(|(&code, value)| *value = table[usize::from(code)]);
                let mut lut = vec![1; self.shape.len()];
                lut.extend([table.len(), 1]);
                let ports = vec![
                    ("indices_mask", mask),
                    ("indices_nonzero_data", self.codes(index_type(bits), &[codes.len()], &codes)?),
                    ("lut", self.fp16(lut, &table)?),
                ];
                let fill = vec![("nonzero_data", Part::Before(1)), ("mask", Part::Before(0))];
                vec![Step { op: "constexpr_lut_to_sparse", ports }, Step { op: "constexpr_sparse_to_dense", ports: fill }]
            }
            None => {
                let data = self.fp16(vec![values.len()], &values)?;
                vec![Step { op: "constexpr_sparse_to_dense", ports: vec![("nonzero_data", data), ("mask", mask)] }]
            }
        };
        let mut next = values.into_iter();
        let dense = kept.iter().map(|&kept| if kept { next.next().unwrap_or(f16::ZERO) } else { f16::ZERO }).collect();
        Ok((steps, dense))
    }
}

fn index_type(bits: u8) -> DType {
    match bits {
        1 => DType::UInt1,
        2 => DType::UInt2,
        3 => DType::UInt3,
        4 => DType::UInt4,
        6 => DType::UInt6,
        _ => DType::UInt8,
    }
}

fn scales(lines: &[Line]) -> Vec<f16> {
    lines.iter().map(|line| line.scale).collect()
}

fn offsets(lines: &[Line]) -> Vec<u8> {
    lines.iter().map(|line| line.offset as u8).collect()
}

fn split(elements: &[(f16, f32)], weighed: bool) -> (Vec<f16>, Option<Vec<f32>>) {
    (elements.iter().map(|element| element.0).collect(), weighed.then(|| elements.iter().map(|element| element.1).collect()))
}

fn palettised(blocks: &Blocks, bits: u8, elements: &[(f16, f32)], weighed: bool) -> (Vec<u8>, Vec<f16>) {
    let (codes, tables) = blocks.encode(elements, |_, elements, codes| {
        let (values, importance) = split(elements, weighed);
        palette::palettise(&values, importance.as_deref(), bits, codes)
    });
    (codes, tables.concat())
}

/// Which elements stay: those that are not zero, after the given percentage of smallest magnitudes went, first ones first where
/// they are equal.
fn kept(elements: &[(f16, f32)], sparsity: Option<u8>) -> Vec<bool> {
    let magnitude = |element: &(f16, f32)| usize::from(element.0.to_bits() & 0x7fff);
    let mut left = elements.len() * usize::from(sparsity.unwrap_or(0)) / 100;
    // Magnitudes are 15 bits: counting them finds how many of each go without sorting.
    let mut going = vec![0usize; 1 << 15];
    elements.iter().for_each(|element| going[magnitude(element)] += 1);
    for count in &mut going {
        *count = (*count).min(left);
        left -= *count;
    }
    let stays = |element: &(f16, f32)| {
        let at = magnitude(element);
        let goes = going[at] > 0;
        going[at] -= usize::from(goes);
        !goes && at != 0
    };
    elements.iter().map(stays).collect()
}
