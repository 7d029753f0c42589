//! Frames by rows: each row once, from the top, with the values of whole frames; and errors of the caller.

use std::io;

use csdfc_runtime::run::{FrameRows, InputRow, OutputRow, RunError, Runner, WholeFrame};
use csdfc_tests::{application, plan};

use super::{FRAMES, inputs};

/// A frame that fails at a row, if it has one: of the input (`false`) or of the output (`true`).
struct Checked<'a> {
    whole: WholeFrame<'a>,
    fails: Option<(bool, usize)>,
    /// The next row of the input, and of the output.
    next: [usize; 2],
}

impl Checked<'_> {
    fn count(&mut self, is_output: bool, y: usize) -> io::Result<()> {
        let next = &mut self.next[usize::from(is_output)];
        assert_eq!(y, std::mem::replace(next, y + 1), "rows come from the top");
        match self.fails {
            Some(fails) if fails == (is_output, y) => Err(io::Error::other("no more")),
            _ => Ok(()),
        }
    }
}

impl FrameRows for Checked<'_> {
    fn input(&mut self, input: usize, y: usize, row: InputRow<'_>) -> io::Result<()> {
        self.count(false, y)?;
        self.whole.input(input, y, row)
    }

    fn output(&mut self, output: usize, y: usize, row: OutputRow<'_>) -> io::Result<()> {
        self.count(true, y)?;
        self.whole.output(output, y, row)
    }
}

#[test]
fn rows_come_from_the_top_and_may_fail() {
    let pair = |more: &str| format!("(cnns: [(model: \"builtin:paper_pair\")], {more})");
    let stages = "partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")]";
    for (text, rows) in [
        (pair("rows: all"), [32, 32]),
        (pair("rows: none"), [32, 32]),
        (pair("rows: all, storage: edges"), [32, 32]),
        (format!("(cnns: [(model: \"builtin:resnet8\", {stages})], parallel: [[\"a\", \"b\"]])"), [32, 1]),
    ] {
        let application = application(&text);
        let plan = plan(&application);
        let network = &application.cnns[0].network;
        let parameters = |_, layer, parameter| network.parameter(layer, parameter);
        let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
        let mut reference = Runner::poisoned(&plan, &parameters).unwrap();
        for frame in 0..FRAMES {
            let values = inputs(network, frame);
            let given: Vec<_> = values.iter().map(Some).collect();
            let mut run = |fails| {
                let mut rows = Checked { whole: runner.whole_frame(0, &given).unwrap(), fails, next: [0; 2] };
                runner.infer_rows(0, &mut rows, &mut |_| {}).map(|()| (rows.next, rows.whole.outputs()))
            };
            for (fails, tensor) in [
                ((false, rows[0] / 2), &plan.cnns[0].inputs[0]),
                ((true, rows[1] - 1), &plan.cnns[0].outputs[0].name),
            ] {
                let error = run(Some(fails)).unwrap_err();
                let RunError::Row { tensor: found, y, .. } = &error else { panic!("{error}") };
                assert_eq!((found, *y), (tensor, fails.1), "{text}");
            }
            let (seen, outputs) = run(None).unwrap();
            assert_eq!(seen, rows, "{text}");
            let expected: Vec<_> = reference.infer(0, &values).unwrap().into_iter().map(Some).collect();
            assert!(outputs == expected, "{text}: frame {frame}");
        }
    }
}
