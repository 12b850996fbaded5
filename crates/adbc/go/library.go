// Package grouse is a database/sql driver for grouse, over its ADBC library.
//
// In: the path of libadbc_driver_grouse, options by their names in SQL SET. Out: databases, connections, statements.
// A result is read as Arrow batches; see rows.go for what becomes of their values.
package grouse

// #cgo linux LDFLAGS: -ldl
// #include <stdlib.h>
// #include "adbc.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
)

// Error is an error of the engine.
type Error struct {
	// Status is ADBC's code.
	Status uint8
	// SQLState has five characters, or none.
	SQLState string
	Message  string
}

func (e *Error) Error() string { return e.Message }

// StatusCancelled is the status of what a cancel has ended.
const StatusCancelled = 11

// The functions of the library, which is loaded once.
var loaded struct {
	sync.Mutex
	drivers map[string]*C.struct_AdbcDriver
}

func load(path string) (*C.struct_AdbcDriver, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if driver := loaded.drivers[path]; driver != nil {
		return driver, nil
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	driver := (*C.struct_AdbcDriver)(C.calloc(1, C.sizeof_struct_AdbcDriver))
	failure := newError()
	defer freeError(failure)
	if message := C.grouse_load(name, driver, failure); message != nil {
		C.free(unsafe.Pointer(driver))
		return nil, fmt.Errorf("cannot load %s: %s", path, C.GoString(message))
	}
	if loaded.drivers == nil {
		loaded.drivers = map[string]*C.struct_AdbcDriver{}
	}
	loaded.drivers[path] = driver
	return driver, nil
}

// Handles and errors lie in C's memory, since the library keeps what they point to.
func newHandle() *C.struct_AdbcHandle {
	return (*C.struct_AdbcHandle)(C.calloc(1, C.sizeof_struct_AdbcHandle))
}

func newError() *C.struct_AdbcError {
	return (*C.struct_AdbcError)(C.calloc(1, C.sizeof_struct_AdbcError))
}

func freeError(failure *C.struct_AdbcError) {
	C.release_error(failure)
	C.free(unsafe.Pointer(failure))
}

// Calls a function, and makes a Go error of what it gives.
func call(function func(*C.struct_AdbcError) C.AdbcStatusCode) error {
	failure := newError()
	defer freeError(failure)
	status := function(failure)
	if status == 0 {
		return nil
	}
	message := "the driver gave no reason"
	if failure.message != nil {
		message = C.GoString(failure.message)
	}
	state := C.GoStringN(&failure.sqlstate[0], 5)
	if state[0] == 0 {
		state = ""
	}
	return &Error{Status: uint8(status), SQLState: state, Message: message}
}

// Database is a database in memory, with workers of its own.
type Database struct {
	driver *C.struct_AdbcDriver
	handle *C.struct_AdbcHandle
}

// Open opens a database with options by their names in SQL SET, such as threads and memory_limit.
func Open(library string, options map[string]string) (*Database, error) {
	driver, err := load(library)
	if err != nil {
		return nil, err
	}
	database := &Database{driver, newHandle()}
	err = call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_one(driver.database_new, database.handle, e)
	})
	for key, value := range options {
		if err == nil {
			err = set(driver.database_set_option, database.handle, key, value)
		}
	}
	if err == nil {
		err = call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
			return C.call_one(driver.database_init, database.handle, e)
		})
	}
	if err != nil {
		return nil, errors.Join(err, database.Close())
	}
	return database, nil
}

func set(function C.AdbcOption, handle *C.struct_AdbcHandle, key, value string) error {
	name, text := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(text))
	return call(func(e *C.struct_AdbcError) C.AdbcStatusCode { return C.call_option(function, handle, name, text, e) })
}

// Releases what a handle stands for, once.
func release(function C.AdbcOne, handle **C.struct_AdbcHandle) error {
	if *handle == nil {
		return nil
	}
	defer func() {
		C.free(unsafe.Pointer(*handle))
		*handle = nil
	}()
	if (*handle).private_data == nil {
		return nil
	}
	return call(func(e *C.struct_AdbcError) C.AdbcStatusCode { return C.call_one(function, *handle, e) })
}

// Close lets the database go. Its connections are closed before.
func (d *Database) Close() error { return release(d.driver.database_release, &d.handle) }

