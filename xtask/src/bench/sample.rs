//! Three runs as one figure: the median and the spread.

/// One figure from several runs.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<f64>);

impl Sample {
    pub fn add(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn runs(&self) -> &[f64] {
        &self.0
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }

    /// The distance between the best and the worst run, as a share of the median.
    pub fn spread(&self) -> f64 {
        let best = self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let worst = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        (best - worst) / self.median()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_in_the_middle_and_the_spread_around_it() {
        for (runs, median, spread) in
            [(vec![3.0, 1.0, 2.0], 2.0, 1.0), (vec![4.0, 2.0], 3.0, 2.0 / 3.0), (vec![5.0], 5.0, 0.0)]
        {
            let sample = Sample(runs);
            assert_eq!((sample.median(), sample.spread()), (median, spread));
        }
    }
}
