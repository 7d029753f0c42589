//! The figures that Minakova and Stefanov (2022) print.

/// An application of Table 12.
pub struct Application {
    /// The name in the row.
    pub name: &'static str,
    /// Its file.
    pub file: &'static str,
    /// Names of its CNNs.
    pub cnns: &'static [&'static str],
    /// Without reduction, by \[23\] and by \[17\].
    pub baselines: [Figures; 3],
    /// Memory constraints in megabytes (`None` for the least memory), and the figures of the paper's own method under
    /// them.
    pub paper: &'static [(Option<u64>, Figures)],
}

impl Application {
    /// Its number, without its kind.
    pub fn number(&self) -> &'static str {
        self.name.split(',').next().unwrap_or(self.name)
    }
}

/// Memory in megabytes, and frames per second of each CNN.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    /// Megabytes of 10^6 bytes.
    pub memory: f64,
    /// Frames per second of each CNN.
    pub fps: &'static [f64],
}

const fn of(memory: f64, fps: &'static [f64]) -> Figures {
    Figures { memory, fps }
}

/// Table 12.
pub const APPLICATIONS: [Application; 6] = [
    Application {
        name: "1",
        file: include_str!("../../../../apps/table12/app1.ron"),
        cnns: &["mobilenet_v2"],
        baselines: [of(58.63, &[46.0]), of(20.32, &[46.0]), of(16.2, &[40.0])],
        paper: &[(Some(25), of(20.32, &[46.0])), (Some(15), of(14.98, &[41.0])), (None, of(14.90, &[40.5]))],
    },
    Application {
        name: "2",
        file: include_str!("../../../../apps/table12/app2.ron"),
        cnns: &["efficientnet_b0"],
        baselines: [of(161.33, &[168.35]), of(39.14, &[168.35]), of(42.97, &[98.0])],
        paper: &[
            (Some(150), of(39.14, &[168.35])),
            (Some(40), of(39.14, &[168.35])),
            (None, of(27.30, &[128.5])),
        ],
    },
    Application {
        name: "3, pipeline",
        file: include_str!("../../../../apps/table12/app3.ron"),
        cnns: &["mobilenet_v2"],
        baselines: [of(61.69, &[49.0]), of(20.32, &[46.0]), of(17.38, &[43.0])],
        paper: &[(Some(30), of(30.0, &[49.0])), (Some(15), of(15.92, &[43.65])), (None, of(15.92, &[43.65]))],
    },
    Application {
        name: "4, pipeline",
        file: include_str!("../../../../apps/table12/app4.ron"),
        cnns: &["efficientnet_b0"],
        baselines: [of(163.65, &[170.3]), of(39.14, &[168.35]), of(44.18, &[98.8])],
        paper: &[
            (Some(150), of(45.0, &[170.3])),
            (Some(50), of(45.0, &[170.3])),
            (None, of(31.34, &[124.24])),
        ],
    },
    Application {
        name: "5, three CNNs",
        file: include_str!("../../../../apps/table12/app5.ron"),
        cnns: &["inception_v2", "mobilenet_v1_0.25", "resnet50"],
        baselines: [
            of(380.0, &[94.0, 432.0, 55.0]),
            of(175.0, &[94.0, 432.0, 55.0]),
            of(226.0, &[67.0, 183.0, 46.0]),
        ],
        paper: &[(Some(200), of(175.0, &[94.0, 432.0, 55.0])), (None, of(162.0, &[75.0, 244.0, 47.0]))],
    },
    Application {
        name: "6, three CNNs",
        file: include_str!("../../../../apps/table12/app6.ron"),
        cnns: &["densenet121", "mobilenet_v1", "resnet50"],
        baselines: [
            of(625.0, &[52.0, 59.0, 55.0]),
            of(291.0, &[52.0, 59.0, 55.0]),
            of(184.0, &[37.0, 50.0, 46.0]),
        ],
        paper: &[(Some(500), of(161.0, &[52.0, 59.0, 55.0])), (None, of(155.0, &[41.0, 54.0, 49.0]))],
    },
];

/// Buffers of Tables 1, 8 and 9: the edges that each holds, and its elements.
pub type Buffers = &'static [(&'static str, u64)];

/// Table 1: every edge in a buffer of its own.
pub const TABLE_1: Buffers = &[
    ("e12^1", 3072),
    ("e23^1", 8192),
    ("e24^1", 8192),
    ("e34^1", 8192),
    ("e45^1", 16384),
    ("e12^2", 3072),
    ("e23^2(1)", 6272),
    ("e23^2(2)", 6272),
    ("e34^2", 10),
];

/// Table 8: Algorithm 1.
pub const TABLE_8: Buffers = &[
    ("e12^1, e34^1, e12^2", 8192),
    ("e23^1, e45^1, e23^2(1)", 16384),
    ("e24^1, e23^2(2)", 8192),
    ("e34^2", 10),
];

/// Table 9: layers 3 to 5 of the first CNN by parts, as Table 10's chromosome has it.
pub const TABLE_9: Buffers = &[
    ("e12^1, e34^1, e12^2", 3072),
    ("e23^1, e23^2(1)", 8192),
    ("e24^1, e23^2(2)", 8192),
    ("e45^1, e34^2", 256),
];
