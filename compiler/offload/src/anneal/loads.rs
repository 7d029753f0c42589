//! Counts how often each pixel is loaded, and the loads beyond a bound.

/// Loads of every pixel.
#[derive(Debug)]
pub struct Loads {
    of: Vec<u32>,
    /// The most allowed loads of a pixel.
    most: u32,
    /// Loads of all pixels.
    pub sum: i64,
    /// Loads beyond the most, of all pixels.
    pub over: i64,
    /// What has been changed since [`Self::begin`]: a pixel and its loads until then, in the order of the changes.
    log: Vec<(u32, u32)>,
}

impl Loads {
    /// No loads yet, of this many pixels.
    pub fn new(pixels: usize, most: Option<u32>) -> Self {
        Loads { of: vec![0; pixels], most: most.unwrap_or(u32::MAX), sum: 0, over: 0, log: Vec::new() }
    }

    /// Adds `by` loads of a pixel. Their number must not fall below 0.
    pub fn change(&mut self, pixel: u32, by: i32) {
        let loads = self.of[pixel as usize];
        self.log.push((pixel, loads));
        self.set(pixel, loads.wrapping_add_signed(by));
    }

    /// From here on, changes can be taken back.
    pub fn begin(&mut self) {
        self.log.clear();
    }

    /// Takes back what was changed since [`Self::begin`].
    pub fn revert(&mut self) {
        while let Some((pixel, loads)) = self.log.pop() {
            self.set(pixel, loads);
        }
    }

    fn set(&mut self, pixel: u32, loads: u32) {
        let before = std::mem::replace(&mut self.of[pixel as usize], loads);
        self.sum += i64::from(loads) - i64::from(before);
        let over = |loads: u32| i64::from(loads.saturating_sub(self.most));
        self.over += over(loads) - over(before);
    }
}
