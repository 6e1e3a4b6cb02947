"""One exception class per kind of fault; each is also the built-in class people expect."""


class Error(Exception):
    """Base of everything that this package raises on purpose."""


class ShapeError(Error, ValueError):
    """Shapes, or values of attributes that depend on them, break a rule of an operator."""


class ArgumentError(Error, ValueError):
    """An unknown name, or a value that a parameter does not take."""


class DTypeError(Error, TypeError):
    """An element type, or a kind of value, that cannot stand there."""


class UnsupportedError(Error, NotImplementedError):
    """What is asked for does not exist here; the message says why and what to do."""


class CompileError(Error, RuntimeError):
    """A program could not be compiled or written."""


class DeviceError(Error, RuntimeError):
    """A device is not here, or could not load or run a program."""


class LimitError(Error, ValueError):
    """A limit of the engine or of fp16 is passed."""


class CompileBackoffError(Error, RuntimeError):
    """Compiling was refused because it failed before; nothing here raises it, scripts may catch it."""


class PrecisionWarning(UserWarning):
    """fp16 may lose more here than people expect."""


class DispatchFloorWarning(UserWarning):
    """A program so small that handing it over takes longer than computing it."""


class CrossChipFP16Warning(UserWarning):
    """Chips give different results here."""
