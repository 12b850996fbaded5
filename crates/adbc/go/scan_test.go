package grouse

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
)

const (
	scanRows    = 1_000_000
	scanStrings = 100
)

// One million rows of an id and one of 100 strings: a file, a table of strings, a table of codes.
func scanSources(t testing.TB, db *sql.DB) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rows.parquet")
	rows := fmt.Sprintf("SELECT number AS id, 'one of a hundred strings: ' || (number * 37 %% %d) AS name FROM numbers(%d)", scanStrings, scanRows)
	exec(t, db, "COPY ("+rows+") TO '"+path+"'")
	exec(t, db, "CREATE TABLE plain AS "+rows)
	exec(t, db, "CREATE TABLE codes AS SELECT id, arrow_cast(name, 'Dictionary(Int32, Utf8)') AS name FROM plain")
	return map[string]string{"parquet": "'" + path + "'", "strings": "plain", "dictionary": "codes"}
}

// Reads all rows; gives their number, the sum of the ids and the length of the strings.
func scan(t testing.TB, db *sql.DB, source string) (count, sum, length int64) {
	rows, err := db.Query("SELECT id, name FROM " + source)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var id int64
	var name string
	for rows.Next() {
		if err := rows.Scan(&id, &name); err != nil {
			t.Fatal(err)
		}
		count, sum, length = count+1, sum+id, length+int64(len(name))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return count, sum, length
}

func check(t testing.TB, count, sum, length int64) {
	t.Helper()
	want := int64(0)
	for number := range scanStrings {
		want += int64(len(fmt.Sprintf("one of a hundred strings: %d", number))) * scanRows / scanStrings
	}
	if count != scanRows || sum != scanRows*(scanRows-1)/2 || length != want {
		t.Fatalf("%d rows, ids %d, lengths %d instead of %d", count, sum, length, want)
	}
}

// A scan allocates for batches and distinct strings, not for rows.
func TestScanAllocates(t *testing.T) {
	db := open(t)
	for name, source := range scanSources(t, db) {
		count, sum, length := scan(t, db, source)
		check(t, count, sum, length)
		allocations := testing.AllocsPerRun(1, func() { scan(t, db, source) })
		if allocations > scanRows/5 {
			t.Errorf("%s: %.0f allocations for %d rows", name, allocations, scanRows)
		}
	}
}

// BenchmarkScan reads a million rows by database/sql.
func BenchmarkScan(b *testing.B) {
	db := open(b)
	for name, source := range scanSources(b, db) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				count, sum, length := scan(b, db, source)
				if count != scanRows {
					check(b, count, sum, length)
				}
			}
			b.ReportMetric(float64(scanRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}

// BenchmarkArrow reads the same as Arrow batches, and no value out of them.
func BenchmarkArrow(b *testing.B) {
	database, err := Open(library(b), map[string]string{"threads": "2"})
	if err != nil {
		b.Fatal(err)
	}
	defer database.Close()
	conn, err := database.Connect()
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	rows := "SELECT number AS id, 'one of a hundred strings: ' || (number * 37 % 100) AS name FROM numbers(1000000)"
	run := func(query string) int64 {
		stmt, err := conn.Statement(query)
		if err != nil {
			b.Fatal(err)
		}
		defer stmt.Close()
		reader, err := stmt.Query(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		defer reader.Release()
		read := int64(0)
		for reader.Next() {
			read += reader.RecordBatch().NumRows()
		}
		if err := reader.Err(); err != nil {
			b.Fatal(err)
		}
		return read
	}
	run("CREATE TABLE codes AS SELECT id, arrow_cast(name, 'Dictionary(Int32, Utf8)') AS name FROM (" + rows + ")")
	b.ReportAllocs()
	for b.Loop() {
		if read := run("SELECT id, name FROM codes"); read != scanRows {
			b.Fatalf("%d rows", read)
		}
	}
}
