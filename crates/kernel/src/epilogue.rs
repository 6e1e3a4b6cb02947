//! From sums to stored results: scale, bias, residual, activation, rounding.

use std::marker::PhantomData;

use half::f16;

use super::math::activate;
use super::simd::Simd;
use super::tile::MOST_COLUMNS;
use super::types::{Epilogue, Output, Residual, Shared};

/// Element of a result.
pub(crate) trait Stored: Copy + Send + Default + 'static {
    /// # Safety
    /// `to` must be writable for `LANES` values.
    unsafe fn store<S: Simd>(s: S, to: *mut Self, value: S::F);
}

impl Stored for f16 {
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, to: *mut f16, value: S::F) {
        // SAFETY: the caller's promise; f16 is a transparent u16.
        unsafe { s.store_half(to.cast(), value) }
    }
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn store<S: Simd>(s: S, to: *mut f32, value: S::F) {
        // SAFETY: the caller's promise.
        unsafe { s.store(to, value) }
    }
}

/// How sums become values: the arithmetic of the stages between sum and store.
pub(crate) trait Arithmetic: Copy + Send + Sync + 'static {
    /// What a tile holds.
    type Sum: Copy;
    /// Applies the epilogue to one vector of sums.
    /// # Safety
    /// `sums` must be readable for `LANES` values.
    unsafe fn value<S: Simd>(
        s: S,
        epilogue: &Epilogue<'_>,
        sums: *const Self::Sum,
        bias: Option<S::F>,
        residual: Option<S::F>,
    ) -> S::F;
}

/// f32 throughout.
#[derive(Clone, Copy)]
pub(crate) struct Fast;

impl Arithmetic for Fast {
    type Sum = f32;

    #[inline(always)]
    unsafe fn value<S: Simd>(s: S, epilogue: &Epilogue<'_>, sums: *const f32, bias: Option<S::F>, residual: Option<S::F>) -> S::F {
        // SAFETY: the caller's promise.
        let mut value = unsafe { s.load(sums) };
        if let Some(scale) = epilogue.scale {
            value = s.mul(value, s.splat(scale));
        }
        if let Some(bias) = bias {
            value = s.add(value, bias);
        }
        match (residual, epilogue.residual) {
            (Some(add), Some(Residual { before_activation: true, .. })) => activate(s, epilogue.activation, s.add(value, add)),
            (Some(add), _) => s.add(activate(s, epilogue.activation, value), add),
            _ => activate(s, epilogue.activation, value),
        }
    }
}

/// Where the rows of a product go, shared by the jobs that compute it.
#[derive(Clone, Copy)]
pub(crate) struct Sink<'a, T, A = Fast> {
    pub epilogue: &'a Epilogue<'a>,
    pub data: Shared<T>,
    pub offset: usize,
    pub stride: usize,
    pub columns: usize,
    arithmetic: PhantomData<A>,
}

impl<'a, T: Stored, A: Arithmetic> Sink<'a, T, A> {
    /// Checks the epilogue's operands and the output against `rows` x `columns`.
    pub(crate) fn new(epilogue: &'a Epilogue<'a>, output: Output<'_, T>, rows: usize, columns: usize) -> Self {
        Self::over(epilogue, Shared::new(output.data), output.offset, output.stride, rows, columns)
    }

    /// The same over a buffer that other jobs write too.
    pub(crate) fn over(
        epilogue: &'a Epilogue<'a>,
        data: Shared<T>,
        offset: usize,
        stride: usize,
        rows: usize,
        columns: usize,
    ) -> Self {
        if let Some(bias) = epilogue.bias {
            assert_eq!(bias.len(), columns, "bias: one value per column");
        }
        if rows > 0 {
            if let Some(residual) = epilogue.residual {
                let end = residual.offset + (rows - 1) * residual.stride + columns;
                assert!(end <= residual.data.len(), "residual: shorter than the result");
            }
            let end = offset + (rows - 1) * stride + columns;
            assert!(end <= data.len(), "output: shorter than the result");
            assert!(rows == 1 || stride >= columns, "output: rows overlap");
        }
        Self { epilogue, data, offset, stride, columns, arithmetic: PhantomData }
    }

    /// Finishes `2 * LANES` sums of row `row`, the first of which belongs to column `column`.
    ///
    /// # Safety
    /// `row` must be within the bounds given to [`Sink::new`], `sums` must hold `2 * LANES`
    /// values, and no other job may hold the same place.
    #[inline(always)]
    pub(crate) unsafe fn finish<S: Simd>(&self, s: S, row: usize, column: usize, sums: *const A::Sum) {
        let width = (2 * S::LANES).min(self.columns - column);
        // SAFETY: places of different tiles are disjoint.
        let out = unsafe { self.data.slice(self.offset + row * self.stride + column, width) };
        let bias = self.epilogue.bias.map(|bias| &bias[column..column + width]);
        let residual = self.epilogue.residual.map(|residual| {
            let from = residual.offset + row * residual.stride + column;
            &residual.data[from..from + width]
        });
        if width == 2 * S::LANES {
            // SAFETY: every slice has 2 * LANES values.
            unsafe {
                self.vectors(s, sums, bias.map(<[f32]>::as_ptr), residual.map(<[f16]>::as_ptr), out.as_mut_ptr());
            }
            return;
        }
        // A narrow last panel goes through full-width copies.
        let mut full_bias = [0.0; MOST_COLUMNS];
        let mut full_residual = [f16::ZERO; MOST_COLUMNS];
        let mut full_out = [T::default(); MOST_COLUMNS];
        if let Some(bias) = bias {
            full_bias[..width].copy_from_slice(bias);
        }
        if let Some(residual) = residual {
            full_residual[..width].copy_from_slice(residual);
        }
        // SAFETY: the copies have at least 2 * LANES values.
        unsafe {
            self.vectors(
                s,
                sums,
                bias.map(|_| full_bias.as_ptr()),
                residual.map(|_| full_residual.as_ptr()),
                full_out.as_mut_ptr(),
            );
        }
        out.copy_from_slice(&full_out[..width]);
    }

    /// # Safety
    /// Every pointer must be valid for `2 * LANES` values.
    #[inline(always)]
    unsafe fn vectors<S: Simd>(
        &self,
        s: S,
        sums: *const A::Sum,
        bias: Option<*const f32>,
        residual: Option<*const f16>,
        out: *mut T,
    ) {
        for at in [0, S::LANES] {
            // SAFETY: the caller's promise.
            unsafe {
                let bias = match bias {
                    Some(bias) => Some(s.load(bias.add(at))),
                    None => None,
                };
                let residual = match residual {
                    Some(residual) => Some(s.load_half(residual.cast::<u16>().add(at))),
                    None => None,
                };
                T::store(s, out.add(at), A::value(s, self.epilogue, sums.add(at), bias, residual));
            }
        }
    }
}
