"""2ˣ in float32 for compiled loops: written out, where a library's would be a call.

So loops over it compile to vector instructions.
"""

import numpy as np
from numba import njit

# 1.5 · 2²³: a float32 this large has no digits after the point, and its last bits count units.
ROUND = np.float32(3 << 22)
# 2ᶠ = 1 + c₁ f + … + c₆ f⁶ within 5e-9, from interpolation of (2ᶠ − 1) / f at the Chebyshev
# nodes of −½ … ½.
C1, C2, C3, C4, C5, C6 = map(
    np.float32, (0.6931472, 0.2402265, 0.05550357, 0.009618083, 0.0013390863, 0.00015453163)
)
ONE, LOWEST, HIGHEST = map(np.float32, (1, -127, 128))


# No reordering here, which would cancel ROUND.
@njit(cache=True, fastmath={"contract"})
def exp2(x: np.float32) -> np.float32:
    """2ˣ within two units in the last place; 0 for x < −126.5.

    2ˣ = 2ⁿ 2ᶠ with n an integer and |f| ≤ ½. There is no branch and no call.
    """
    # Comparisons with NaN are false: it stays.
    x = LOWEST if x < LOWEST else x
    x = HIGHEST if x > HIGHEST else x
    shifted = np.float32(x + ROUND)
    f = x - (shifted - ROUND)
    # n is in the last bits of `shifted`; n + 127 in the exponent's place means 2ⁿ.
    power = np.int32((shifted.view(np.int32) + 127) << 23).view(np.float32)
    f2 = f * f
    return power * ((ONE + f * C1) + f2 * ((C2 + f * C3) + f2 * ((C4 + f * C5) + f2 * C6)))
