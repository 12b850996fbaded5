//! The fast path of the direct table: rows of keys that have groups already, in one pass over each column, no ranges observed.
//!
//! In: columns whose rows are all valid, what the table knows of them. Out: the group of each row that has one.
//! Invariant: a row of a key without group is noticed, never given another's.
//! Not here: keys that are new (direct.rs).

use std::ops::Range;

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::datatypes::DataType;
use grouse_kernels::multiples::Step;

use super::super::intern::{Interner, UNKNOWN};
use super::super::{GroupId, room};
use super::{Dimension, DirectTable, EMPTY};

/// Rows whose addresses are added up at once, in a near cache.
const CHUNK: usize = 512;
/// Combinations of keys whose groups are noted, even if a batch has not half as many rows.
const COMBINATIONS_MAX: usize = 1024;

/// Groups of the keys of dictionaries, while these last.
#[derive(Debug, Default)]
pub(super) struct ByKey {
    /// Of each combination, the first column's key in the lowest bits, as many as a power of two; `EMPTY` where no row had it.
    groups: Vec<u32>,
    /// Where the key of each column begins.
    shifts: Vec<u32>,
    /// The number of the dictionaries that came last then; 0 before any.
    of: u32,
}

impl ByKey {
    /// Forgets all groups.
    pub(super) fn clear(&mut self) {
        self.of = 0;
    }

    pub(super) fn bytes(&self) -> usize {
        (self.groups.capacity() + self.shifts.capacity()) * 4
    }
}

impl DirectTable {
    /// One pass over each column, in which nearly all keys are known, as they mostly are: appends their groups, `EMPTY` for a
    /// key that has none. False, and nothing was appended, for columns that have to be looked at otherwise.
    pub(super) fn look_up(&mut self, columns: &[ArrayRef], out: &mut Vec<GroupId>) -> bool {
        self.intern_dictionaries(columns);
        let Some(parts) = parts(&self.dimensions, columns, &self.interners) else {
            return false;
        };
        let keys = keys(&parts).filter(|_| self.by_key.of == dictionaries(&self.interners));
        let (rows, groups) = (columns[0].len(), &*self.groups);
        match (&*parts, keys) {
            (_, Some(keys)) => groups_of_keys(&keys, &self.by_key, room(out, rows)),
            ([AddressedColumn::Integers(dimension, values)], None) => {
                let in_order = self.is_in_order.then_some(self.addresses.len());
                groups_of_integers(dimension, values, groups, in_order, room(out, rows));
            }
            ([_], None) => return false,
            (_, None)
                if self
                    .interners
                    .iter()
                    .flatten()
                    .any(Interner::has_null_value) =>
            {
                return false;
            }
            (parts, None) => groups_of_product(parts, groups, room(out, rows)),
        }
        true
    }

    /// Takes up dictionaries that come for the first time, with what is known of their values.
    fn intern_dictionaries(&mut self, columns: &[ArrayRef]) {
        let coded = self.interners.iter_mut().zip(columns).zip(&self.dimensions);
        for ((interner, column), dimension) in coded {
            if let Some(interner) = interner {
                interner.intern_dictionary(column, &dimension.data_type);
            }
        }
        let of = dictionaries(&self.interners);
        if self.by_key.of == of {
            return;
        }
        let Some(parts) = parts(&self.dimensions, columns, &self.interners) else {
            return;
        };
        let Some(shifts) = shifts(&parts, 2 * columns[0].len()) else {
            return;
        };
        let nulls: u64 = parts.iter().map(AddressedColumn::null_part).sum();
        let mut addresses = vec![nulls];
        for part in &parts {
            if let AddressedColumn::Keys(dimension, _, codes) = part {
                let part = |code: &u32| u64::from(*code) * dimension.stride as u64;
                let before = &addresses;
                let all = codes.iter().map(part);
                let all = all.flat_map(|part| before.iter().map(move |before| before + part));
                addresses = all.collect();
            }
        }
        let group = |address| self.groups.get(address as usize).copied();
        let groups = addresses
            .into_iter()
            .map(|address| group(address).unwrap_or(EMPTY));
        self.by_key = ByKey {
            groups: groups.collect(),
            shifts,
            of,
        };
    }

