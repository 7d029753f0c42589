//! `bench-tract MODEL FRAMES`: runs frames of ones through an ONNX model on one thread, and prints the seconds of wall
//! time until the first output was there, and the process's highest resident memory in KiB.

use std::time::Instant;

use tract_onnx::prelude::*;

fn main() -> TractResult<()> {
    let start = Instant::now();
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_default();
    let frames: usize = arguments.next().and_then(|frames| frames.parse().ok()).unwrap_or(1);
    let model = tract_onnx::onnx().model_for_path(model)?.into_optimized()?;
    let shape = model.input_fact(0)?.shape.as_concrete().map(<[usize]>::to_vec).unwrap_or_default();
    let model = model.into_runnable()?;
    for frame in 0..frames {
        let mut input = Tensor::zero::<f32>(&shape)?;
        input.fill_t(1.0_f32)?;
        model.run(tvec!(input.into()))?;
        if frame == 0 {
            println!("first {}", start.elapsed().as_secs_f64());
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("peak {}", peak.trim().trim_end_matches(" kB"));
    Ok(())
}
