package grouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Minutes of work on any machine, in little memory, and no batch before the end.
const endless = "SELECT count(*) AS n FROM numbers(100000000000) WHERE number * 7 % 1000000007 = 3"

// The library that `make build` has made.
func library(t testing.TB) string {
	t.Helper()
	target := os.Getenv("CARGO_TARGET_DIR")
	if target == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		target = filepath.Join(home, ".cache", "grouse", "target")
	}
	ending := map[string]string{"darwin": "dylib"}[runtime.GOOS]
	if ending == "" {
		ending = "so"
	}
	path := filepath.Join(target, "release", "libadbc_driver_grouse."+ending)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: make build makes it", err)
	}
	return path
}

func open(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("grouse", library(t)+"?threads=2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t testing.TB, db *sql.DB, query string, args ...any) int64 {
	t.Helper()
	result, err := db.Exec(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestValues(t *testing.T) {
	row := open(t).QueryRow(`SELECT true, 1::TINYINT, 2::BIGINT, 1.5::DOUBLE, 'é', NULL, DATE '2024-02-29',
		TIMESTAMP '2024-02-29 12:30:00.5', 1.25::DECIMAL(9, 2), [1, 2]`)
	var (
		flag        bool
		small, big  int64
		number      float64
		text        string
		nothing     sql.NullString
		day, moment time.Time
		money, list string
	)
	if err := row.Scan(&flag, &small, &big, &number, &text, &nothing, &day, &moment, &money, &list); err != nil {
		t.Fatal(err)
	}
	got := []any{flag, small, big, number, text, nothing.Valid, day.Format("2006-01-02"), moment.Format("15:04:05.0"), money, list}
	want := []any{true, int64(1), int64(2), 1.5, "é", false, "2024-02-29", "12:30:00.5", "1.25", "[1,2]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnsigned(t *testing.T) {
	db := open(t)
	var small int64
	var large string
	row := db.QueryRow("SELECT 7::UBIGINT, 18446744073709551615::UBIGINT")
	if err := row.Scan(&small, &large); err != nil || small != 7 || large != "18446744073709551615" {
		t.Errorf("%d, %q, %v", small, large, err)
	}
}

func TestParameters(t *testing.T) {
	db := open(t)
	var sum int64
	var text string
	if err := db.QueryRow("SELECT ? + 1, $2", 41, "x").Scan(&sum, &text); err != nil || sum != 42 || text != "x" {
		t.Errorf("%d, %q, %v", sum, text, err)
	}
	row := db.QueryRow("SELECT $a - $b", sql.Named("b", 1), sql.Named("a", 43))
	if err := row.Scan(&sum); err != nil || sum != 42 {
		t.Errorf("%d, %v", sum, err)
	}
}

func TestConnectionsShareTables(t *testing.T) {
	db := open(t)
	exec(t, db, "CREATE TABLE t (id BIGINT, name VARCHAR)")
	if rows := exec(t, db, "INSERT INTO t VALUES (?, ?), (?, ?)", 1, "one", 2, nil); rows != 2 {
		t.Errorf("%d rows", rows)
	}
	one, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	var count, names int64
	// The connection of the pool is in use: this is another one.
	if err := db.QueryRow("SELECT count(*), count(name) FROM t").Scan(&count, &names); err != nil || count != 2 || names != 1 {
		t.Errorf("%d, %d, %v", count, names, err)
	}
}

func TestPrepared(t *testing.T) {
	stmt, err := open(t).Prepare("SELECT ? * 2")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	for number := range 3 {
		var twice int
		if err := stmt.QueryRow(number).Scan(&twice); err != nil || twice != 2*number {
			t.Errorf("%d, %v", twice, err)
		}
	}
}

func TestErrors(t *testing.T) {
	_, err := open(t).Query("SELECT * FROM nix")
	var failure *Error
	if !errors.As(err, &failure) || failure.SQLState != "42P01" || !strings.Contains(failure.Message, "'nix' does not exist") {
		t.Errorf("%v", err)
	}
	if _, err := open(t).Begin(); err == nil || !strings.Contains(err.Error(), "transactions") {
		t.Errorf("%v", err)
	}
}

func TestCancel(t *testing.T) {
	db := open(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if _, err := db.QueryContext(ctx, endless); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	var one int
	if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
		t.Error(err)
	}
}

// Strings of each kind that Arrow has for them, with NULL, and more distinct ones than are remembered.
func TestStringsAreRight(t *testing.T) {
	db := open(t)
	queries := map[string]string{
		"plain": "SELECT CASE WHEN number % 7 = 0 THEN NULL ELSE 'value ' || (number % %d) END AS s FROM numbers(50000) ORDER BY number",
		"view":  "SELECT arrow_cast(CASE WHEN number % 7 = 0 THEN NULL ELSE 'value ' || (number % %d) END, 'Utf8View') AS s FROM numbers(50000) ORDER BY number",
		"codes": "SELECT arrow_cast(CASE WHEN number % 7 = 0 THEN NULL ELSE 'value ' || (number % %d) END, 'Dictionary(Int32, Utf8)') AS s FROM numbers(50000) ORDER BY number",
	}
	for name, query := range queries {
		for _, distinct := range []int{100, 40000} {
			rows, err := db.Query(strings.Replace(query, "%d", fmt.Sprint(distinct), 1))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			number := 0
			for ; rows.Next(); number++ {
				var got sql.NullString
				if err := rows.Scan(&got); err != nil {
					t.Fatal(err)
				}
				want := sql.NullString{String: fmt.Sprintf("value %d", number%distinct), Valid: number%7 != 0}
				if !want.Valid {
					want.String = ""
				}
				if got != want {
					t.Fatalf("%s: row %d is %v, want %v", name, number, got, want)
				}
			}
			if err := rows.Close(); err != nil || rows.Err() != nil || number != 50000 {
				t.Errorf("%s: %d rows, %v, %v", name, number, err, rows.Err())
			}
		}
	}
}

func TestIngest(t *testing.T) {
	database, err := Open(library(t), map[string]string{"threads": "2"})
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	conn, err := database.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewInt64Builder(memory.DefaultAllocator)
	builder.AppendValues([]int64{1, 2, 3}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{builder.NewArray()}, 3)
	for _, mode := range []string{"create", "append"} {
		reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := conn.Ingest(context.Background(), "t", mode, reader); err != nil || rows != 3 {
			t.Fatalf("%s: %d rows, %v", mode, rows, err)
		}
	}
	stmt, err := conn.Statement("SELECT sum(n) AS s FROM t")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	reader, err := stmt.Query(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	if !reader.Next() || reader.RecordBatch().Column(0).ValueStr(0) != "12" {
		t.Errorf("%v, %v", reader.RecordBatch(), reader.Err())
	}
}
