//! Which columns of a table are drawn, and how wide.
//! In: for each column the width that it would like and the least that it can do with. Out: [`Layout`].
//! Invariant: numbers and dates are never cut. The widest strings give way first. If that is not enough, columns are
//! left out from the middle, and the first is always drawn.
//! Not here: drawing.

/// What a column asks for, in terminal cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wish {
    /// Enough for its name, its type and its values.
    pub full: usize,
    /// As narrow as it can be.
    pub least: usize,
}

/// The columns drawn.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// Column number and width of those before the gap, or of all.
    pub front: Vec<(usize, usize)>,
    /// Those after the gap; without a gap there are none.
    pub back: Vec<(usize, usize)>,
    /// Columns left out.
    pub hidden: usize,
}

/// The border between two columns and the blanks beside it.
const BETWEEN: usize = 3;
/// The borders at both ends.
const ENDS: usize = 1;
/// The column that stands for those left out: `…`.
const GAP: usize = 1;

/// Fits the columns into `width`, or gives each what it asks for.
pub fn fit(wishes: &[Wish], width: Option<usize>) -> Layout {
    let Some(width) = width else {
        return all(wishes, usize::MAX);
    };
    let room = |columns: usize| width.saturating_sub(columns * BETWEEN + ENDS);
    let least: usize = wishes.iter().map(|w| w.least).sum();
    if least <= room(wishes.len()) {
        return all(wishes, cap(wishes.iter(), room(wishes.len())));
    }
    let (front, back) = ends(wishes, width.saturating_sub(ENDS + BETWEEN + GAP));
    let drawn = || wishes[..front].iter().chain(&wishes[wishes.len() - back..]);
    let cap = cap(drawn(), room(front + back + 1).saturating_sub(GAP));
    let sized = |column: usize| (column, wishes[column].at(cap));
    Layout {
        front: (0..front).map(sized).collect(),
        back: (wishes.len() - back..wishes.len()).map(sized).collect(),
        hidden: wishes.len() - front - back,
    }
}

impl Wish {
    fn at(&self, cap: usize) -> usize {
        self.full.min(cap.max(self.least))
    }
}

fn all(wishes: &[Wish], cap: usize) -> Layout {
    let front = wishes.iter().map(|w| w.at(cap)).enumerate().collect();
    Layout {
        front,
        back: Vec::new(),
        hidden: 0,
    }
}

/// The largest width that, as a limit for those columns that can be narrowed, makes them fit into `room`.
fn cap<'a>(wishes: impl Iterator<Item = &'a Wish> + Clone, room: usize) -> usize {
    let total = |cap: usize| wishes.clone().map(|w| w.at(cap)).sum::<usize>();
    let widest = wishes.clone().map(|w| w.full).max().unwrap_or(0);
    let (mut low, mut high) = (0, widest);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if total(middle) <= room {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// How many columns from the front and from the back fit into `room` at their narrowest.
fn ends(wishes: &[Wish], mut room: usize) -> (usize, usize) {
    let (mut front, mut back) = (0, 0);
    while front + back < wishes.len() {
        let from_front = front <= back;
        let next = if from_front {
            front
        } else {
            wishes.len() - 1 - back
        };
        let needed = wishes[next].least + BETWEEN;
        if needed > room && front > 0 {
            break;
        }
        room = room.saturating_sub(needed);
        if from_front { front += 1 } else { back += 1 }
    }
    (front, back)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(full: usize) -> Wish {
        Wish {
            full,
            least: full.min(8),
        }
    }

    fn number(full: usize) -> Wish {
        Wish { full, least: full }
    }

    fn drawn_width(layout: &Layout) -> usize {
        let columns = layout.front.iter().chain(&layout.back);
        let gap = if layout.hidden > 0 { GAP + BETWEEN } else { 0 };
        columns.map(|(_, width)| width + BETWEEN).sum::<usize>() + ENDS + gap
    }

    #[test]
    fn without_a_limit_every_column_has_its_full_width() {
        let layout = fit(&[text(100), number(5)], None);
        assert_eq!(layout.front, [(0, 100), (1, 5)]);
    }

    #[test]
    fn the_widest_strings_give_way_first() {
        let layout = fit(&[text(100), text(10), number(20)], Some(60));
        assert_eq!(layout.front, [(0, 20), (1, 10), (2, 20)]);
        assert_eq!(drawn_width(&layout), 60);
    }

    #[test]
    fn columns_in_the_middle_are_left_out() {
        let layout = fit(&[number(10); 20], Some(80));
        assert_eq!(
            (layout.front.len(), layout.back.len(), layout.hidden),
            (3, 2, 15)
        );
        assert!(drawn_width(&layout) <= 80);
        assert_eq!(layout.back[1].0, 19);
    }

    #[test]
    fn one_column_is_always_drawn() {
        let layout = fit(&[number(50), number(50)], Some(20));
        assert_eq!((layout.front.len(), layout.hidden), (1, 1));
        let layout = fit(&[number(50)], Some(20));
        assert_eq!((layout.front.len(), layout.hidden), (1, 0));
    }

    #[test]
    fn no_columns_no_layout() {
        assert_eq!(
            fit(&[], Some(80)),
            Layout {
                front: vec![],
                back: vec![],
                hidden: 0
            }
        );
    }

    #[test]
    fn whatever_the_wishes_a_table_of_several_columns_fits() {
        for columns in 2..40 {
            for width in [30, 80, 200] {
                let wish = |c: usize| {
                    if c.is_multiple_of(3) {
                        text(c * 7 % 60 + 1)
                    } else {
                        number(c % 13 + 1)
                    }
                };
                let wishes: Vec<Wish> = (0..columns).map(wish).collect();
                let layout = fit(&wishes, Some(width));
                assert!(
                    drawn_width(&layout) <= width,
                    "{columns} columns, width {width}: {layout:?}"
                );
                let drawn = layout.front.len() + layout.back.len();
                assert_eq!(drawn + layout.hidden, columns);
            }
        }
    }
}
