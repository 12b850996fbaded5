package grouse

import (
	"context"
	"database/sql/driver"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// Rows are the rows of a result, batch by batch.
//
// A string that occurs in many rows is made once: a column's strings are remembered as long as there are few of them, and those of
// a dictionary are found by their code. A batch's numbers are boxed at once. So a scan allocates for distinct strings and
// for batches, and not for rows.
type Rows struct {
	ctx     context.Context
	reader  array.RecordReader
	names   []string
	columns []column
	strings []*interned
	row     int64
	rows    int64
	stop    func()
	// The statement, if it is of this result alone.
	owned *Stmt
}

func newRows(ctx context.Context, reader array.RecordReader, stop func()) *Rows {
	fields := reader.Schema().Fields()
	rows := &Rows{ctx: ctx, reader: reader, stop: stop, columns: make([]column, len(fields))}
	for _, field := range fields {
		rows.names = append(rows.names, field.Name)
		rows.strings = append(rows.strings, &interned{})
	}
	return rows
}

// Columns are the names of the columns.
func (r *Rows) Columns() []string { return r.names }

// Next gives the next row, or io.EOF after the last one.
func (r *Rows) Next(dest []driver.Value) error {
	for r.row == r.rows {
		if !r.reader.Next() {
			return ended(r.ctx, r.reader)
		}
		batch := r.reader.RecordBatch()
		r.row, r.rows = 0, batch.NumRows()
		for at := range r.columns {
			r.columns[at] = columnOf(batch.Column(at), r.strings[at])
		}
	}
	for at, column := range r.columns {
		value, err := column(int(r.row))
		if err != nil {
			return err
		}
		dest[at] = value
	}
	r.row++
	return nil
}

// Close ends the run.
func (r *Rows) Close() error {
	r.stop()
	if r.reader != nil {
		r.reader.Release()
		r.reader = nil
	}
	if r.owned != nil {
		return r.owned.Close()
	}
	return nil
}

// The most strings of a column that are remembered. More are not few, and most of them would not come again.
const internedMax = 1 << 14

// Strings of a column by their text, boxed for database/sql.
type interned struct {
	values map[string]driver.Value
}

// The string, which is made if it is new. Its text may go with the batch.
func (s *interned) value(text string) driver.Value {
	if value, found := s.values[text]; found {
		return value
	}
	own := strings.Clone(text)
	var value driver.Value = own
	if len(s.values) < internedMax {
		if s.values == nil {
			s.values = map[string]driver.Value{}
		}
		s.values[own] = value
	}
	return value
}

func text(values numbers[string], strings *interned) column {
	return func(row int) (driver.Value, error) {
		if values.IsNull(row) {
			return nil, nil
		}
		return strings.value(values.Value(row)), nil
	}
}

// Values by code: each is made at its first use, and goes with the batch.
func dictionary(values *array.Dictionary, strings *interned) column {
	of := columnOf(values.Dictionary(), strings)
	made := make([]driver.Value, values.Dictionary().Len())
	return func(row int) (driver.Value, error) {
		if values.IsNull(row) {
			return nil, nil
		}
		code := values.GetValueIndex(row)
		if made[code] == nil {
			value, err := of(code)
			if err != nil {
				return nil, err
			}
			made[code] = value
		}
		return made[code], nil
	}
}

// What an interface value is in memory: a type, and where the value lies.
type boxed struct {
	kind  unsafe.Pointer
	value unsafe.Pointer
}

// Numbers as interface values that point into one copy of the column, instead of one copy for each row.
func together[N any](isNull func(int) bool, own []N) column {
	var zero N
	var model driver.Value = zero
	kind := (*boxed)(unsafe.Pointer(&model)).kind
	return func(row int) (driver.Value, error) {
		if isNull(row) {
			return nil, nil
		}
		var value driver.Value
		*(*boxed)(unsafe.Pointer(&value)) = boxed{kind, unsafe.Pointer(&own[row])}
		return value, nil
	}
}
