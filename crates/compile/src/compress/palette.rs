//! The best table for a set of fp16 numbers: k-means in one dimension, solved exactly.
//!
//! In one dimension the clusters of a best solution are intervals of the sorted values, so dynamic programming over the distinct
//! values finds it; the best cut moves right as the end does, which lets each row be found by halving (Wang and Song,
//! "Ckmeans.1d.dp", The R Journal 3/2, 2011; the halving after Grønlund et al., arXiv 1701.07204). An fp16 tensor has at most 63,487
//! distinct finite values, however large it is.

use half::f16;

/// Below this many elements sorting is faster than counting.
const COUNTED: usize = 1 << 14;

/// Writes each element's index into `codes` and returns the table, ascending, `2^bits` entries.
///
/// `importance` weighs the squared error of each element; absent, all count the same. Fewer distinct values than entries are kept
/// exactly. Negative zero counts as zero.
pub fn palettise(elements: &[f16], importance: Option<&[f32]>, bits: u8, codes: &mut [u8]) -> Vec<f16> {
    let entries = 1usize << bits;
    let points = distinct(elements, importance);
    let mut table: Vec<f16> = if points.len() <= entries {
        points.iter().map(|point| value(point.key)).collect()
    } else {
        centroids(&points, entries).into_iter().map(aneforge_mil::round_to_fp16).collect()
    };
    let last = table.last().copied().unwrap_or(f16::ZERO);
    table.resize(entries, last);
    assign(elements, &table, codes);
    table
}

/// A value with the weight of all elements that have it.
struct Point {
    key: u16,
    weight: f64,
}

/// The number's place in the order of fp16 numbers; both zeros have the same.
fn key(element: f16) -> u16 {
    let bits = element.to_bits();
    if bits & 0x8000 == 0 || bits == 0x8000 { (bits & 0x7fff) | 0x8000 } else { !bits }
}

fn value(key: u16) -> f16 {
    f16::from_bits(if key & 0x8000 == 0 { !key } else { key & 0x7fff })
}

fn distinct(elements: &[f16], importance: Option<&[f32]>) -> Vec<Point> {
    let weight = |place: usize| importance.map_or(1.0, |importance| f64::from(importance[place]));
    if elements.len() >= COUNTED {
        let mut weights = vec![0.0; 1 << 16];
        elements.iter().enumerate().for_each(|(place, &element)| weights[usize::from(key(element))] += weight(place));
        let seen = weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0);
        return seen.map(|(key, weight)| Point { key: key as u16, weight }).collect();
    }
    let mut sorted: Vec<(u16, f64)> = elements.iter().enumerate().map(|(place, &element)| (key(element), weight(place))).collect();
    sorted.sort_unstable_by_key(|point| point.0);
    let mut points: Vec<Point> = Vec::new();
    for (key, weight) in sorted {
        match points.last_mut() {
            Some(last) if last.key == key => last.weight += weight,
            _ => points.push(Point { key, weight }),
        }
    }
    points
}

/// Sums over the first points: weight, weight times value, weight times its square.
struct Sums(Vec<[f64; 3]>);

impl Sums {
    /// Weighted mean of the points from `first` up to `end`.
    fn mean(&self, first: usize, end: usize) -> f64 {
        let weight = self.0[end][0] - self.0[first][0];
        if weight > 0.0 { (self.0[end][1] - self.0[first][1]) / weight } else { 0.0 }
    }

    /// Their squared error about it.
    fn error(&self, first: usize, end: usize) -> f64 {
        let (low, high) = (self.0[first], self.0[end]);
        let weight = high[0] - low[0];
        if weight <= 0.0 {
            return 0.0;
        }
        let sum = high[1] - low[1];
        high[2] - low[2] - sum * sum / weight
    }
}

/// Means of the `clusters` intervals with the least squared error; there are more points than clusters.
fn centroids(points: &[Point], clusters: usize) -> Vec<f64> {
    let mut sums = Sums(vec![[0.0; 3]; points.len() + 1]);
    for (place, point) in points.iter().enumerate() {
        let value = value(point.key).to_f64();
        let [weight, first, second] = sums.0[place];
        sums.0[place + 1] = [weight + point.weight, first + point.weight * value, second + point.weight * value * value];
    }
    let count = points.len();
    // best[end]: error of the first `end` points in as many clusters as rows are done; cuts: where the last of them starts.
    let mut best: Vec<f64> = (0..=count).map(|end| sums.error(0, end)).collect();
    let mut cuts = Vec::with_capacity(clusters - 1);
    for row in 1..clusters {
        let mut next = best.clone();
        let mut cut = vec![0u32; count + 1];
        halve(&sums, &best, &mut next, &mut cut, (row + 1, count), (row, count - 1));
        best = next;
        cuts.push(cut);
    }
    let mut means = Vec::with_capacity(clusters);
    let mut end = count;
    for cut in cuts.iter().rev() {
        let first = cut[end] as usize;
        means.push(sums.mean(first, end));
        end = first;
    }
    means.push(sums.mean(0, end));
    means.reverse();
    means
}

/// Fills a row for the ends in `ends`, whose best cuts lie within `range`; both bounds are included.
fn halve(sums: &Sums, best: &[f64], next: &mut [f64], cut: &mut [u32], ends: (usize, usize), range: (usize, usize)) {
    if ends.0 > ends.1 {
        return;
    }
    let middle = ends.0.midpoint(ends.1);
    let (mut least, mut at) = (f64::INFINITY, range.0);
    let last = range.1.min(middle - 1);
    for (first, before) in best.iter().enumerate().take(last + 1).skip(range.0) {
        let error = before + sums.error(first, middle);
        if error < least {
            (least, at) = (error, first);
        }
    }
    next[middle] = least;
    cut[middle] = at as u32;
    halve(sums, best, next, cut, (ends.0, middle - 1), (range.0, at));
    halve(sums, best, next, cut, (middle + 1, ends.1), (at, range.1));
}

/// The nearest entry of an ascending table for each element; the lower one where two are as near.
fn assign(elements: &[f16], table: &[f16], codes: &mut [u8]) {
    let borders: Vec<f32> = table.windows(2).map(|pair| pair[0].to_f32().midpoint(pair[1].to_f32())).collect();
    let nearest = |element: f16| borders.partition_point(|&border| border < element.to_f32()) as u8;
    if elements.len() < COUNTED * 4 {
        elements.iter().zip(codes).for_each(|(&element, code)| *code = nearest(element));
        return;
    }
    let all: Vec<u8> = (0..=u16::MAX).map(|bits| nearest(f16::from_bits(bits))).collect();
    elements.iter().zip(codes).for_each(|(element, code)| *code = all[usize::from(element.to_bits())]);
}
