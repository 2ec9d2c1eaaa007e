"""Every operation of this package, once: `_blocking.py` and `aio.py` make methods of them.

`self` is the handle of the surface that calls the operation, so each text here is the documentation of two methods.
"""