    /// Takes note of the groups of rows whose columns are keys of dictionaries.
    pub(super) fn note_keys(&mut self, columns: &[ArrayRef], groups: &[GroupId]) {
        let Some(parts) = parts(&self.dimensions, columns, &self.interners) else {
            return;
        };
        let (Some(keys), of) = (keys(&parts), dictionaries(&self.interners)) else {
            return;
        };
        if self.by_key.of != of {
            let most = (2 * groups.len()).max(COMBINATIONS_MAX);
            let Some(shifts) = shifts(&parts, most) else {
                return;
            };
            let combinations = parts.iter().map(AddressedColumn::codes).product();
            self.by_key.groups.clear();
            self.by_key.groups.resize(combinations, EMPTY);
            self.by_key.shifts = shifts;
            self.by_key.of = of;
        }
        let ByKey {
            groups: noted,
            shifts,
            ..
        } = &mut self.by_key;
        let last = noted.len() - 1;
        combined(&keys, shifts, groups.chunks(CHUNK), |addresses, groups| {
            for (address, group) in addresses.iter().zip(groups) {
                noted[*address as usize & last] = group.0;
            }
        });
    }
}

/// What is known of each column; `None` if one has to be looked at otherwise.
fn parts<'a>(
    dimensions: &'a [Dimension],
    columns: &'a [ArrayRef],
    interners: &'a [Option<Interner>],
) -> Option<Vec<AddressedColumn<'a>>> {
    let parts = dimensions.iter().zip(columns).zip(interners);
    let parts = parts.map(|((dimension, column), interner)| {
        AddressedColumn::of(dimension, column, interner.as_ref())
    });
    parts.collect()
}

