//! Sums of products over named axes.

use super::*;

/// An equation such as `bij,bjk->bik`, taken apart.
struct Equation {
    operands: Vec<Vec<char>>,
    result: Vec<char>,
}

impl Equation {
    /// One letter per axis; without an arrow the result has the letters that occur once, in alphabetical order, as in numpy.
    fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = text.split_once("->").map_or((text.as_str(), None), |(left, right)| (left, Some(right)));
        let operands: Vec<Vec<char>> = left.split(',').map(|term| term.chars().collect()).collect();
        let all: Vec<char> = operands.concat();
        let result = match right {
            Some(right) => right.chars().collect(),
            None => {
                let mut once: Vec<char> = all.iter().copied().filter(|c| all.iter().filter(|d| *d == c).count() == 1).collect();
                once.sort_unstable();
                once
            }
        };
        let distinct = |term: &[char]| term.iter().enumerate().all(|(at, c)| c.is_ascii_alphabetic() && !term[..at].contains(c));
        let fits = operands.iter().all(|term| distinct(term)) && distinct(&result) && result.iter().all(|c| all.contains(c));
        fits.then_some(Self { operands, result })
    }

    fn text(operands: &[&[char]], result: &[char]) -> String {
        let terms: Vec<String> = operands.iter().map(|term| term.iter().collect()).collect();
        format!("{}->{}", terms.join(","), result.iter().collect::<String>())
    }
}

/// The extent of each letter, where all uses of it agree.
fn extents(s: &Site<'_>, equation: &Equation) -> Option<Vec<(char, usize)>> {
    let mut known: Vec<(char, usize)> = Vec::new();
    for (term, ty) in equation.operands.iter().zip(s.all("values")) {
        for (&letter, &extent) in term.iter().zip(&ty.shape) {
            match known.iter().find(|(other, _)| *other == letter) {
                Some(&(_, other)) if other != extent => return None,
                Some(_) => {}
                None => known.push((letter, extent)),
            }
        }
    }
    Some(known)
}

/// A value whose axes carry letters.
#[derive(Clone)]
struct Term {
    value: ValueId,
    letters: Vec<char>,
}

impl Term {
    fn extent(&self, l: &Lowering, letter: char) -> usize {
        self.letters.iter().position(|&other| other == letter).map_or(1, |axis| l.shape(self.value)[axis])
    }

    /// The same axes in another order.
    fn ordered(self, l: &mut Lowering, letters: &[char]) -> Result<Self, GraphError> {
        if self.letters == letters {
            return Ok(self);
        }
        let perm: Vec<i64> =
            letters.iter().filter_map(|c| self.letters.iter().position(|d| d == c)).map(|axis| axis as i64).collect();
        let value = l.op("transpose", &[("x", self.value.into()), ("perm", perm.into())])?;
        Ok(Self { value, letters: letters.to_vec() })
    }

    /// Summed over the letters that nobody else needs.
    fn summed(self, l: &mut Lowering, needed: impl Fn(char) -> bool) -> Result<Self, GraphError> {
        let axes: Vec<i64> = (0..self.letters.len()).filter(|&axis| !needed(self.letters[axis])).map(|axis| axis as i64).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let value = l.op("reduce_sum", &[("x", self.value.into()), ("axes", axes.into()), ("keep_dims", false.into())])?;
        Ok(Self { value, letters: self.letters.into_iter().filter(|&letter| needed(letter)).collect() })
    }
}

/// The product of two terms as one batched matrix product: shared letters that are still needed are the batch, shared ones that
/// are not are summed.
fn product(l: &mut Lowering, a: Term, b: Term, needed: impl Fn(char) -> bool) -> Result<Term, GraphError> {
    let a = a.summed(l, |c| needed(c) || b.letters.contains(&c))?;
    let b = b.summed(l, |c| needed(c) || a.letters.contains(&c))?;
    let shared = |c: &char| a.letters.contains(c) && b.letters.contains(c);
    let pick = |letters: &[char], wanted: &dyn Fn(&char) -> bool| letters.iter().copied().filter(|c| wanted(c)).collect::<Vec<_>>();
    let batch = pick(&a.letters, &|c| shared(c) && needed(*c));
    let inner = pick(&a.letters, &|c| shared(c) && !needed(*c));
    let (rows, columns) = (pick(&a.letters, &|c| !shared(c)), pick(&b.letters, &|c| !shared(c)));
    let size = |l: &Lowering, term: &Term, letters: &[char]| letters.iter().map(|&c| term.extent(l, c)).product::<usize>();
    let (batches, depth) = (size(l, &a, &batch), size(l, &a, &inner));
    let (tall, wide) = (size(l, &a, &rows), size(l, &b, &columns));
    let extents: Vec<usize> =
        batch.iter().chain(&rows).map(|&c| a.extent(l, c)).chain(columns.iter().map(|&c| b.extent(l, c))).collect();
    let left = a.ordered(l, &[&batch[..], &rows, &inner].concat())?;
    // The second operand as [inner, columns] or transposed, whichever its axes are in already.
    let transposed = [&batch[..], &columns, &inner].concat() == b.letters;
    let order = if transposed { [&batch[..], &columns, &inner].concat() } else { [&batch[..], &inner, &columns].concat() };
    let right = b.ordered(l, &order)?;
    let x = l.reshaped(left.value, &[batches, tall, depth])?;
    let y = l.reshaped(right.value, &if transposed { [batches, wide, depth] } else { [batches, depth, wide] })?;
    let arguments = [("x", x.into()), ("y", y.into()), ("transpose_x", false.into()), ("transpose_y", transposed.into())];
    let value = l.op("matmul", &arguments)?;
    let letters = [&batch[..], &rows, &columns].concat();
    Ok(Term { value: l.reshaped(value, &extents)?, letters })
}

