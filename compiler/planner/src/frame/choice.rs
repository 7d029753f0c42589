//! A choice: what a search decides for one CNN. It decides how many rows each layer makes per firing, where segments
//! end, and which layers make the rows of a firing one by one.
//!
//! A *segment* is a run of layers that is executed on demand: a layer fires only when the last layers of the segment
//! need its rows. Segments run one after another. Where one ends is decided in one of three ways:
//!
//! 1. The application file gives the partition a schedule. Its steps are the segments.
//! 2. The choice has *barriers*: layers after which a segment ends. The extended search uses them.
//! 3. Otherwise, each run of layers that process their data by parts is a segment, together with the layers of a
//!    single row within the run. Every other layer is a segment of its own.
//!
//! ```
//! use csdfc_planner::frame::choice::Choice;
//!
//! // An input of 32 rows, and a convolution that makes 32.
//! let network = csdfc_input::builtin::network("paper_pair")?;
//! assert_eq!(Choice::none(&network).rows, [32, 32]);
//! assert_eq!(Choice::all(&network).rows, [1, 1]);
//! assert_eq!(Choice::prefix(&network, 1).rows, [1, 32]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::{LayerId, Network};

/// How one frame of a CNN is processed, under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// `none`, `all`, `prefix 12` or `given`.
    pub name: String,
    /// Rows per firing, one per layer.
    pub rows: Vec<u64>,
    /// Segment barriers: the layers, in ascending order, after which a segment ends. In each partition, the layers up
    /// to a barrier run to completion before the next layers begin. So `[]` interleaves all layers of a partition. With
    /// `None`, each run of layers that go by parts is a segment, together with the layers of a single row within the
    /// run, and every other layer is a segment of its own.
    pub barriers: Option<Vec<LayerId>>,
    /// The layers, in ascending order, that may make the rows of a firing one by one at a cost in time, since their filters
    /// exceed the nearest cache. Such a layer can write to addresses whose rows it has just read. All other layers
    /// whose filters exceed the cache make their rows at once. With `None`, a search decides.
    pub one_by_one: Option<Vec<LayerId>>,
}

impl Choice {
    /// No layer processes its data by parts.
    pub fn none(network: &Network) -> Self {
        Choice { name: "none".into(), rows: heights(network), barriers: None, one_by_one: None }
    }

    /// Every layer that can, fires once per row.
    pub fn all(network: &Network) -> Self {
        Choice { name: "all".into(), rows: vec![1; network.layers.len()], ..Choice::none(network) }
    }

    /// The choice that the application gives for one of its CNNs; `None` if it leaves the choice to the planner.
    pub fn given(application: &Application, cnn: usize) -> Option<Self> {
        let network = &application.cnns[cnn].network;
        match &application.rows {
            RowsChoice::Default => None,
            RowsChoice::None => Some(Choice::none(network)),
            RowsChoice::All => Some(Choice::all(network)),
            RowsChoice::Layers(given) => {
                let mut choice = Choice { name: "given".into(), ..Choice::none(network) };
                for ((of, LayerId(layer)), rows) in given {
                    if *of == cnn {
                        choice.rows[*layer] = *rows;
                    }
                }
                Some(choice)
            }
        }
    }

    /// The first `length` layers fire once per row, the others once.
    pub fn prefix(network: &Network, length: usize) -> Self {
        let mut rows = heights(network);
        rows[..length].fill(1);
        Choice { name: format!("prefix {length}"), rows, ..Choice::none(network) }
    }
}

fn heights(network: &Network) -> Vec<u64> {
    network.layers.iter().map(|layer| layer.rows() as u64).collect()
}