// Conn is a connection. All of a database see the same tables.
type Conn struct {
	driver *C.struct_AdbcDriver
	handle *C.struct_AdbcHandle
}

// Connect makes a connection.
func (d *Database) Connect() (*Conn, error) {
	conn := &Conn{d.driver, newHandle()}
	err := call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_one(d.driver.connection_new, conn.handle, e)
	})
	if err == nil {
		err = call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
			return C.call_two(d.driver.connection_init, conn.handle, d.handle, e)
		})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// Close closes the connection. Its statements are closed before.
func (c *Conn) Close() error { return release(c.driver.connection_release, &c.handle) }

// Stmt is a statement: one text, or a table that is filled.
type Stmt struct {
	driver *C.struct_AdbcDriver
	handle *C.struct_AdbcHandle
}

// Statement makes a statement of SQL.
func (c *Conn) Statement(query string) (*Stmt, error) {
	stmt, err := c.statement()
	if err != nil {
		return nil, err
	}
	text := C.CString(query)
	defer C.free(unsafe.Pointer(text))
	err = call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_text(c.driver.statement_set_sql_query, stmt.handle, text, e)
	})
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	return stmt, nil
}

func (c *Conn) statement() (*Stmt, error) {
	stmt := &Stmt{c.driver, newHandle()}
	err := call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_two(c.driver.statement_new, c.handle, stmt.handle, e)
	})
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	return stmt, nil
}

// Ingest puts all rows of a reader into a table; mode is create, append, replace or create_append.
func (c *Conn) Ingest(ctx context.Context, table, mode string, rows array.RecordReader) (int64, error) {
	stmt, err := c.statement()
	if err != nil {
		return 0, err
	}
	defer stmt.Close()
	option := c.driver.statement_set_option
	if err := set(option, stmt.handle, "adbc.ingest.target_table", table); err != nil {
		return 0, err
	}
	if err := set(option, stmt.handle, "adbc.ingest.mode", "adbc.ingest.mode."+mode); err != nil {
		return 0, err
	}
	if err := stmt.Bind(rows); err != nil {
		return 0, err
	}
	return stmt.Update(ctx)
}

// Bind gives the statement parameters; it runs once for each row.
func (s *Stmt) Bind(rows array.RecordReader) error {
	stream := (*cdata.CArrowArrayStream)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowArrayStream{}))))
	defer C.free(unsafe.Pointer(stream))
	cdata.ExportRecordReader(rows, stream)
	return call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_stream(s.driver.statement_bind_stream, s.handle, unsafe.Pointer(stream), e)
	})
}

// Query runs the statement and gives its batches as they come. A context that ends, ends the run.
func (s *Stmt) Query(ctx context.Context) (array.RecordReader, error) {
	stream := (*cdata.CArrowArrayStream)(C.calloc(1, C.size_t(unsafe.Sizeof(cdata.CArrowArrayStream{}))))
	defer C.free(unsafe.Pointer(stream))
	err := s.watched(ctx, func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_execute(s.driver.statement_execute_query, s.handle, unsafe.Pointer(stream), nil, e)
	})
	if err != nil {
		return nil, err
	}
	reader, err := cdata.ImportCRecordReader(stream, (*arrow.Schema)(nil))
	if err != nil {
		return nil, err
	}
	return reader.(array.RecordReader), nil
}

// Update runs the statement and gives the number of rows that it changed; -1 if it does not say.
func (s *Stmt) Update(ctx context.Context) (int64, error) {
	rows := (*C.int64_t)(C.calloc(1, C.sizeof_int64_t))
	defer C.free(unsafe.Pointer(rows))
	err := s.watched(ctx, func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_execute(s.driver.statement_execute_query, s.handle, nil, rows, e)
	})
	return int64(*rows), err
}

// Cancel ends the run, and the reader that it gave; from any goroutine.
func (s *Stmt) Cancel() error {
	return call(func(e *C.struct_AdbcError) C.AdbcStatusCode {
		return C.call_one(s.driver.statement_cancel, s.handle, e)
	})
}

// Calls a function that a context may end.
func (s *Stmt) watched(ctx context.Context, function func(*C.struct_AdbcError) C.AdbcStatusCode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Cancel() })
	err := call(function)
	if !stop() && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Close lets the statement go.
func (s *Stmt) Close() error { return release(s.driver.statement_release, &s.handle) }
