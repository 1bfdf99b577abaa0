//! How a cost grows: the power of its size that fits it best, by least squares through the logarithms.

/// The slope of the line through the logarithms of (size, cost): 1 is in proportion, 0 is no growth. None where fewer than
/// two sizes have a cost above zero.
pub(crate) fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let is_positive = |(x, y): &&(f64, f64)| *x > 0.0 && *y > 0.0 && x.is_finite() && y.is_finite();
    let logs: Vec<(f64, f64)> = points.iter().filter(is_positive).map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let over: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let under: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power_is_found() {
        let points = [10.0, 100.0, 1_000.0].map(|x: f64| (x, 3.0 * x.powf(1.5)));
        assert!((exponent(&points).expect("three points") - 1.5).abs() < 1e-9);
        let flat = [(1.0, 7.0), (1e6, 7.0)];
        assert!(exponent(&flat).expect("two points").abs() < 1e-9);
    }

    #[test]
    fn the_line_is_that_of_least_squares() {
        // Logarithms to base 2: (0, 0), (1, 0), (2, 3); their line has the slope 1.5.
        let points = [(1.0, 1.0), (2.0, 1.0), (4.0, 8.0)];
        assert!((exponent(&points).expect("three points") - 1.5).abs() < 1e-9);
    }

    #[test]
    fn no_slope_without_two_sizes() {
        assert_eq!(exponent(&[(10.0, 1.0)]), None);
        assert_eq!(exponent(&[(10.0, 1.0), (10.0, 2.0)]), None);
        assert_eq!(exponent(&[(1.0, 0.0), (10.0, 2.0)]), None, "a cost of zero has no logarithm");
    }
}
