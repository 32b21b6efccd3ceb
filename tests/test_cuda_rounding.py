"""Quotients and roots as the text for GPUs makes them (kernels/c/device.h), compiled for the host."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cuda import built

from tangere.kernels.emit import cuda

ROUGH = """
#include <cmath>
#include <string.h>
using std::fma;
static TG_REAL tg_worse;
/* what a device's instructions know of a number in float64: its first 32 bits */
static TG_REAL tg_known(TG_REAL x)
{
    int low = 0;
    if (sizeof x == 8)
        memcpy(&x, &low, 4);
    return x;
}
"""
TRIED = """
extern "C" void tg_tried(long n, const TG_REAL *a, const TG_REAL *b, const TG_REAL *worse, TG_REAL *y)
{
    for (long i = 0; i < n; i++) {
        tg_worse = 1 + worse[i];
        y[3 * i] = TG_OVER(a[i], b[i]), y[3 * i + 1] = TG_SHARE(a[i], b[i]), y[3 * i + 2] = TG_SQRT(TG_ABS(a[i]));
    }
}
"""


def nearly_halfway(count: int) -> list[float]:
    """Numbers whose root lies next to the middle between two floats: n * n = d modulo a power of 2, n odd, d small."""
    found = []
    for bits, d in ((bits, 8 * j + 1) for bits in (54, 55) for j in range(-count, count)):
        root = 1
        for bit in range(3, bits):
            root += ((root * root - d) >> bit & 1) << (bit - 1)
        for n in (root, -root, root + (1 << (bits - 1)), -root + (1 << (bits - 1))):
            n %= 1 << bits
            x = (n * n - d) >> bits
            if 1 << 53 <= n < 1 << 54 and 1 << 52 <= x < 1 << 53:
                found.append(x * 2.0 ** (bits - 106))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_quotients_and_roots_of_a_device_are_rounded_ones(dtype: Any, tmp_path: Path) -> None:
    """Without a branch, from an inverse that misses as much as a device's instruction for it does."""
    math = cuda.text_of("device.h").replace("defined(__CUDACC__)", "1")
    math = re.sub(r'asm\("rcp.*', "y = tg_known((V)1 / tg_known(b) * tg_worse);", math)
    math = re.sub(r'asm\("rsqrt.*', "y = tg_known((V)1 / std::sqrt(tg_known(x)) * tg_worse);", math)
    define = "#define TG_WIDTH 1\n#define TG_SUFFIX k\n" + "#define TG_SINGLE 1\n" * (dtype == np.float32)
    run = built(tmp_path, define + "#include <string.h>\n" + cuda.text_of("lanes.h") + ROUGH + math + TRIED).tg_tried
    rng = np.random.default_rng(3)
    a, b = (rng.choice([-1.0, 1.0], 200_000) * 2.0 ** rng.uniform(-30.0, 30.0, 200_000) for _ in range(2))
    a[:4], b[:4] = [0.0, np.inf, 1.0, 0.0], [3.0, 3.0, np.inf, -3.0]
    a, b = a.astype(dtype), b.astype(dtype)
    b[4:900:2], b[5:900:2] = -np.nextafter(dtype(1), dtype(0)), np.nextafter(dtype(2), dtype(0))
    a[4:300] = 2.0 ** (np.arange(296) % 90 - 45)
    if dtype == np.float64:
        hard = nearly_halfway(500)
        a[900 : 900 + len(hard)] = hard
    worse = rng.uniform(-1.0, 1.0, len(a)).astype(dtype) * dtype(2.0**-23)
    worse[4:900] = 0.0
    y = np.empty((len(a), 3), dtype)
    run(ctypes.c_long(len(a)), *(ctypes.c_void_p(x.ctypes.data) for x in (a, b, worse, y)))
    assert np.array_equal(y[:, 0], a / b)
    assert np.array_equal(y[900:, 1], (a / b)[900:])
    assert np.array_equal(y[:, 2], np.sqrt(np.abs(a)))
