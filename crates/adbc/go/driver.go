package grouse

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/url"

	"github.com/apache/arrow-go/v18/arrow/array"
)

func init() { sql.Register("grouse", sqlDriver{}) }

type sqlDriver struct{}

// Open is of a name such as "/opt/grouse/libadbc_driver_grouse.so?threads=4&memory_limit=2GB". database/sql calls OpenConnector.
func (d sqlDriver) Open(name string) (driver.Conn, error) {
	connector, err := d.OpenConnector(name)
	if err != nil {
		return nil, err
	}
	return connector.Connect(context.Background())
}

// OpenConnector opens the database that all connections of one sql.DB share.
func (sqlDriver) OpenConnector(name string) (driver.Connector, error) {
	address, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	options := map[string]string{}
	for key, values := range address.Query() {
		options[key] = values[len(values)-1]
	}
	database, err := Open(address.Path, options)
	if err != nil {
		return nil, err
	}
	return connector{database}, nil
}

type connector struct{ database *Database }

func (c connector) Driver() driver.Driver { return sqlDriver{} }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.database.Connect()
	if err != nil {
		return nil, err
	}
	return &sqlConn{conn}, nil
}

// Close lets the database go when the sql.DB is closed.
func (c connector) Close() error { return c.database.Close() }

type sqlConn struct{ conn *Conn }

func (c *sqlConn) Close() error { return c.conn.Close() }

func (c *sqlConn) Begin() (driver.Tx, error) {
	return nil, errors.New("grouse has no transactions; each statement takes effect by itself")
}

func (c *sqlConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.conn.Statement(query)
	if err != nil {
		return nil, err
	}
	return &sqlStmt{stmt}, nil
}

func (c *sqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	stmt, err := c.conn.Statement(query)
	if err != nil {
		return nil, err
	}
	rows, err := queryRows(ctx, stmt, args)
	if err != nil {
		return nil, errors.Join(err, stmt.Close())
	}
	rows.owned = stmt
	return rows, nil
}

func (c *sqlConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	stmt, err := c.conn.Statement(query)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return update(ctx, stmt, args)
}

type sqlStmt struct{ stmt *Stmt }

func (s *sqlStmt) Close() error  { return s.stmt.Close() }
func (s *sqlStmt) NumInput() int { return -1 }

func (s *sqlStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return queryRows(ctx, s.stmt, args)
}

func (s *sqlStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return update(ctx, s.stmt, args)
}

// Query and Exec are what database/sql wants of a statement, and does not call.
func (s *sqlStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

func (s *sqlStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	values := make([]driver.NamedValue, len(args))
	for at, value := range args {
		values[at] = driver.NamedValue{Ordinal: at + 1, Value: value}
	}
	return values
}

func queryRows(ctx context.Context, stmt *Stmt, args []driver.NamedValue) (*Rows, error) {
	if err := bind(stmt, args); err != nil {
		return nil, err
	}
	reader, err := stmt.Query(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stmt.Cancel() })
	return newRows(ctx, reader, func() { stop() }), nil
}

func update(ctx context.Context, stmt *Stmt, args []driver.NamedValue) (driver.Result, error) {
	if err := bind(stmt, args); err != nil {
		return nil, err
	}
	changed, err := stmt.Update(ctx)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(max(changed, 0)), nil
}

func bind(stmt *Stmt, args []driver.NamedValue) error {
	if len(args) == 0 {
		return nil
	}
	batch, err := parameters(args)
	if err != nil {
		return err
	}
	defer batch.Release()
	reader, err := array.NewRecordReader(batch.Schema(), []arrowRecord{batch})
	if err != nil {
		return err
	}
	defer reader.Release()
	return stmt.Bind(reader)
}

// ended tells the end of a reader from its failure.
func ended(ctx context.Context, reader array.RecordReader) error {
	switch err := reader.Err(); {
	case err == nil:
		return io.EOF
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return err
	}
}
