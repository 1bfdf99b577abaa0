//! In which order those that are compared take their turns.

/// Each once, in round `round` of several. Who begins moves on, and every other round goes backwards: nobody always follows the same
/// one, whose pages and caches it would find.
pub(crate) fn turns(round: usize, count: usize) -> impl Iterator<Item = usize> {
    let first = round % count.max(1);
    (0..count).map(move |turn| if round.is_multiple_of(2) { first + turn } else { first + count - turn } % count)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_has_its_turn_and_no_constant_predecessor() {
        for count in 1..6 {
            let rounds: Vec<Vec<usize>> = (0..5).map(|round| turns(round, count).collect()).collect();
            for round in &rounds {
                assert_eq!(round.iter().collect::<HashSet<_>>().len(), count);
            }
            let before = |one: usize| -> HashSet<usize> {
                rounds
                    .iter()
                    .flat_map(|round| round.windows(2))
                    .filter(|pair| pair[1] == one)
                    .map(|pair| pair[0])
                    .collect()
            };
            assert!(count < 3 || (0..count).all(|one| before(one).len() > 1), "{rounds:?}");
            let first: HashSet<usize> = rounds.iter().map(|round| round[0]).collect();
            assert_eq!(first.len(), count, "{rounds:?}");
        }
    }
}
