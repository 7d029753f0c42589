use super::std::vec::Vec;

use super::super::input::{Camera, FrameStrides, copy_rows, read_camera, read_frame, write_frame};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::span::{Span, SpanMut};
use super::super::testing::Random;
use super::{Case, Image, std};

/// Place of an element in a frame of either order.
fn place(planar: bool, [h, w, c]: [usize; 3], y: usize, x: usize, channel: usize) -> usize {
    if planar { (channel * h + y) * w + x } else { (y * w + x) * c + channel }
}

fn strides(planar: bool, [h, w, c]: [usize; 3]) -> FrameStrides {
    if planar { FrameStrides::planar(h, w) } else { FrameStrides::interleaved(w, c) }
}

#[test]
fn frames_become_rows_and_rows_frames() {
    let mut random = Random(41);
    for round in 0..40 {
        let size = [random.within(1, 5), random.within(1, 5), *random.pick(&[1, 3, 8])];
        let planar = round % 2 == 0;
        let frame = random.floats(size.iter().product());
        let at = |y, x, c| place(planar, size, y, x, c);
        let case = Case {
            what: "a frame",
            inputs: &[],
            output: size,
            need: |_, _| 0..0,
            want: |y, x, c| f64::from(frame[at(y, x, c)]),
        };
        case.by_rows(&mut random, |y, _, output| read_frame(strides(planar, size), y, &frame, output));
        // A row alone, as when a frame is delivered by rows.
        case.by_rows(&mut random, |y, _, output| {
            for y in y {
                let row: Vec<f32> = if planar {
                    (0..size[2] * size[1]).map(|i| frame[at(y, i % size[1], i / size[1])]).collect()
                } else {
                    frame[y * size[1] * size[2]..][..size[1] * size[2]].to_vec()
                };
                read_frame(strides(planar, size).one_row(size[1]), y..y + 1, &row, output);
            }
        });
        let image = Image::random(&mut random, size);
        let shape = RowShape::dense(size[0], size[1], size[2], size[0]);
        let mut written = std::vec![f32::NAN; frame.len()];
        for y in 0..size[0] {
            let rows = Rows { data: Span::new(&image.data), shape };
            write_frame(strides(planar, size), y..y + 1, rows, &mut written);
        }
        for (i, value) in image.data.iter().enumerate() {
            let (y, x, c) = (i / size[2] / size[1], i / size[2] % size[1], i % size[2]);
            assert_eq!(written[at(y, x, c)], *value);
        }
        let mut copied = std::vec![f32::NAN; frame.len()];
        copy_rows(
            0..size[0],
            Rows { data: Span::new(&image.data), shape },
            &mut RowsMut { data: SpanMut::new(&mut copied), shape },
        );
        assert_eq!(copied, image.data);
    }
}

#[test]
fn bytes_are_shifted_and_scaled() {
    let mut random = Random(42);
    for round in 0..40 {
        let size = [random.within(1, 5), random.within(1, 5), 3];
        let (planar, reversed) = (round % 2 == 0, round % 4 < 2);
        let bytes: Vec<u8> = (0..size.iter().product()).map(|_| random.next() as u8).collect();
        let (mean, scale) = ([123.7, 116.3, 103.5], [0.017_1, 0.017_5, 0.017_4]);
        let p = Camera { strides: strides(planar, size), reversed, mean: &mean, scale: &scale };
        let case = Case {
            what: "camera bytes",
            inputs: &[],
            output: size,
            need: |_, _| 0..0,
            want: |y, x, c| {
                let byte = bytes[place(planar, size, y, x, if reversed { 2 - c } else { c })];
                f64::from((f32::from(byte) - mean[c]) * scale[c])
            },
        };
        case.by_rows(&mut random, |y, _, output| read_camera(&p, y, &bytes, output));
    }
}