fn lower_einsum(l: &mut Lowering, s: &Site<'_>) -> Result<Vec<ValueId>, GraphError> {
    let Some(equation) = Equation::parse(s.text("equation")) else { return Err(GraphError::NoOutputs) };
    let mut terms: Vec<Term> = equation
        .operands
        .iter()
        .zip(s.values_at("values"))
        .map(|(letters, &value)| Term { value, letters: letters.clone() })
        .collect();
    terms.reverse();
    let Some(mut left) = terms.pop() else { return Err(GraphError::NoOutputs) };
    while let Some(next) = terms.pop() {
        let needed = |c: char| equation.result.contains(&c) || terms.iter().any(|term| term.letters.contains(&c));
        left = product(l, left, next, needed)?;
    }
    let left = left.summed(l, |c| equation.result.contains(&c))?;
    Ok(vec![left.ordered(l, &equation.result)?.value])
}

/// Sum of products over named axes.
pub static EINSUM: GraphOp = GraphOp {
    inputs: &[variadic("values", FLOATS)],
    attributes: &[AttributeSpec { name: "equation", kind: AttributeKind::Text(&[]), default: Default::Required }],
    constraints: &[
        rule(
            "C1",
            "the equation names every axis of each value by a letter that is distinct within the value, as in bij,bjk->bik, and the \
             result's letters occur on the left; spell axes instead of an ellipsis, take diagonals beforehand",
            |s| {
                Equation::parse(s.text("equation")).is_some_and(|equation| {
                    let ranks = equation.operands.iter().zip(s.all("values"));
                    equation.operands.len() == s.all("values").len() && ranks.into_iter().all(|(term, ty)| term.len() == ty.rank())
                })
            },
            Case::refused(&[drawn("values", &[2, 3])], &[("equation", Default::Text("ii->i"))]),
        ),
        rule(
            "C2",
            "a letter stands for one extent",
            |s| Equation::parse(s.text("equation")).is_some_and(|equation| extents(s, &equation).is_some()),
            Case::refused(&[drawn("values", &[2, 3]), drawn("values", &[2, 3])], &[("equation", Default::Text("ij,jk->ik"))]),
        ),
        rule(
            "C3",
            "values have the same element type: cast them",
            |s| s.all("values").iter().all(|ty| ty.dtype == s.dtype("values")),
            Case::refused(&[drawn("values", &[3]), drawn("values", &[3]).of(DType::Fp32)], &[("equation", Default::Text("i,i->"))]),
        ),
    ],
    lower: lower_einsum,
    cases: &[
        Case::values(
            "matrix_product",
            &[given("values", &[2, 2], &[1.0, 2.0, 3.0, 4.0]), given("values", &[2, 1], &[10.0, 1.0])],
            &[("equation", Default::Text("ij,jk->ik"))],
            (&[2, 1], &[12.0, 34.0]),
            "by hand",
        ),
        Case::shape(
            "attention_scores_over_height",
            &[drawn("values", &[2, 3, 2, 4]), drawn("values", &[2, 4, 2, 5])],
            &[("equation", Default::Text("nchw,nwhu->nchu"))],
            &[2, 3, 2, 5],
        ),
        Case::shape(
            "three_values_transposed_result",
            &[drawn("values", &[2, 3]), drawn("values", &[3, 4]), drawn("values", &[4, 2])],
            &[("equation", Default::Text("ab,bc,cd->da"))],
            &[2, 2],
        ),
        Case::shape(
            "outer_product_without_an_arrow",
            &[drawn("values", &[2]), drawn("values", &[3])],
            &[("equation", Default::Text("i,j"))],
            &[2, 3],
        ),
        Case::shape("sum_of_one", &[drawn("values", &[2, 3, 4])], &[("equation", Default::Text("abc->ca"))], &[4, 2]),
        Case::shape(
            "lone_letters_are_summed_first",
            &[drawn("values", &[2, 3]), drawn("values", &[4, 2])],
            &[("equation", Default::Text("ij,ki->k"))],
            &[4],
        ),
    ],
    vjp: Vjp::Rule(|b| {
        let Some(equation) = Equation::parse(b.site().text("equation")) else { return };
        let Some(extents) = extents(&b.site(), &equation) else { return };
        let (values, grad) = (b.all("values").to_vec(), b.grad());
        for (place, letters) in equation.operands.iter().enumerate() {
            // The result's gradient takes the operand's place; letters that only the operand has are stretched.
            let mut operands: Vec<&[char]> = equation.operands.iter().map(Vec::as_slice).collect();
            let mut tensors = values.clone();
            operands[place] = &equation.result;
            tensors[place] = grad.clone();
            let present: Vec<char> = letters.iter().copied().filter(|c| operands.iter().any(|term| term.contains(c))).collect();
            let product = crate::einsum(&Equation::text(&operands, &present), &tensors);
            let extent = |c: &char| extents.iter().find(|(other, _)| other == c).map_or(1, |&(_, extent)| extent);
            let narrow: Vec<i64> = letters.iter().map(|c| if present.contains(c) { extent(c) as i64 } else { 1 }).collect();
            let full: Vec<usize> = letters.iter().map(extent).collect();
            b.give_at("values", place, product.reshape(&narrow).broadcast_to(&full));
        }
    }),
    ..direct("einsum", "The sum of products of values over the letters of the equation that its result does not name.")
};

pub(super) const ALL: &[&GraphOp] = &[&EINSUM];
