//! Sorting by an order that need not be one: values of several types, or what is no number, must not end the program,
//! as the standard library's sort may.

use std::cmp::Ordering;

/// Returns the items sorted, those that compare as equal in their order.
///
/// # Errors
/// The first that comparing two of them reports.
pub(super) fn sorted<T, E>(items: Vec<T>, mut order: impl FnMut(&T, &T) -> Result<Ordering, E>) -> Result<Vec<T>, E> {
    let mut runs: Vec<Vec<T>> = items.into_iter().map(|item| vec![item]).collect();
    while runs.len() > 1 {
        let mut longer = Vec::with_capacity(runs.len().div_ceil(2));
        let mut waiting = runs.into_iter();
        while let Some(first) = waiting.next() {
            longer.push(match waiting.next() {
                Some(second) => merged(first, second, &mut order)?,
                None => first,
            });
        }
        runs = longer;
    }
    Ok(runs.pop().unwrap_or_default())
}

fn merged<T, E>(
    first: Vec<T>,
    second: Vec<T>,
    order: &mut impl FnMut(&T, &T) -> Result<Ordering, E>,
) -> Result<Vec<T>, E> {
    let mut all = Vec::with_capacity(first.len() + second.len());
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
        // The later one is asked whether it is less, as Python does: its errors name the two in that order.
        let next = if order(b, a)?.is_lt() { second.next() } else { first.next() };
        all.extend(next);
    }
    all.extend(first.chain(second));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_stably_and_takes_any_order() {
        let pairs: Vec<(u32, usize)> = [3, 1, 2, 3, 1, 0, 2].into_iter().zip(0..).collect();
        let by_first = |a: &(u32, usize), b: &(u32, usize)| Ok::<_, ()>(a.0.cmp(&b.0));
        let wanted = [(0, 5), (1, 1), (1, 4), (2, 2), (2, 6), (3, 0), (3, 3)];
        assert_eq!(sorted(pairs, by_first), Ok(wanted.to_vec()));
        let contrary = sorted((0..100).collect(), |_: &i32, _: &i32| Ok::<_, ()>(Ordering::Less));
        assert_eq!(contrary.map(|all| all.len()), Ok(100));
        assert_eq!(sorted(vec![1, 2], |_: &i32, _: &i32| Err("no order")), Err("no order"));
    }
}
