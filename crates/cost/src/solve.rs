//! Least squares with priors, robust against outliers: Levenberg and Marquardt's method, derivatives by differences.

/// What is minimised: `2 sum (sqrt(1 + r^2) - 1)` over residuals plus `sum ((theta - prior) / width)^2` over free parameters.
pub struct Problem<'a> {
    /// Residuals at a point, in units of the error that is expected.
    pub residuals: &'a dyn Fn(&[f64]) -> Vec<f64>,
    /// Centre of each parameter's prior.
    pub prior: &'a [f64],
    /// Width of each parameter's prior.
    pub width: &'a [f64],
    /// Parameters that move; the others stay at the start.
    pub free: &'a [usize],
}

/// Step of the differences; parameters are logarithms or slopes of them, of size about one.
const STEP: f64 = 1e-4;
/// Largest change of a parameter in one step.
const LARGEST_STEP: f64 = 1.0;
/// A gain below this part of the cost ends the search.
const ENOUGH: f64 = 1e-7;

/// The minimum found from `start` in at most `rounds` rounds. The same input gives the same bits on the same machine.
pub fn minimise(problem: &Problem<'_>, start: &[f64], rounds: usize) -> Vec<f64> {
    let mut theta = start.to_vec();
    let mut residuals = (problem.residuals)(&theta);
    let mut cost = problem.cost(&theta, &residuals);
    let mut damping = 1e-2;
    for _ in 0..rounds {
        let columns = problem.derivatives(&theta, &residuals);
        let (matrix, gradient) = problem.normal_equations(&theta, &residuals, &columns);
        let mut gained = None;
        for _ in 0..6 {
            let mut damped = matrix.clone();
            for (index, row) in damped.iter_mut().enumerate() {
                row[index] *= 1.0 + damping;
            }
            let Some(step) = solve(damped, &gradient) else {
                damping *= 5.0;
                continue;
            };
            let mut next = theta.clone();
            for (&parameter, change) in problem.free.iter().zip(&step) {
                next[parameter] -= change.clamp(-LARGEST_STEP, LARGEST_STEP);
            }
            let next_residuals = (problem.residuals)(&next);
            let next_cost = problem.cost(&next, &next_residuals);
            if next_cost < cost {
                gained = Some(cost - next_cost);
                (theta, residuals, cost) = (next, next_residuals, next_cost);
                damping = (damping / 5.0).max(1e-6);
                break;
            }
            damping *= 5.0;
        }
        if gained.is_none_or(|gain| gain < ENOUGH * cost) {
            break;
        }
    }
    theta
}

impl Problem<'_> {
    fn cost(&self, theta: &[f64], residuals: &[f64]) -> f64 {
        let data: f64 = residuals.iter().map(|r| 2.0 * ((1.0 + r * r).sqrt() - 1.0)).sum();
        data + self.free.iter().map(|&at| ((theta[at] - self.prior[at]) / self.width[at]).powi(2)).sum::<f64>()
    }

    fn derivatives(&self, theta: &[f64], residuals: &[f64]) -> Vec<Vec<f64>> {
        let mut moved = theta.to_vec();
        let mut columns = Vec::with_capacity(self.free.len());
        for &parameter in self.free {
            moved[parameter] = theta[parameter] + STEP;
            let there = (self.residuals)(&moved);
            columns.push(there.iter().zip(residuals).map(|(there, here)| (there - here) / STEP).collect());
            moved[parameter] = theta[parameter];
        }
        columns
    }

    fn normal_equations(&self, theta: &[f64], residuals: &[f64], columns: &[Vec<f64>]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let weights: Vec<f64> = residuals.iter().map(|r| 1.0 / (1.0 + r * r).sqrt()).collect();
        let dot = |a: &[f64], b: &[f64]| -> f64 { weights.iter().zip(a).zip(b).map(|((w, a), b)| w * a * b).sum() };
        let mut matrix: Vec<Vec<f64>> = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect();
        let mut gradient: Vec<f64> = columns.iter().map(|column| dot(column, residuals)).collect();
        for (index, &parameter) in self.free.iter().enumerate() {
            let precision = self.width[parameter].powi(-2);
            matrix[index][index] += precision;
            gradient[index] += (theta[parameter] - self.prior[parameter]) * precision;
        }
        (matrix, gradient)
    }
}

/// Solves `matrix x = right` for a symmetric positive matrix by Cholesky's factors; `None` where it is not positive.
fn solve(mut matrix: Vec<Vec<f64>>, right: &[f64]) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        for row in column..size {
            let below: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let rest = matrix[row][column] - below;
            if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                matrix[row][column] = rest.sqrt();
            } else {
                matrix[row][column] = rest / matrix[column][column];
            }
        }
    }
    let mut x = right.to_vec();
    for row in 0..size {
        let known: f64 = (0..row).map(|k| matrix[row][k] * x[k]).sum();
        x[row] = (x[row] - known) / matrix[row][row];
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|k| matrix[k][row] * x[k]).sum();
        x[row] = (x[row] - known) / matrix[row][row];
    }
    Some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_through_points_of_which_one_is_far_off() {
        let points: Vec<(f64, f64)> = (0..20).map(|i| (f64::from(i), 3.0 * f64::from(i) - 7.0)).collect();
        let residuals = |theta: &[f64]| {
            let off = |i: usize| if i == 11 { 500.0 } else { 0.0 };
            points.iter().enumerate().map(|(i, (x, y))| (theta[0] * x + theta[1] - y - off(i)) / 0.1).collect()
        };
        let problem = Problem { residuals: &residuals, prior: &[0.0, 0.0], width: &[1e3, 1e3], free: &[0, 1] };
        let found = minimise(&problem, &[0.0, 0.0], 60);
        assert!((found[0] - 3.0).abs() < 0.02 && (found[1] + 7.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn a_parameter_without_data_stays_at_its_prior_and_one_that_is_not_free_at_the_start() {
        let residuals = |theta: &[f64]| vec![theta[0] - 2.0];
        let problem = Problem { residuals: &residuals, prior: &[0.0, 0.5, 9.0], width: &[100.0, 1.0, 1.0], free: &[0, 1] };
        let found = minimise(&problem, &[0.0, 0.0, 4.0], 30);
        assert!((found[0] - 2.0).abs() < 1e-2 && (found[1] - 0.5).abs() < 1e-9, "{found:?}");
        assert_eq!(found[2], 4.0);
    }

    #[test]
    fn a_system_that_is_not_positive_has_no_solution() {
        assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 1.0]], &[1.0, 1.0]), None);
        let x = solve(vec![vec![4.0, 2.0], vec![2.0, 3.0]], &[2.0, 5.0]).expect("positive");
        assert!((x[0] + 0.5).abs() < 1e-12 && (x[1] - 2.0).abs() < 1e-12);
    }
}
