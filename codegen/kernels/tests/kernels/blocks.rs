//! Moves between depth and space.

use csdfc_kernels::depth_space::{DepthToSpace, SpaceToDepth};
use csdfc_kernels::kernel::{ElementKernel, RowKernel};

use crate::cases::{Case, Image, alone};
use crate::testing::{Random, rounds};

/// ONNX: reshape to blocks, transpose, reshape.
#[test]
fn channels_become_pixels_and_pixels_channels() {
    let mut random = Random(31);
    for round in rounds(40) {
        let block = random.within(1, 3);
        let (h, w, c) = (random.within(1, 4), random.within(1, 4), random.within(1, 5));
        let deep = Image::random(&mut random, [h, w, c * block * block]);
        let p = DepthToSpace { block, depth_first: round % 2 == 0 };
        let case = Case {
            what: &format!("{p:?}"),
            inputs: &[&deep],
            output: [h * block, w * block, c],
            need: |_, y: usize| y / block..y / block + 1,
            want: |y, x, channel| {
                let (i, j) = (y % block, x % block);
                // DCR sees channels as [block, block, C], CRD as [C, block, block].
                let from = if p.depth_first {
                    (i * block + j) * c + channel
                } else {
                    (channel * block + i) * block + j
                };
                deep.at(y / block, x / block, from)
            },
        };
        case.by_rows(&mut random, |y, x, output| p.rows(&mut alone(), y, x, &[], output));
        case.by_elements(&mut random, |y, x, output| p.elements(&mut alone(), y, x, &[], output));
        let wide = Image::random(&mut random, [h * block, w * block, c]);
        let case = Case {
            what: &format!("space to depth by {block}"),
            inputs: &[&wide],
            output: [h, w, c * block * block],
            need: |_, y| y * block..(y + 1) * block,
            want: |y, x, channel| {
                let (i, j) = (channel / c / block, channel / c % block);
                wide.at(y * block + i, x * block + j, channel % c)
            },
        };
        case.by_rows(&mut random, |y, x, output| {
            SpaceToDepth { block }.rows(&mut alone(), y, x, &[], output)
        });
        case.by_elements(&mut random, |y, x, output| {
            SpaceToDepth { block }.elements(&mut alone(), y, x, &[], output)
        });
    }
}
