"""Methods of tensors that are one operator of the table; their first lines are its summaries, which a test holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ._tensor import Tensor

Axes = Union[int, Sequence[int]]  # noqa: UP007  # evaluated on Python 3.10


class Elementwise:
    """Element by element operators, comparisons and reductions."""

    __slots__ = ()

    def _apply(self, name: str, **attributes: Any) -> Tensor:
        raise NotImplementedError

    def _against(self, name: str, other: Any) -> Tensor:
        raise NotImplementedError

    def _reduce(self, name: str, axes: Axes, keepdims: bool) -> Tensor:
        raise NotImplementedError

    def abs(self) -> Tensor:
        """The magnitude of x."""
        return self._apply("abs")

    def amax(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The largest value over axes."""
        return self._reduce("reduce_max", axes, keepdims)

    def amin(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The smallest value over axes."""
        return self._reduce("reduce_min", axes, keepdims)

    def atan(self) -> Tensor:
        """The angle in radians whose tangent is x."""
        return self._apply("atan")

    def ceil(self) -> Tensor:
        """The smallest integer not below x."""
        return self._apply("ceil")

    def clamped_relu(self, alpha: float = 0.0, beta: float = 6.0) -> Tensor:
        """The smaller of beta and leaky_relu(x) with slope alpha."""
        return self._apply("clamped_relu", alpha=alpha, beta=beta)

    def cos(self) -> Tensor:
        """The cosine of x in radians."""
        return self._apply("cos")

    def elu(self, alpha: float = 1.0) -> Tensor:
        """x where it is not negative, else alpha (exp(x) - 1)."""
        return self._apply("elu", alpha=alpha)

    def equal(self, o: Any) -> Tensor:
        """True where x = y."""
        return self._against("equal", o)

    def erf(self) -> Tensor:
        """The Gauss error function of x."""
        return self._apply("erf")

    def exp(self) -> Tensor:
        """e to the power of x."""
        return self._apply("exp")

    def exp2(self) -> Tensor:
        """2 to the power of x."""
        return self._apply("exp2")

    def floor(self) -> Tensor:
        """The largest integer not above x."""
        return self._apply("floor")

    def gelu(self) -> Tensor:
        """x times the normal distribution's cumulative probability at x."""
        return self._apply("gelu")

    def greater(self, o: Any) -> Tensor:
        """True where x > y."""
        return self._against("greater", o)

    def greater_equal(self, o: Any) -> Tensor:
        """True where x >= y."""
        return self._against("greater_equal", o)

    def inverse(self, eps: float = 0.0) -> Tensor:
        """1 / (x + epsilon)."""
        return self._apply("inverse", epsilon=eps)

    def l1_norm(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The sum of magnitudes over axes."""
        return self._reduce("reduce_l1_norm", axes, keepdims)

    def leaky_relu(self, alpha: float = 0.01) -> Tensor:
        """x where it is not negative, else alpha x."""
        return self._apply("leaky_relu", alpha=alpha)

    def less(self, o: Any) -> Tensor:
        """True where x < y."""
        return self._against("less", o)

    def less_equal(self, o: Any) -> Tensor:
        """True where x <= y."""
        return self._against("less_equal", o)

    def linear_activation(self, alpha: float = 1.0, beta: float = 0.0) -> Tensor:
        """alpha x + beta."""
        return self._apply("linear_activation", alpha=alpha, beta=beta)

    def log(self, eps: float = 0.0) -> Tensor:
        """The natural logarithm of x + epsilon."""
        return self._apply("log", epsilon=eps)

    def log_sum(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The natural logarithm of the sum over axes."""
        return self._reduce("reduce_log_sum", axes, keepdims)

    def logical_not(self) -> Tensor:
        """True where x is false."""
        return self._apply("logical_not")

    def mean(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The mean over axes."""
        return self._reduce("reduce_mean", axes, keepdims)

    def not_equal(self, o: Any) -> Tensor:
        """True where x differs from y."""
        return self._against("not_equal", o)

    def reduce_log_sum_exp(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The logarithm of the sum of exponentials over axes."""
        return self._reduce("reduce_log_sum_exp", axes, keepdims)

    def relu(self) -> Tensor:
        """x where it is positive, else 0."""
        return self._apply("relu")

    def relu6(self) -> Tensor:
        """x kept between 0 and 6."""
        return self._apply("relu6")

    def round(self) -> Tensor:
        """The integer nearest to x; the engine rounds ties away from zero."""
        return self._apply("round")

    def rsqrt(self, eps: float = 0.0) -> Tensor:
        """1 / sqrt(x + epsilon)."""
        return self._apply("rsqrt", epsilon=eps)

    def scaled_tanh(self, alpha: float = 1.0, beta: float = 1.0) -> Tensor:
        """alpha tanh(beta x)."""
        return self._apply("scaled_tanh", alpha=alpha, beta=beta)

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
        return self._apply("sigmoid")

    def sigmoid_hard(self, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
        """alpha x + beta kept between 0 and 1."""
        return self._apply("sigmoid_hard", alpha=alpha, beta=beta)

    def sign(self) -> Tensor:
        """-1, 0 or 1 as x is negative, zero or positive."""
        return self._apply("sign")

    def silu(self) -> Tensor:
        """x times sigmoid(x)."""
        return self._apply("silu")

    def sin(self) -> Tensor:
        """The sine of x in radians."""
        return self._apply("sin")

    def softplus(self) -> Tensor:
        """log(1 + exp(x))."""
        return self._apply("softplus")

    def softsign(self) -> Tensor:
        """x / (1 + abs(x))."""
        return self._apply("softsign")

    def sqrt(self) -> Tensor:
        """The square root of x."""
        return self._apply("sqrt")

    def square(self) -> Tensor:
        """x times x."""
        return self._apply("square")

    def sum(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The sum over axes."""
        return self._reduce("reduce_sum", axes, keepdims)

    def sum_square(self, axes: Axes, *, keepdims: bool = True) -> Tensor:
        """The sum of squares over axes."""
        return self._reduce("reduce_sum_square", axes, keepdims)

    def tanh(self) -> Tensor:
        """The hyperbolic tangent of x."""
        return self._apply("tanh")

    def threshold(self, alpha: float = 0.0) -> Tensor:
        """The larger of x and alpha."""
        return self._apply("threshold", alpha=alpha)

    def thresholded_relu(self, alpha: float = 1.0) -> Tensor:
        """x where it is at least alpha, else 0."""
        return self._apply("thresholded_relu", alpha=alpha)