/// The keys of all columns, if all of them have some: then there is a dictionary too.
fn keys<'a>(parts: &'a [AddressedColumn<'_>]) -> Option<Vec<&'a ArrayData>> {
    let keys = parts.iter().map(|part| match part {
        AddressedColumn::Keys(_, keys, _) => Some(keys),
        AddressedColumn::Integers(..) => None,
    });
    keys.collect()
}

/// Says which dictionaries came last: the number is another whenever one of them is.
fn dictionaries(interners: &[Option<Interner>]) -> u32 {
    let interners = interners.iter().flatten();
    interners.map(|interner| interner.dictionaries).sum()
}

/// Where the keys of each column begin in their combination; `None` if there are more than `most`, or columns without.
fn shifts(parts: &[AddressedColumn<'_>], most: usize) -> Option<Vec<u32>> {
    keys(parts)?;
    let (mut combinations, mut shifts) = (1usize, Vec::with_capacity(parts.len()));
    for part in parts {
        shifts.push(combinations.ilog2());
        combinations = combinations.saturating_mul(part.codes());
    }
    (combinations <= most).then_some(shifts)
}

/// A column without NULLs whose values mostly have codes.
enum AddressedColumn<'a> {
    Integers(&'a Dimension, ArrayData),
    /// Keys of a dictionary, with the codes of its values.
    Keys(&'a Dimension, ArrayData, &'a [u32]),
}

impl<'a> AddressedColumn<'a> {
    fn of(
        dimension: &'a Dimension,
        column: &'a ArrayRef,
        interner: Option<&'a Interner>,
    ) -> Option<Self> {
        match interner {
            None => {
                let is_plain = column.null_count() == 0;
                is_plain.then(|| Self::Integers(dimension, column.to_data()))
            }
            Some(interner) => {
                let (keys, codes) = interner.translated(column)?;
                Some(Self::Keys(dimension, keys.to_data(), codes))
            }
        }
    }

    /// Adds the column's part, but for its NULL, to the addresses of `rows`; of a value without code more than any array has.
    fn add(&self, rows: Range<usize>, addresses: &mut [u64; CHUNK]) {
        match self {
            Self::Integers(dimension, data) => {
                let (start, stride) = (dimension.start(), dimension.stride as u64);
                let codes = (dimension.codes() - usize::from(dimension.null)) as u64;
                let part = |code| {
                    if code < codes {
                        code * stride
                    } else {
                        u64::from(UNKNOWN)
                    }
                };
                with_integers!(data, values => {
                    let distances = values[rows].iter().map(|&value| (value as i64).wrapping_sub(start) as u64);
                    let places = addresses.iter_mut().zip(distances);
                    match dimension.step() {
                        Step::ONE => places.for_each(|(address, distance)| *address += part(distance)),
                        step => places.for_each(|(address, distance)| *address += part(step.times(distance))),
                    }
                });
            }
            Self::Keys(dimension, data, codes) => {
                let stride = dimension.stride as u64;
                with_integers!(data, keys => {
                    for (address, &key) in addresses.iter_mut().zip(&keys[rows]) {
                        *address += u64::from(at(codes, key as usize)) * stride;
                    }
                });
            }
        }
    }

    /// Codes of a dictionary's values, as many as a power of two.
    fn codes(&self) -> usize {
        match self {
            Self::Integers(..) => 0,
            Self::Keys(_, _, codes) => codes.len(),
        }
    }

    /// What the code of NULL adds to the addresses of all others.
    fn null_part(&self) -> u64 {
        let (Self::Integers(dimension, _) | Self::Keys(dimension, ..)) = self;
        u64::from(dimension.null) * dimension.stride as u64
    }
}

/// What a key has; `all` are as many as a power of two.
#[inline(always)]
fn at(all: &[u32], key: usize) -> u32 {
    all[key & (all.len() - 1)]
}

/// The group of each row of one column; `in_order` says how many groups have their address as their number.
fn groups_of_integers(
    dimension: &Dimension,
    values: &ArrayData,
    groups: &[u32],
    in_order: Option<usize>,
    out: &mut [GroupId],
) {
    let start = dimension.start();
    // A key below the range is beyond the array too. Its distance, read without a sign, is at least 2^63 less the start,
    // and no range ends that far. In steps it is more of them than any value of the range; what lies between two is more
    // than all.
    with_integers!(values, values => {
        let distances = values.iter().map(|&value| (value as i64).wrapping_sub(start) as u64);
        match dimension.step() {
            Step::ONE => groups_of_codes(distances, dimension.null, groups, in_order, out),
            step => {
                let codes = distances.map(|distance| step.times(distance));
                groups_of_codes(codes, dimension.null, groups, in_order, out);
            }
        }
    });
}

/// The group of each code; NULL has one below all others or none.
fn groups_of_codes(
    codes: impl Iterator<Item = u64>,
    has_null: bool,
    groups: &[u32],
    in_order: Option<usize>,
    out: &mut [GroupId],
) {
    match (in_order, has_null) {
        // The value before the first is not NULL.
        (_, true) => lookup(codes.map(|code| code.saturating_add(1)), groups, out),
        (Some(groups), false) => take_in_order(codes, groups as u64, out),
        (None, false) => lookup(codes, groups, out),
    }
}

/// The group that was noted of each row's keys.
fn groups_of_keys(keys: &[&ArrayData], by_key: &ByKey, out: &mut [GroupId]) {
    let last = by_key.groups.len() - 1;
    if let [only] = keys {
        // Combined like others, a sum by 100 strings took 1.05 of the time; through codes and addresses 1.07.
        with_integers!(only, keys => {
            for (place, &key) in out.iter_mut().zip(keys) {
                *place = GroupId(by_key.groups[key as usize & last]);
            }
        });
        return;
    }
    combined(
        keys,
        &by_key.shifts,
        out.chunks_mut(CHUNK),
        |addresses, places| {
            for (place, address) in places.iter_mut().zip(addresses) {
                *place = GroupId(by_key.groups[*address as usize & last]);
            }
        },
    );
}

/// Calls `each` with the combined keys of `CHUNK` rows after the other, and what belongs to those rows.
#[inline(always)]
fn combined<P>(
    keys: &[&ArrayData],
    shifts: &[u32],
    chunks: impl Iterator<Item = P>,
    mut each: impl FnMut(&[u32; CHUNK], P),
) {
    let mut start = 0;
    for chunk in chunks {
        let mut addresses = [0; CHUNK];
        for (data, shift) in keys.iter().zip(shifts) {
            with_integers!(data, keys => {
                for (address, &key) in addresses.iter_mut().zip(&keys[start..]) {
                    *address |= (key as u32) << shift;
                }
            });
        }
        start += CHUNK;
        each(&addresses, chunk);
    }
}

/// The group of each row by several columns.
fn groups_of_product(parts: &[AddressedColumn<'_>], groups: &[u32], out: &mut [GroupId]) {
    let nulls: u64 = parts.iter().map(AddressedColumn::null_part).sum();
    let mut start = 0;
    for places in out.chunks_mut(CHUNK) {
        let rows = start..start + places.len();
        start = rows.end;
        let mut addresses = [nulls; CHUNK];
        for part in parts {
            part.add(rows.clone(), &mut addresses);
        }
        lookup(addresses.into_iter(), groups, places);
    }
}

/// The group at each address.
fn lookup(addresses: impl Iterator<Item = u64>, groups: &[u32], out: &mut [GroupId]) {
    for (place, at) in out.iter_mut().zip(addresses) {
        *place = GroupId(groups.get(at as usize).copied().unwrap_or(EMPTY));
    }
}

/// The same of the first `groups` addresses, each of which is its group's number: vector code.
fn take_in_order(addresses: impl Iterator<Item = u64>, groups: u64, out: &mut [GroupId]) {
    for (place, at) in out.iter_mut().zip(addresses) {
        *place = GroupId(if at < groups { at as u32 } else { EMPTY });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use arrow::array::{
        AsArray, DictionaryArray, Int16Array, Int32Array, Int64Array, StringViewArray,
    };
    use arrow::compute::cast;
    use arrow::datatypes::{ArrowDictionaryKeyType, Int8Type, Int32Type, UInt16Type, UInt64Type};

    use super::*;

    /// Rows of each batch; a dictionary comes for two of them.
    const ROWS: usize = if cfg!(miri) { 40 } else { 3_000 };

    /// Strings as codes of a dictionary in which they lie otherwise in each pair of batches; rare ones come late, one is NULL in
    /// the dictionary of the last.
    fn coded(batch: usize, values: usize) -> ArrayRef {
        let turn = batch / 2;
        let value = |at: usize| (at + turn * 3) % values;
        let dictionary = (0..values).map(|at| {
            let is_null = batch > 8 && value(at) == 0;
            let string = || match value(at) {
                1 => String::new(),
                value => format!("a text of its own, number {value}"),
            };
            (!is_null).then(string)
        });
        let dictionary = Arc::new(dictionary.collect::<StringViewArray>());
        let key = |row: usize| match row % 97 {
            0 => (row * 31 + batch) % values,
            _ => (row * row) % (values / 2),
        };
        // Some batches have keys that are NULL, all begin behind the first rows of their arrays.
        let is_null = |row: usize| batch % 5 == 3 && row.is_multiple_of(11);
        let keys = (0..ROWS + 7).map(|row| (!is_null(row)).then(|| key(row) as i32));
        let coded: ArrayRef = Arc::new(DictionaryArray::new(
            keys.collect::<Int32Array>(),
            dictionary,
        ));
        let coded = match batch % 4 {
            0 if values <= 100 => retyped::<Int8Type>(&coded),
            1 => retyped::<UInt16Type>(&coded),
            2 => retyped::<UInt64Type>(&coded),
            _ => coded,
        };
        coded.slice(7, ROWS)
    }

    /// The same with keys of another type.
    fn retyped<K: ArrowDictionaryKeyType>(coded: &ArrayRef) -> ArrayRef {
        let coded = coded.as_dictionary::<Int32Type>();
        let keys = cast(coded.keys(), &K::DATA_TYPE).expect("keys that fit");
        let keys = keys.as_primitive::<K>().clone();
        Arc::new(DictionaryArray::new(keys, Arc::clone(coded.values())))
    }

    fn integers(batch: usize) -> ArrayRef {
        let value = |row: usize| {
            if row.is_multiple_of(53) {
                row + batch
            } else {
                row % 5
            }
        };
        let values = (0..ROWS).map(|row| (value(row) % 40) as i16);
        Arc::new(values.collect::<Int16Array>())
    }

    /// Times of so many seconds, which begin earlier and later in later batches; some batches have NULLs, the last ones other
    /// times in some rows.
    fn times(batch: usize, unit: i64) -> ArrayRef {
        let others = [0, 0, 0, 0, 0, unit / 2, 0, 0, 0, 0, 1, 0, 0, 0];
        let far = [0, 0, 3, -2, 0, 0, 0, 30, 0, -20, 0, 0, 9, 0];
        let value = |row: usize| match row % 101 {
            0 => 17 + unit * far[batch] + others[batch],
            at => 17 + unit * (at as i64 % 40),
        };
        let is_null = |row: usize| batch % 4 == 3 && row.is_multiple_of(13);
        let values = (0..ROWS).map(|row| (!is_null(row)).then(|| value(row)));
        Arc::new(values.collect::<Int64Array>())
    }

    fn plain(column: &ArrayRef) -> Vec<Option<String>> {
        let strings = cast(column, &DataType::Utf8).expect("strings");
        let strings = strings.as_string::<i32>().iter();
        strings.map(|string| string.map(str::to_owned)).collect()
    }

    /// Each key has one group in all batches; what a drain gives is those keys, after which the table goes on.
    fn check(types: &[DataType], batch_of: impl Fn(usize) -> Vec<ArrayRef>) {
        let mut table = DirectTable::new(types, 1 << 20, 1 << 20);
        for batches in [0..7, 6..8, 8..14] {
            let mut naive: HashMap<Vec<Option<String>>, GroupId> = HashMap::new();
            for batch in batches {
                let columns = batch_of(batch);
                let mut groups = vec![GroupId(77)];
                table.assign(&columns, &mut groups).expect("they fit");
                let strings: Vec<_> = columns.iter().map(plain).collect();
                for row in 0..ROWS {
                    let key = strings.iter().map(|column| column[row].clone()).collect();
                    let group = *naive.entry(key).or_insert(groups[row + 1]);
                    assert_eq!(groups[row + 1], group, "row {row} of batch {batch}");
                }
                assert_eq!((groups[0], groups.len()), (GroupId(77), ROWS + 1));
                assert_eq!(table.len(), naive.len());
            }
            let columns = table.drain().expect("keys");
            let strings: Vec<_> = columns.iter().map(plain).collect();
            for (key, group) in naive {
                let at = group.0 as usize;
                let own: Vec<_> = strings.iter().map(|column| column[at].clone()).collect();
                assert_eq!(own, key, "group {at}");
            }
        }
    }

    #[test]
    fn keys_find_their_groups_through_all_dictionaries() {
        let string = || DataType::Utf8View;
        check(&[string()], |batch| vec![coded(batch, 70)]);
        check(&[string(), string()], |batch| {
            vec![coded(batch, 20), coded(batch, 9)]
        });
        // One dictionary stays while the other is another.
        check(&[string(), string(), string()], |batch| {
            vec![coded(batch, 6), coded(0, 4), coded(batch / 3, 5)]
        });
        // More combinations than rows.
        check(&[string(), string()], |batch| {
            vec![coded(batch, 300), coded(batch, 200)]
        });
        check(&[string(), DataType::Int16], |batch| {
            vec![coded(batch, 30), integers(batch)]
        });
        check(&[DataType::Int16], |batch| vec![integers(batch)]);
    }

    #[test]
    fn multiples_find_their_groups_until_others_come() {
        check(&[DataType::Int64], |batch| vec![times(batch, 60)]);
        check(&[DataType::Int64], |batch| vec![times(batch, 3_000)]);
        check(&[DataType::Int64, DataType::Int64], |batch| {
            vec![times(batch, 12), times((batch + 5) % 14, 6)]
        });
        check(&[DataType::Int64, DataType::Utf8View], |batch| {
            vec![times(batch, 600), coded(batch, 9)]
        });
    }

    #[test]
    fn values_beyond_the_range_have_no_code_in_it() {
        let ends = [
            i64::MIN,
            i64::MAX,
            i64::MIN / 4,
            i64::MAX / 4,
            -(1 << 61),
            1 << 61,
        ];
        for (low, step, codes) in [
            (0, 1 << 60, 2),
            (-(1 << 60), 1 << 61, 2),
            (-(1 << 60), 1 << 32, 1 << 29),
            (5, (1 << 60) + 3, 2),
            (-7, 60, 1_000),
        ] {
            let values = [low, low + step, low + step * (codes - 1)];
            let mut dimension = Dimension::new(&DataType::Int64);
            let column: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
            dimension.widen(&dimension.observe(&column).expect("a range"), 0);
            assert_eq!(dimension.step().size() as i64, step);
            assert_eq!(dimension.codes() as i64, codes);
            let near = [
                low - 1,
                low + 1,
                low - step,
                low + step * codes,
                low + step / 2,
            ];
            for value in ends.into_iter().chain(near) {
                let distance = value.wrapping_sub(dimension.start()) as u64;
                let code = dimension.step().times(distance) as usize;
                let is_in = values.contains(&value) || step == 1;
                assert_eq!(
                    code < dimension.codes(),
                    is_in,
                    "{value} in steps of {step} from {low}"
                );
            }
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_changes_nothing() {
        let types = [DataType::Int16];
        let mut table = DirectTable::new(&types, 100, 100);
        let mut groups = Vec::new();
        let few: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, 3, 1, 2, 3, 1, 2, 3]));
        for _ in 0..2 {
            table
                .assign(&[Arc::clone(&few)], &mut groups)
                .expect("they fit");
        }
        let far: ArrayRef = Arc::new(Int16Array::from(vec![1, 2, 3, 1, 2, 3, 1, 2, 3_000]));
        assert!(table.assign(&[far], &mut groups).is_err());
        assert_eq!((groups.len(), table.len()), (18, 3));
    }
}
