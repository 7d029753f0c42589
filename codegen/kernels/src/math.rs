//! exp, tanh, erf, log, pow, sin and cos of our own.
//!
//! Each is a fixed sequence of IEEE additions, multiplications and divisions without fused operations. So it gives the
//! same bits on every target, alone or vectorised. The errors are below 1e-6 of the result; NaN passes through. The
//! functions of `f32` have no branches, so that a loop over them becomes vector code.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::math;
//!
//! assert_eq!(math::exp(0.0), 1.0);
//! assert_eq!(math::sqrt(2.0), 2.0_f32.sqrt());
//! assert_eq!(math::round_half_even(2.5), 2.0);
//! ```
#![allow(clippy::excessive_precision, reason = "coefficients as they are printed")]

/// 1.5 · 2^23: adding it to a number below 2^22 rounds that number to an integer, which the low bits then hold.
const ROUND: f32 = 12_582_912.0;

/// ln 2 in two parts, the first with few enough bits that its product with an exponent is exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// `e^x`. Below −104 it is 0, above 88.8 infinite.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (p, n) = factors(x);
    // 2^n as two factors, neither of which leaves the range of normal numbers.
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `e^x = p · 2^n`, with p about 1.
#[inline(always)]
fn factors(x: f32) -> (f32, i32) {
    let ([p], [n]) = all_factors(&[x]);
    (p, n)
}

/// The factors of [`factors`] for all numbers. Each step is done for all numbers before the next step, so a processor
/// can do a step for some numbers while it waits for the step of others. (Loops become vector code; closures over
/// arrays do not.)
#[inline(always)]
fn all_factors<const N: usize>(x: &[f32; N]) -> ([f32; N], [i32; N]) {
    let (mut n, mut r, mut p) = ([0; N], [0.0; N], [1.987_569_1e-4; N]);
    for i in 0..N {
        let shifted = x[i] * core::f32::consts::LOG2_E + ROUND;
        n[i] = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
        let near = shifted - ROUND;
        r[i] = x[i] - near * LN2_HIGH - near * LN2_LOW;
    }
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        for i in 0..N {
            p[i] = p[i] * r[i] + c;
        }
    }
    for i in 0..N {
        p[i] = p[i] * (r[i] * r[i]) + r[i] + 1.0;
    }
    (p, n)
}

/// `2^n` for n in [−126, 127].
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `1 / (1 + e^−x)`; below −88 as at −88, 6e-39.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    let [y] = sigmoids([x]);
    y
}

/// [`sigmoid`] of all numbers, step by step, which is faster than one number after the other.
#[inline(always)]
pub fn sigmoids<const N: usize>(x: [f32; N]) -> [f32; N] {
    let mut within = [0.0; N];
    for i in 0..N {
        let x = if -x[i] > 88.0 { 88.0 } else { -x[i] };
        within[i] = if x < -87.0 { -87.0 } else { x };
    }
    // Of what is within [−87, 88], `e^x` is the product of two factors.
    let (p, n) = all_factors(&within);
    let mut sigmoids = [0.0; N];
    for i in 0..N {
        sigmoids[i] = 1.0 / (1.0 + p[i] * power_of_two(n[i]));
    }
    sigmoids
}

/// Hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let large = 1.0 - 2.0 / (exp(2.0 * magnitude) + 1.0);
    let z = x * x;
    let mut p = -5.704_988_7e-3;
    for c in [2.063_908_9e-2, -5.373_971_6e-2, 1.333_144_2e-1, -3.333_328_2e-1] {
        p = p * z + c;
    }
    let small = p * z * x + x;
    if magnitude > 0.625 { large.copysign(x) } else { small }
}

/// The error function, `2/√π · ∫₀ˣ e^(−t²) dt`.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let magnitude = x.abs();
    // Beyond 1: the complement by a fit in t = 1 / (1 + x/2) (Press et al., Numerical Recipes, erfcc).
    let t = 1.0 / (1.0 + 0.5 * magnitude);
    let mut p = 0.170_872_77;
    for c in [
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ] {
        p = p * t + c;
    }
    let large = 1.0 - t * exp(p - magnitude * magnitude);
    let z = x * x;
    let mut q = 7.853_861_4e-5;
    for c in [
        -8.010_193_6e-4,
        5.188_327_7e-3,
        -2.685_381_2e-2,
        1.128_358_5e-1,
        -3.761_262_6e-1,
        core::f32::consts::FRAC_2_SQRT_PI,
    ] {
        q = q * z + c;
    }
    if magnitude > 1.0 { large.copysign(x) } else { q * x }
}

/// `tanh(ln(1 + e^x))`, the factor of Mish.
#[inline(always)]
pub fn tanh_softplus(x: f32) -> f32 {
    // With e = e^x it is (e² + 2e) / (e² + 2e + 2), which is 1 long before e² overflows.
    let e = exp(if x > 20.0 { 20.0 } else { x });
    let n = e * (e + 2.0);
    n / (n + 2.0)
}

/// `ln(1 + e^x)`.
#[inline]
pub fn softplus(x: f32) -> f32 {
    // ln(1 + e), corrected for what the sum lost.
    let e = f64::from(exp(-x.abs()));
    let sum = 1.0 + e;
    let tail = if sum == 1.0 { e } else { ln(sum) * (e / (sum - 1.0)) };
    (f64::from(if x < 0.0 { 0.0 } else { x }) + tail) as f32
}

/// Natural logarithm: NaN below 0, −∞ at 0.
#[inline]
pub fn log(x: f32) -> f32 {
    ln(f64::from(x)) as f32
}

