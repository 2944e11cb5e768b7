//! Sorting, once for all types: the standard library's is written out for each, which takes 4 KB of the agent a time.

use std::cmp::Ordering;

/// Sorts by a comparison; what compares as equal keeps its order.
pub(crate) fn sort_by<T>(items: &mut Vec<T>, compare: impl Fn(&T, &T) -> Ordering) {
    let order = order(items.len(), &|one, other| compare(&items[one], &items[other]));
    let mut unsorted: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|at| unsorted[at].take()));
}

/// Sorts from the least to the greatest.
pub(crate) fn sort<T: Ord>(items: &mut Vec<T>) {
    sort_by(items, T::cmp);
}

/// Returns in which order `count` items are sorted.
fn order(count: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&one, &other| compare(one, other));
    order
}

/// Collects into a map or a set as it comes: `collect` would sort it first.
pub(crate) fn gathered<C: Default + Extend<T>, T>(items: impl IntoIterator<Item = T>) -> C {
    let mut gathered = C::default();
    gathered.extend(items);
    gathered
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn equals_keep_their_order_and_the_last_of_a_key_stays() {
        let mut items = vec![(2, "a"), (1, "b"), (2, "c"), (1, "d"), (0, "e")];
        sort_by(&mut items, |one, other| one.0.cmp(&other.0));
        assert_eq!(items, [(0, "e"), (1, "b"), (1, "d"), (2, "a"), (2, "c")]);
        sort(&mut items);
        assert!(items.is_sorted());
        let map: BTreeMap<i32, &str> = gathered(items);
        assert_eq!(map, BTreeMap::from([(0, "e"), (1, "d"), (2, "c")]));
    }
}
