//! What can be wrong with a model. Messages name the file, the node and a way to mend it.

use std::fmt;

use csdfc_network::operators::ShapeError;

/// Why a model cannot be imported.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{model}: cannot be read")]
    #[diagnostic(code(csdfc::import::read), help("check the path and the permissions of the file"))]
    Read {
        /// The file.
        model: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file only says where Git LFS keeps the model.
    #[error("{model}: it is a pointer of Git LFS to the model, which is not here")]
    #[diagnostic(
        code(csdfc::import::lfs_pointer),
        help("get the model itself: `git lfs pull`, or download it from the page of its repository")
    )]
    LfsPointer {
        /// The file.
        model: String,
    },
    /// The bytes are no ONNX model.
    #[error("{model}: not an ONNX model: {reason}")]
    #[diagnostic(
        code(csdfc::import::not_onnx),
        help("the file may be truncated, damaged or of another format; export or copy it anew")
    )]
    NotOnnx {
        /// The file.
        model: String,
        /// What is wrong.
        reason: OnnxError,
    },
    /// The bytes are no TFLite model, though they begin as one.
    #[error("{model}: not a TFLite model: {reason}")]
    #[diagnostic(
        code(csdfc::import::not_tflite),
        help("the file may be truncated, damaged or of another format; convert or copy it anew")
    )]
    NotTflite {
        /// The file.
        model: String,
        /// What is wrong.
        reason: String,
    },
    /// The model's operator set is too old, too new or not stated.
    #[error("{model}: {reason}")]
    #[diagnostic(code(csdfc::import::opset))]
    Opset {
        /// The file.
        model: String,
        /// What is wrong.
        reason: String,
        /// The mend.
        #[help]
        help: String,
    },
    /// Operators that csdfc does not know; the error lists all of them.
    #[error("{model}: {}", listed(nodes))]
    #[diagnostic(code(csdfc::import::unsupported))]
    Unsupported {
        /// The file.
        model: String,
        /// The nodes, in the model's order.
        nodes: Vec<UnsupportedNode>,
        /// The operators that are supported.
        #[help]
        help: String,
    },
    /// A node that cannot be imported.
    #[error("{model}: node {node} ({operator}): {reason}")]
    #[diagnostic(code(csdfc::import::node))]
    Node {
        /// The file.
        model: String,
        /// Its name, or that of its first output.
        node: String,
        /// Its operator.
        operator: String,
        /// What is wrong.
        reason: String,
        /// The mend, where there is one.
        #[help]
        help: Option<String>,
    },
    /// An input of the network that cannot be planned.
    #[error("{model}: input {input}: {reason}")]
    #[diagnostic(code(csdfc::import::input))]
    Input {
        /// The file.
        model: String,
        /// Its name.
        input: String,
        /// What is wrong.
        reason: String,
        /// The mend.
        #[help]
        help: String,
    },
    /// An input whose batch is not 1, in a model whose frames cannot be computed one after another.
    #[error("{model}: input {input}: its batch is {batch}, {reason}")]
    #[diagnostic(code(csdfc::import::input))]
    Batch {
        /// The file.
        model: String,
        /// Its name.
        input: String,
        /// Its batch.
        batch: usize,
        /// What is wrong.
        reason: String,
        /// The mend.
        #[help]
        help: String,
    },
    /// An output of the network that cannot be planned.
    #[error("{model}: output {output}: {reason}")]
    #[diagnostic(code(csdfc::import::output))]
    Output {
        /// The file.
        model: String,
        /// Its name.
        output: String,
        /// What is wrong.
        reason: String,
        /// The mend.
        #[help]
        help: String,
    },
    /// A shape given for an input that the model does not have.
    #[error("{model}: no input named {input}")]
    #[diagnostic(code(csdfc::import::shape))]
    UnknownInput {
        /// The file.
        model: String,
        /// The name given.
        input: String,
        /// The near miss, or the inputs that there are.
        #[help]
        help: String,
    },
    /// A stored tensor that is damaged or of an element type that cannot be planned.
    #[error("{model}: tensor {tensor}: {reason}")]
    #[diagnostic(code(csdfc::import::tensor))]
    Tensor {
        /// The file.
        model: String,
        /// Its name.
        tensor: String,
        /// What is wrong.
        reason: String,
        /// The mend, where there is one.
        #[help]
        help: Option<String>,
    },
    /// The graph is inconsistent.
    #[error("{model}: {reason}")]
    #[diagnostic(code(csdfc::import::graph))]
    Graph {
        /// The file.
        model: String,
        /// What is wrong.
        reason: String,
        /// The mend.
        #[help]
        help: String,
    },
}

/// What is wrong with the bytes of an ONNX model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes cannot be read, or end too soon.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// A length leads beyond the message that it is in.
    #[error("a field reaches beyond the end")]
    BeyondEnd,
    /// A number has more than 64 bits.
    #[error("a number is too long")]
    LongNumber,
    /// The type of a field's bytes is none that protobuf has now.
    #[error("it has a field of unknown wire type {0}")]
    WireType(u64),
    /// The length of an array is no multiple of that of its numbers.
    #[error("an array ends within a number")]
    CutNumber,
    /// A name is not UTF-8.
    #[error("a name is no text")]
    NoText,
    /// Messages lie too deep in messages.
    #[error("messages nest deeper than {0}")]
    Depth(usize),
    /// Decoded messages would take too much memory.
    #[error("more than {0} messages")]
    TooManyMessages(usize),
    /// A field that may be there once is there twice.
    #[error("a function has {0} twice")]
    Twice(&'static str),
    /// The decoder refuses a message.
    #[error(transparent)]
    Decode(#[from] rten_onnx::protobuf::ProtobufError),
    /// A model without nodes.
    #[error("it has no graph")]
    NoGraph,
}

/// A node whose operator is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedNode {
    /// Its name, or that of its first output.
    pub node: String,
    /// Its operator, with its domain where that is not ONNX's own.
    pub operator: String,
}

/// What is wrong with one node or tensor. A caller that knows its name makes an [`ImportError`] of it.
#[derive(Debug)]
pub(super) struct Fault {
    pub reason: String,
    pub help: Option<String>,
}

impl Fault {
    pub fn new(reason: impl Into<String>) -> Self {
        Fault { reason: reason.into(), help: None }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<ShapeError> for Fault {
    fn from(error: ShapeError) -> Self {
        Fault::new(error.0)
    }
}

/// `Err` with a formatted [`Fault`].
macro_rules! fault {
    ($($format:tt)*) => { Err($crate::import::error::Fault::new(format!($($format)*))) };
}
pub(super) use fault;

fn listed(nodes: &[UnsupportedNode]) -> String {
    const SHOWN: usize = 20;
    let mut text = match nodes.len() {
        1 => "one node has an operator that is not supported:".to_string(),
        n => format!("{n} nodes have operators that are not supported:"),
    };
    for node in nodes.iter().take(SHOWN) {
        text.push_str(&format!("\n  {node}"));
    }
    if nodes.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", nodes.len() - SHOWN));
    }
    text
}

impl fmt::Display for UnsupportedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.node, self.operator)
    }
}
