//! The text of the kernels, for crates that bring their own copy.

/// Paths from `src` and texts of all files but this one, the crate's root, and tests.
pub const SOURCES: &[(&str, &str)] = &[
    ("activation.rs", include_str!("activation.rs")),
    ("arch/avx2.rs", include_str!("arch/avx2.rs")),
    ("arch/avx512.rs", include_str!("arch/avx512.rs")),
    ("arch/mod.rs", include_str!("arch/mod.rs")),
    ("arch/neon.rs", include_str!("arch/neon.rs")),
    ("arch/portable.rs", include_str!("arch/portable.rs")),
    ("arg_max.rs", include_str!("arg_max.rs")),
    ("binary.rs", include_str!("binary.rs")),
    ("checksum.rs", include_str!("checksum.rs")),
    ("concat.rs", include_str!("concat.rs")),
    ("conv/dense.rs", include_str!("conv/dense.rs")),
    ("conv/depthwise/line.rs", include_str!("conv/depthwise/line.rs")),
    ("conv/depthwise/mod.rs", include_str!("conv/depthwise/mod.rs")),
    ("conv/direct.rs", include_str!("conv/direct.rs")),
    ("conv/fft.rs", include_str!("conv/fft.rs")),
    ("conv/fft2d.rs", include_str!("conv/fft2d.rs")),
    ("conv/im2row.rs", include_str!("conv/im2row.rs")),
    ("conv/kn2.rs", include_str!("conv/kn2.rs")),
    ("conv/lowered.rs", include_str!("conv/lowered.rs")),
    ("conv/mec.rs", include_str!("conv/mec.rs")),
    ("conv/mec_batch.rs", include_str!("conv/mec_batch.rs")),
    ("conv/mixed.rs", include_str!("conv/mixed.rs")),
    ("conv/mod.rs", include_str!("conv/mod.rs")),
    ("conv/pointwise.rs", include_str!("conv/pointwise.rs")),
    ("conv/pre.rs", include_str!("conv/pre.rs")),
    ("conv/scenario.rs", include_str!("conv/scenario.rs")),
    ("conv/transpose.rs", include_str!("conv/transpose.rs")),
    ("conv/uses.rs", include_str!("conv/uses.rs")),
    ("conv/window.rs", include_str!("conv/window.rs")),
    ("conv/winograd/mod.rs", include_str!("conv/winograd/mod.rs")),
    ("conv/winograd/transform.rs", include_str!("conv/winograd/transform.rs")),
    ("convert.rs", include_str!("convert.rs")),
    ("depth_space.rs", include_str!("depth_space.rs")),
    ("element.rs", include_str!("element.rs")),
    ("element_wise.rs", include_str!("element_wise.rs")),
    ("elements.rs", include_str!("elements.rs")),
    ("gemm.rs", include_str!("gemm.rs")),
    ("grid_sample.rs", include_str!("grid_sample.rs")),
    ("indirect.rs", include_str!("indirect.rs")),
    ("instance_norm.rs", include_str!("instance_norm.rs")),
    ("kernel.rs", include_str!("kernel.rs")),
    ("layout.rs", include_str!("layout.rs")),
    ("lrn.rs", include_str!("lrn.rs")),
    ("mat_mul.rs", include_str!("mat_mul.rs")),
    ("math.rs", include_str!("math.rs")),
    ("pad.rs", include_str!("pad.rs")),
    ("panel.rs", include_str!("panel.rs")),
    ("pixels.rs", include_str!("pixels.rs")),
    ("pool.rs", include_str!("pool.rs")),
    ("product.rs", include_str!("product.rs")),
    ("quantised/avx2.rs", include_str!("quantised/avx2.rs")),
    ("quantised/avx512.rs", include_str!("quantised/avx512.rs")),
    ("quantised/binary.rs", include_str!("quantised/binary.rs")),
    ("quantised/cast.rs", include_str!("quantised/cast.rs")),
    ("quantised/conv.rs", include_str!("quantised/conv.rs")),
    ("quantised/dense.rs", include_str!("quantised/dense.rs")),
    ("quantised/depthwise.rs", include_str!("quantised/depthwise.rs")),
    ("quantised/dotprod.rs", include_str!("quantised/dotprod.rs")),
    ("quantised/gemm.rs", include_str!("quantised/gemm.rs")),
    ("quantised/integers.rs", include_str!("quantised/integers.rs")),
    ("quantised/mod.rs", include_str!("quantised/mod.rs")),
    ("quantised/neon.rs", include_str!("quantised/neon.rs")),
    ("quantised/panels.rs", include_str!("quantised/panels.rs")),
    ("quantised/pool.rs", include_str!("quantised/pool.rs")),
    ("quantised/pre.rs", include_str!("quantised/pre.rs")),
    ("quantised/table.rs", include_str!("quantised/table.rs")),
    ("quantised/tiles.rs", include_str!("quantised/tiles.rs")),
    ("reduce.rs", include_str!("reduce.rs")),
    ("resample.rs", include_str!("resample.rs")),
    ("resize.rs", include_str!("resize.rs")),
    ("rows.rs", include_str!("rows.rs")),
    ("share.rs", include_str!("share.rs")),
    ("shared.rs", include_str!("shared.rs")),
    ("slice.rs", include_str!("slice.rs")),
    ("softmax.rs", include_str!("softmax.rs")),
    ("span.rs", include_str!("span.rs")),
    ("suppression.rs", include_str!("suppression.rs")),
    ("tile.rs", include_str!("tile.rs")),
    ("top_k.rs", include_str!("top_k.rs")),
    ("transpose.rs", include_str!("transpose.rs")),
    ("weight.rs", include_str!("weight.rs")),
    ("workers.rs", include_str!("workers.rs")),
];

#[cfg(test)]
mod tests {
    extern crate std;

    use super::SOURCES;
    use std::path::{Path, PathBuf};
    use std::string::{String, ToString};
    use std::vec::Vec;

    #[test]
    fn no_file_is_missing() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut found, mut open) = (Vec::<String>::new(), std::vec![root.clone()]);
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
                match name.as_str() {
                    name if name.contains("test") => {}
                    "lib.rs" | "sources.rs" => {}
                    _ if path.is_dir() => open.push(path),
                    name => found.push(name.to_string()),
                }
            }
        }
        found.sort();
        assert_eq!(found, SOURCES.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>());
    }
}
