//! Elements that other tensors choose: by a condition, by indices, by the places of largest elements.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::elements::{Dims, Elements, ElementsMut};
use csdfc_kernels::gather::GatherElements;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::max_unpool::{MaxIndex, MaxUnpool};
use csdfc_kernels::pool::{Pool, PoolKind};
use csdfc_kernels::ternary::Where;

use crate::cases::{Case, Image, Tensor, alone, check_dense};
use crate::testing::{Random, rounds};

#[test]
fn a_condition_chooses() {
    let mut random = Random(71);
    for round in rounds(100) {
        let size = [random.within(1, 5), random.within(1, 5), *random.pick(&[1, 3, 16])];
        // One is whole, the others are or repeat.
        let mut sides = [0, 1, 2].map(|i| {
            let size = size.map(|d| if i == round % 3 || random.within(0, 1) == 1 { d } else { 1 });
            Image::random(&mut random, size)
        });
        sides[0].data.iter_mut().for_each(|x| *x = if *x > 0.0 { *x } else { 0.0 });
        let inputs = [&sides[0], &sides[1], &sides[2]];
        let p = Where { constants: [false; 3] };
        let case = Case {
            what: &format!("{:?} of {:?}", p, inputs.map(|side| side.size)),
            inputs: &inputs,
            output: size,
            need: |i: usize, y| if inputs[i].size[0] == 1 { 0..1 } else { y..y + 1 },
            want: |y, x, c| {
                let [condition, a, b] = inputs.map(|side| side.broadcast([y, x, c]));
                if condition == 0.0 { b } else { a }
            },
        };
        case.by_rows(&mut random, |y, inputs, output| {
            p.rows(&mut Context::alone(Isa::compiled()), y, inputs, &[], output);
        });
        case.by_elements(&mut random, |y, inputs, output| p.elements(&mut alone(), y, inputs, &[], output));
    }
}

/// Whichever of the three are constants.
#[test]
fn constants_are_chosen_too() {
    let of = |values: &'static [f32]| Elements::dense(values, &[4]);
    let sides = [of(&[1.0, 0.0, 0.0, 2.0]), of(&[1.0, 2.0, 3.0, 4.0]), of(&[5.0, 6.0, 7.0, 8.0])];
    for bits in 0..7 {
        let constants = [0, 1, 2].map(|i| bits >> i & 1 == 1);
        let of_kind = |wanted: bool| -> Vec<Elements<'_>> {
            sides.iter().zip(constants).filter(|(_, kind)| *kind == wanted).map(|(side, _)| *side).collect()
        };
        let mut made = [0.0; 4];
        let output = &mut ElementsMut::dense(&mut made, &[4]);
        Where { constants }.elements(&mut alone(), 0..1, &of_kind(false), &of_kind(true), output);
        assert_eq!(made, [1.0, 6.0, 7.0, 4.0]);
    }
}

#[test]
fn indices_gather() {
    let mut random = Random(72);
    for _ in rounds(100) {
        let rank = random.within(1, 5);
        let x = Tensor::random(&mut random, rank);
        let axis = random.within(0, rank - 1);
        let mut dims: Vec<usize> = x.dims.iter().map(|size| random.within(1, *size)).collect();
        dims[axis] = random.within(1, 4);
        let size = x.dims[axis];
        let count = Dims::new(&dims).elements();
        let indices: Vec<f32> =
            (0..count).map(|_| random.within(0, 2 * size - 1) as f32 - size as f32).collect();
        let p = GatherElements { axis };
        let mut order = Random(random.next());
        x.with(&mut order, |input| {
            let places = Elements::dense(&indices, &dims);
            let run =
                |output: &mut ElementsMut<'_>| p.elements(&mut alone(), 0..1, &[*input, places], &[], output);
            check_dense("indices", &dims, run, |index| {
                let place = indices[Dims::new(&dims).linear(index)] as isize;
                let mut at = *index;
                at[axis] = if place < 0 { place + size as isize } else { place } as usize;
                x.at(&at)
            });
        });
    }
}

/// Of windows that do not overlap, each largest element goes back where it was.
#[test]
fn largest_elements_go_back() {
    let mut random = Random(73);
    for _ in rounds(60) {
        let kernel = [random.within(1, 3), random.within(1, 3)];
        let [channels, high, wide] = [(); 3].map(|()| random.within(1, 4));
        let dims = [1, channels, high * kernel[0], wide * kernel[1]];
        // Few values, so that there are equal ones.
        let x: Vec<f32> = random.floats(dims.iter().product()).iter().map(|x| (2.0 * x).round()).collect();
        let window = Pool { kind: PoolKind::Max, kernel, stride: kernel, dilation: [1; 2], pads: [0; 4] };
        let small = [1, channels, high, wide];
        let count = small.iter().product();
        let (mut largest, mut places) = (vec![0.0; count], vec![-1.0; count]);
        let input = Elements::dense(&x, &dims);
        let output = &mut ElementsMut::dense(&mut largest, &small);
        ElementKernel::<f32>::elements(&window, &mut alone(), 0..1, &[input], &[], output);
        let output = &mut ElementsMut::dense(&mut places, &small);
        MaxIndex { window }.elements(&mut alone(), 0..1, &[input], &[], output);
        let mut back = vec![f32::NAN; x.len()];
        let output = &mut ElementsMut::dense(&mut back, &dims);
        let operands = [Elements::dense(&largest, &small), Elements::dense(&places, &small)];
        MaxUnpool.elements(&mut alone(), 0..1, &operands, &[], output);
        let mut wanted = vec![0.0; x.len()];
        for at in 0..count {
            let [_, c, y, x0] = [0, 1, 2, 3].map(|axis| Dims::new(&small).index(at)[axis]);
            let window = (0..kernel[0]).flat_map(|ky| (0..kernel[1]).map(move |kx| (ky, kx)));
            let place = |(ky, kx)| {
                let [row, column] = [y * kernel[0] + ky, x0 * kernel[1] + kx];
                (c * dims[2] + row) * dims[3] + column
            };
            // Of equal elements, the first.
            let best = window.map(place).reduce(|best, place| if x[place] > x[best] { place } else { best });
            wanted[best.unwrap()] = x[best.unwrap()];
        }
        assert_eq!(back, wanted, "{kernel:?} {dims:?}");
    }
}
