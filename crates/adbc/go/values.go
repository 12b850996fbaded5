package grouse

import (
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

type arrowRecord = arrow.RecordBatch

// One row of parameters. Those with names are columns of their names, the others of their places.
func parameters(args []driver.NamedValue) (arrowRecord, error) {
	fields := make([]arrow.Field, len(args))
	columns := make([]arrow.Array, len(args))
	for at, arg := range args {
		name := arg.Name
		if name == "" {
			name = strconv.Itoa(arg.Ordinal)
		}
		column, err := parameter(arg.Value)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		defer column.Release()
		columns[at] = column
		fields[at] = arrow.Field{Name: name, Type: column.DataType(), Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, 1), nil
}

func parameter(value driver.Value) (arrow.Array, error) {
	pool := memory.DefaultAllocator
	switch value := value.(type) {
	case nil:
		return array.NewNull(1), nil
	case bool:
		builder := array.NewBooleanBuilder(pool)
		builder.Append(value)
		return builder.NewArray(), nil
	case int64:
		builder := array.NewInt64Builder(pool)
		builder.Append(value)
		return builder.NewArray(), nil
	case float64:
		builder := array.NewFloat64Builder(pool)
		builder.Append(value)
		return builder.NewArray(), nil
	case string:
		builder := array.NewStringBuilder(pool)
		builder.Append(value)
		return builder.NewArray(), nil
	case []byte:
		builder := array.NewBinaryBuilder(pool, arrow.BinaryTypes.Binary)
		builder.Append(value)
		return builder.NewArray(), nil
	case time.Time:
		builder := array.NewTimestampBuilder(pool, &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})
		builder.Append(arrow.Timestamp(value.UnixMicro()))
		return builder.NewArray(), nil
	default:
		return nil, fmt.Errorf("no value of SQL is a %T", value)
	}
}

// A column of a batch: its values row by row, as database/sql has them.
type column func(row int) (driver.Value, error)

// The interface of arrays whose numbers Go has.
type numbers[N any] interface {
	arrow.Array
	Value(int) N
}

func plain[N, V any](values numbers[N], convert func(N) V) column {
	return func(row int) (driver.Value, error) {
		if values.IsNull(row) {
			return nil, nil
		}
		return convert(values.Value(row)), nil
	}
}

func integer[N ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32](value N) int64 {
	return int64(value)
}

// The values of an array. Types that database/sql has no value for are their text.
func columnOf(values arrow.Array, strings *interned) column {
	switch values := values.(type) {
	case *array.Null:
		return func(int) (driver.Value, error) { return nil, nil }
	case *array.Boolean:
		return plain(values, func(value bool) bool { return value })
	case *array.Int8:
		return plain(values, integer[int8])
	case *array.Int16:
		return plain(values, integer[int16])
	case *array.Int32:
		return plain(values, integer[int32])
	case *array.Int64:
		return together(values.IsNull, slices.Clone(values.Int64Values()))
	case *array.Uint8:
		return plain(values, integer[uint8])
	case *array.Uint16:
		return plain(values, integer[uint16])
	case *array.Uint32:
		return plain(values, integer[uint32])
	case *array.Uint64:
		return unsigned(values)
	case *array.Float32:
		return plain(values, func(value float32) float64 { return float64(value) })
	case *array.Float64:
		return together(values.IsNull, slices.Clone(values.Float64Values()))
	case *array.String:
		return text(values, strings)
	case *array.LargeString:
		return text(values, strings)
	case *array.StringView:
		return text(values, strings)
	case *array.Binary:
		return plain(values, clone)
	case *array.LargeBinary:
		return plain(values, clone)
	case *array.BinaryView:
		return plain(values, clone)
	case *array.Date32:
		return plain(values, func(value arrow.Date32) time.Time { return value.ToTime() })
	case *array.Timestamp:
		return timestamps(values)
	case *array.Dictionary:
		return dictionary(values, strings)
	default:
		return func(row int) (driver.Value, error) {
			if values.IsNull(row) {
				return nil, nil
			}
			return values.ValueStr(row), nil
		}
	}
}

// Numbers without a sign as int64, which is database/sql's; a number beyond it as its digits.
func unsigned(values *array.Uint64) column {
	all := values.Uint64Values()
	signed := make([]int64, len(all))
	for at, value := range all {
		if value > math.MaxInt64 && values.IsValid(at) {
			return plain(values, func(value uint64) string { return strconv.FormatUint(value, 10) })
		}
		signed[at] = int64(value)
	}
	return together(values.IsNull, signed)
}

// Bytes of our own: those of the batch go with it.
func clone(value []byte) []byte { return append([]byte{}, value...) }

func timestamps(values *array.Timestamp) column {
	kind := values.DataType().(*arrow.TimestampType)
	convert, err := kind.GetToTimeFunc()
	return func(row int) (driver.Value, error) {
		if err != nil || values.IsNull(row) {
			return nil, err
		}
		return convert(values.Value(row)), nil
	}
}
