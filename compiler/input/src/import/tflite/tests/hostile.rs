//! Files cut short, and with bytes changed: every one is imported or refused, and soon.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{F16, Field, I8, Model, Sparsity, Tensor, small};
use crate::import::{ImportOptions, import_bytes};

/// A model with constants of every kind, and an operator of each family.
fn varied() -> Model {
    let mut model = small();
    let (x, half) = (model.inputs[0], 0x3c00u16.to_le_bytes());
    let scales = Tensor { element: I8, scales: vec![0.5], points: vec![3], ..Tensor::default() };
    let q = model.tensor(Tensor { shape: vec![1, 5, 6, 2], ..scales.clone() });
    model.operator("QUANTIZE", &[x], &[q], &[]);
    let filters = Tensor {
        shape: vec![4, 1, 1, 2],
        data: Some((0..8).collect()),
        scales: vec![0.1; 4],
        points: vec![0; 4],
        ..scales.clone()
    };
    let (filters, y) = (model.tensor(filters), model.tensor(Tensor { shape: vec![1, 5, 6, 4], ..scales }));
    model.operator("CONV_2D", &[q, filters, -1], &[y], &[(1, Field::Int(1)), (2, Field::Int(1))]);
    let seen = model.tensor(Tensor {
        shape: vec![1, 120],
        element: I8,
        scales: vec![0.5],
        points: vec![3],
        ..Tensor::default()
    });
    model.operator("RESHAPE", &[y], &[seen], &[(0, Field::Ints(vec![1, -1]))]);
    let levels = vec![(1, None), (2, None), (1, Some([vec![0, 1, 2], vec![0, 0]])), (1, None)];
    let sparsity = Some(Sparsity { order: vec![0, 1, 2, 3], cut: vec![2], levels });
    let slopes = Tensor {
        shape: vec![1, 2, 1],
        element: F16,
        data: Some([half, half].concat()),
        sparsity,
        ..Tensor::default()
    };
    let (slopes, wide) = (model.tensor(slopes), model.made(&[1, 2, 1]));
    model.operator("DENSIFY", &[slopes], &[wide], &[]);
    let (flat, sloped) = (model.made(&[2]), model.made(&[1, 5, 6, 2]));
    model.operator("RESHAPE", &[wide], &[flat], &[(0, Field::Ints(vec![2]))]);
    model.operator("PRELU", &[x, flat], &[sloped], &[]);
    model.outputs.extend([seen, sloped]);
    model
}

#[test]
fn whole_it_is_imported() {
    varied().import().unwrap();
}

#[test]
fn a_file_may_end_anywhere() {
    let bytes = varied().bytes();
    for end in 0..bytes.len() {
        let _ = import_bytes(&bytes[..end], None, &ImportOptions::default());
    }
}

#[test]
fn any_byte_may_be_another() {
    let bytes = varied().bytes();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, random.random()] {
            let mut changed = bytes.clone();
            changed[at] = value;
            let _ = import_bytes(&changed, None, &ImportOptions::default());
        }
    }
}

#[test]
fn any_number_may_be_huge() {
    let bytes = varied().bytes();
    for at in 0..bytes.len() - 4 {
        for value in [u32::MAX, 1 << 31, i32::MAX as u32, 1 << 24] {
            let mut changed = bytes.clone();
            changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let _ = import_bytes(&changed, None, &ImportOptions::default());
        }
    }
}
