//! Log axes: from a value to a place, and where the ticks stand.

pub(super) struct Log {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Log {
    /// Whole powers of ten around the values, drawn between two places.
    pub(super) fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for value in values.into_iter().filter(|value| value.is_finite() && *value > 0.0) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.1, 10.0);
        }
        let (low, high) = (low.log10().floor(), high.log10().ceil());
        Self { low, high: high.max(low + 1.0), from, to }
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Powers of ten, and their halves and fifths where there are few.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = (self.high - self.low) as i32;
        let steps: &[f64] = if decades <= 1 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        for power in 0..=decades {
            for step in steps {
                let value = step * 10_f64.powf(self.low + f64::from(power));
                if value <= 10_f64.powf(self.high) * 1.001 {
                    ticks.push(value);
                }
            }
        }
        ticks
    }
}

/// A tick's label: `0.01`, `1`, `50`, `10k`, `5M`.
pub(super) fn label(value: f64) -> String {
    let plain = |value: f64| {
        let text = format!("{value:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value {
        value if value >= 0.999e6 => format!("{}M", plain(value / 1e6)),
        value if value >= 0.999e4 => format!("{}k", plain(value / 1e3)),
        value => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_lengths() {
        let axis = Log::around([0.5, 60.0], 0.0, 300.0);
        assert_eq!(axis.ticks().len(), 4);
        assert!((axis.place(1.0) - 100.0).abs() < 1e-9 && (axis.place(10.0) - 200.0).abs() < 1e-9);
        assert!((axis.place(1e9) - 300.0).abs() < 1e-9, "what is beyond stays on the edge");
        assert_eq!([0.1, 1.0, 50.0, 10_000.0, 5e6].map(label), ["0.1", "1", "50", "10k", "5M"]);
    }
}
