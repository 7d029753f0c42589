//! Elementary functions against those of the standard library.

use csdfc_kernels::math::*;

/// Compares with `reference` on a grid and at the extremes; `absolute` is allowed in addition to 1e-6 of the result.
fn check(name: &str, f: fn(f32) -> f32, reference: fn(f64) -> f64, low: f32, high: f32) {
    for i in 0..=40_000 {
        let x = low + (high - low) * (i as f32 / 40_000.0);
        let (got, want) = (f64::from(f(x)), reference(f64::from(x)));
        let want = f64::from(want as f32);
        let close = got == want || (got - want).abs() <= 1e-6 * want.abs() + 1e-44;
        assert!(close, "{name}({x}) = {got}, not {want}");
    }
    assert!(f(f32::NAN).is_nan(), "{name}(NaN)");
}

/// erf by its series, or by the continued fraction of its complement.
fn reference_erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 3.0 {
        let (mut sum, mut term) = (a, a);
        for n in 1..200 {
            term *= -a * a / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        let mut f = a;
        for n in (1..200).rev() {
            f = a + 0.5 * f64::from(n) / f;
        }
        1.0 - (-a * a).exp() / (f * std::f64::consts::PI.sqrt())
    };
    value.copysign(x)
}

#[test]
fn functions_are_near_the_true_ones() {
    check("exp", exp, f64::exp, -110.0, 95.0);
    check("exp", exp, f64::exp, -1.0, 1.0);
    check("sigmoid", sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 40.0);
    check("tanh", tanh, f64::tanh, -12.0, 12.0);
    check("tanh", tanh, f64::tanh, -1e-3, 1e-3);
    check("erf", erf, reference_erf, -6.0, 6.0);
    check("erf", erf, reference_erf, -1e-3, 1e-3);
    check("softplus", softplus, |x| x.exp().ln_1p(), -80.0, 80.0);
    check("tanh_softplus", tanh_softplus, |x| x.exp().ln_1p().tanh(), -80.0, 80.0);
    check("log", log, f64::ln, 1e-30, 4.0);
    check("log", log, f64::ln, 1e-38, 1e30);
    check("sin", sin, f64::sin, -20.0, 20.0);
    check("sin", sin, f64::sin, -1e-3, 1e-3);
    check("sin", sin, f64::sin, -2.6e8, 2.6e8);
    check("cos", cos, f64::cos, -20.0, 20.0);
    check("cos", cos, f64::cos, -2.6e8, 2.6e8);
    check("sqrt", sqrt, f64::sqrt, 0.0, 1e6);
    check("floor", floor, f64::floor, -20.0, 20.0);
    check("ceil", ceil, f64::ceil, -1e8, 1e8);
}

#[test]
fn a_sigmoid_takes_the_bits_of_exp() {
    for i in -8700..=8800 {
        let x = i as f32 * -0.01;
        assert_eq!(sigmoid(x).to_bits(), (1.0 / (1.0 + exp(-x))).to_bits(), "{x}");
    }
    assert_eq!((sigmoid(f32::INFINITY), sigmoid(100.0)), (1.0, 1.0));
    assert!(sigmoid(f32::NEG_INFINITY) < 1e-38 && sigmoid(-100.0) >= 0.0);
    assert!(sigmoid(f32::NAN).is_nan());
}

#[test]
fn extremes() {
    assert_eq!(exp(f32::INFINITY), f32::INFINITY);
    assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    assert!(sin(f32::INFINITY).is_nan() && cos(f32::NEG_INFINITY).is_nan());
    assert!(sin(1e30).abs() <= 1.0 && cos(f32::MAX).abs() <= 1.0);
    assert!(sin(-0.0).is_sign_negative());
    assert_eq!((tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!((erf(f32::INFINITY), erf(f32::NEG_INFINITY)), (1.0, -1.0));
    assert_eq!((log(0.0), log(f32::INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
    assert!(log(-1.0).is_nan() && sqrt(-1.0).is_nan());
    assert_eq!(tanh_softplus(f32::INFINITY), 1.0);
    assert_eq!(floor(-0.0).to_bits(), (-0.0_f32).to_bits());
    assert_eq!((floor(f32::INFINITY), ceil(f32::NEG_INFINITY)), (f32::INFINITY, f32::NEG_INFINITY));
}

#[test]
fn roots_without_the_instruction() {
    for i in 0..200_000_u32 {
        let x = f32::from_bits(i.wrapping_mul(21_391) % 0x7f80_0000);
        assert_eq!(sqrt_portable(x), x.sqrt(), "{x:e}");
    }
}

#[test]
fn powers() {
    let bases = [-2.5, -2.0, -1.0, -0.0, 0.0, 0.3, 1.0, 2.0, 17.5, 1e20, f32::INFINITY, f32::NEG_INFINITY];
    let exponents =
        [-3.0, -2.0, -1.0, -0.5, 0.0, 0.33, 0.5, 0.75, 1.0, 2.0, 3.0, 7.0, f32::INFINITY, f32::NEG_INFINITY];
    for x in bases {
        for y in exponents {
            let (got, want) = (pow(x, y), f64::from(x).powf(f64::from(y)) as f32);
            let same =
                got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= 1e-6 * want.abs();
            assert!(same, "{x}^{y} = {got}, not {want}");
        }
    }
}
