//! "MEC: Memory-efficient convolution for deep neural network" (Cho and Brand, 2017): its Tables 2 and 3, Figure 4a and
//! headlines, compared with csdfc's figures.

mod layers;
mod methods;
mod sizes;
mod times;

use super::Tell;

/// The page and its figures, by file name. Without times the page is the same on every machine. `tell` receives the
/// progress.
pub fn files(with_times: bool, tell: Tell<'_>) -> Vec<(String, String)> {
    let (mut page, mut files) = without_times();
    if with_times {
        let (text, figure) = times::sections(tell);
        page.push_str(&text);
        files.push(("figure-4a-runtime.svg".into(), figure));
    }
    files.insert(0, ("README.md".into(), page));
    files
}

/// The beginning of the page, and its figures: all that is not measured.
pub fn without_times() -> (String, Vec<(String, String)>) {
    let (sweep, figure) = sizes::figure_4a();
    let page = [
        INTRODUCTION,
        &sizes::table_2(),
        ALLOCATED,
        &sizes::allocated(),
        TABLE_3,
        &sizes::table_3(),
        FIGURE_4A,
        &sweep,
        HEADLINES,
        &sizes::headlines(),
    ];
    (page.concat(), vec![("figure-4a-memory.svg".into(), figure)])
}

const INTRODUCTION: &str = "# MEC: Memory-efficient convolution for deep neural network

Made by `cargo run --release -p csdfc-reproduce -- mec -o docs/mec`; do not edit.
It sets the figures of Cho and Brand (2017) beside csdfc's.
Sizes are exact, since they come from the formulas that also give kernels their workspaces; `--no-times` writes only
sizes.

## Table 2: the lowered matrices

Elements of one image; i_h is the padded height. A batch of n images has n times as many. *Solution* is what line 8 of
Algorithm 2 chooses with T = 100: A if the output has no more than T columns and no more elements than L, else B. With
one image in HWC both make the same.

";

const ALLOCATED: &str = "
## Workspace as allocated

Bytes for one image, from HWC to HWC. *Winograd, whole* has all tiles of F(2×2, 3×3) at once, as the paper; *by strips* are
csdfc's primitives, which have a few rows at a time. Winograd also keeps its filters transformed.

";

const TABLE_3: &str = "
## Table 3: ResNet-101

MiB (2^20 bytes) of the lowered matrices, summed over all occurrences of a layer, as in the paper. For cv9 the paper has
6.7, but three times 580 608 elements are 6.64 MiB.

";

const FIGURE_4A: &str = "
## Figure 4a: memory

Elements for cv1 with other strides. The paper goes up to 10. With stride 11 no two windows overlap, and MEC takes more: as
printed, it also lowers the rows that no window reads.

![Memory over strides](figure-4a-memory.svg)

";

const HEADLINES: &str = "
## The headlines of memory

The paper's 3.2 is its Table 3. *At most 3.4* holds for cv3, cv4 and Table 3: by Eq. 2 and 3 other layers of Table 2 save
more. No count of Winograd's matrices that we tried gives the paper's 5.9.

";