/// `x^y`, with the special cases of IEEE 754: `x^0 = 1^y = 1`, negative bases with integer exponents only.
#[inline]
pub fn pow(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f32::NAN;
    }
    let integer = floor(y) == y;
    let odd = integer && y.abs() < 16_777_216.0 && (y.abs() as u32) % 2 == 1;
    if x < 0.0 && x.is_finite() && y.is_finite() && !integer {
        return f32::NAN;
    }
    if x == -1.0 && y.is_infinite() {
        return 1.0;
    }
    let magnitude = exp64(f64::from(y) * ln(f64::from(x.abs()))) as f32;
    if odd && x.is_sign_negative() { -magnitude } else { magnitude }
}

/// Sine. Beyond 2^28, where floats are further apart than its period, it is some number from −1 to 1.
#[inline]
pub fn sin(x: f32) -> f32 {
    sine_after(x, 0)
}

/// Cosine, as [`sin`].
#[inline]
pub fn cos(x: f32) -> f32 {
    sine_after(x, 1)
}

/// The sine of `x` plus this number of quarter turns. The polynomials are those of FreeBSD's `sinf` and `cosf`.
#[inline]
fn sine_after(x: f32, quarters: u64) -> f32 {
    use core::f64::consts::{FRAC_2_PI, FRAC_PI_4};
    // As `ROUND`, of f64; and π/2 in two parts, the first of 25 bits.
    const ROUND_64: f64 = 6_755_399_441_055_744.0;
    const HIGH: f64 = 1.570_796_310_901_641_845_70;
    const LOW: f64 = 1.589_325_477_352_819_669_16e-8;
    let x = f64::from(x);
    let shifted = x * FRAC_2_PI + ROUND_64;
    let near = shifted - ROUND_64;
    let quarter = shifted.to_bits().wrapping_add(quarters);
    let r = (x - near * HIGH - near * LOW).clamp(-FRAC_PI_4, FRAC_PI_4);
    let z = r * r;
    let polynomial = |coefficients: [f64; 4]| coefficients.iter().fold(0.0, |p, c| p * z + c);
    let of_sine = polynomial([
        2.718_311_493_989_821_9e-6,
        -1.983_933_483_609_663_2e-4,
        8.333_329_385_889_463_2e-3,
        -1.666_666_664_162_652_4e-1,
    ]);
    let of_cosine = polynomial([
        2.439_044_879_627_774_1e-5,
        -1.388_676_377_460_992_9e-3,
        4.166_662_332_373_906_3e-2,
        -4.999_999_972_510_310_0e-1,
    ]);
    let sine = if quarter & 1 == 0 { r * (1.0 + z * of_sine) } else { 1.0 + z * of_cosine };
    (if quarter & 2 == 0 { sine } else { -sine }) as f32
}

/// What the division of `a` by `b` leaves over, with the sign of `b`.
pub fn modulo(a: f32, b: f32) -> f32 {
    let left = a % b;
    if left != 0.0 && (left < 0.0) != (b < 0.0) { left + b } else { left }
}

/// Square root, correctly rounded.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_mm_cvtss_f32, _mm_set_ss, _mm_sqrt_ss};
        #[allow(
            unused_unsafe,
            unsafe_code,
            reason = "safe to call only since target features have an algebra"
        )]
        // SAFETY: these instructions are of SSE, which every x86-64 processor has.
        unsafe {
            _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)))
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        sqrt_portable(x)
    }
}

/// [`sqrt`] where there is no instruction for it: Newton's method in `f64`, whose result is near enough that rounding
/// it to `f32` is rounding the true root.
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "tests compare it with the instruction"))]
pub fn sqrt_portable(x: f32) -> f32 {
    if x < 0.0 {
        return f32::NAN;
    }
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let x = f64::from(x);
    let mut root = f64::from_bits((x.to_bits() >> 1) + (511 << 52) + (1 << 51));
    for _ in 0..5 {
        root = 0.5 * (root + x / root);
    }
    root as f32
}

/// The nearest integer; of two equally near ones, the even one. NaN stays as it is.
#[inline(always)]
pub fn round_half_even(x: f32) -> f32 {
    // From here on all floats are integers; below, the sum's last bit counts ones.
    const WHOLE: f32 = 8_388_608.0;
    let size = x.abs();
    if size < WHOLE { ((size + WHOLE) - WHOLE).copysign(x) } else { x }
}

/// The largest integer not above `x`.
#[inline(always)]
pub fn floor(x: f32) -> f32 {
    if x.is_nan() || x.abs() >= 8_388_608.0 {
        return x;
    }
    let whole = x as i32 as f32;
    let whole = if whole > x { whole - 1.0 } else { whole };
    // Keeps the sign of −0.
    if whole == 0.0 { whole.copysign(x) } else { whole }
}

/// The smallest integer not below `x`.
#[inline(always)]
pub fn ceil(x: f32) -> f32 {
    -floor(-x)
}

/// Natural logarithm in double precision.
fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    // x = 2^e · m with m in [√½, √2); ln m = 2 artanh((m − 1) / (m + 1)). Single precision's smallest is normal here.
    let bits = x.to_bits();
    let e = ((bits >> 52) as i32) - 1023;
    let m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let (e, m) = if m > core::f64::consts::SQRT_2 { (e + 1, 0.5 * m) } else { (e, m) };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        p = p * z + 1.0 / odd;
    }
    f64::from(e) * core::f64::consts::LN_2 + 2.0 * s * p
}

/// `e^x` in double precision, for results within the range of single precision.
fn exp64(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let x = x.clamp(-110.0, 110.0);
    let n = (x * core::f64::consts::LOG2_E + if x < 0.0 { -0.5 } else { 0.5 }) as i32;
    let r = x - f64::from(n) * core::f64::consts::LN_2;
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 1..14 {
        term = term * r / f64::from(i);
        sum += term;
    }
    sum * f64::from_bits(((n + 1023) as u64) << 52)
}
