"""Types of the native module; `grouse` re-exports all of it."""

import builtins
import datetime
import decimal
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeAlias, final

import pandas
import polars
import pyarrow
from typing_extensions import Self

from grouse._connection import Cursor
from grouse._plot import Plot
from grouse._relation import Grouped

__version__: str

_Value: TypeAlias = (
    bool
    | int
    | float
    | decimal.Decimal
    | str
    | bytes
    | datetime.date
    | datetime.datetime
    | datetime.time
    | datetime.timedelta
    | Sequence[Any]
    | Mapping[str, Any]
    | None
)
_Params: TypeAlias = list[_Value] | tuple[_Value, ...] | dict[str, _Value]
_Size: TypeAlias = int | str
_Path: TypeAlias = str | os.PathLike[str]

@final
class Progress:
    """Where a running query stands."""

    input_rows: int
    """Rows that the scans have handed on."""
    input_share: float | None
    """Share of the input that is read, from 0 to 1; None where the total is unknown."""
    groups: int
    """Groups that GROUP BY operators hold or have emitted."""
    memory_bytes: int
    """Bytes that the queries of the connection hold."""
    spilled_bytes: int
    """Bytes written to disk for want of memory."""
    elapsed_s: float
    """Seconds since the query started."""

@final
class Connection:
    """A connection to the engine: options, registered tables, views and worker threads of its own."""

    def sql(self, text: str, params: _Params | None = None) -> Relation:
        """Plans SQL and gives the (last) statement's result as a lazy Relation.

        `params` is a list or tuple for `?` and `$1`, a dict for `$name`. Raises a subclass of grouse.Error.
        """
    def register(self, name: str, obj: Any) -> None:
        """Makes an object's rows visible as table `name`. Raises grouse.TypeError for objects that are no tables."""
    def unregister(self, name: str) -> None:
        """Removes a registered table; it is no error if there is none."""
    def tables(self) -> list[str]:
        """Names of the registered tables and views, sorted."""
    def close(self) -> None:
        """Closes the connection; its relations raise grouse.InvalidError from now on."""
    def interrupt(self) -> None:
        """Ends the queries of the connection that run now, in whatever thread: grouse.CancelledError is raised there."""
    def _plan(self, text: str, tables: dict[str, Any], params: _Params | None = None) -> Relation:
        """Plans one statement in which `tables` are tables by their names."""
    def read_csv(self, path: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over CSV files: a path, a glob, an address, or a list of them."""
    def from_csv_auto(self, path: _Path | Sequence[_Path], **options: Any) -> Relation:
        """The same as `read_csv`."""
    def read_parquet(self, path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over Parquet files: a path, a glob, an address, or a list of them."""
    def from_parquet(self, path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
        """The same as `read_parquet`."""
    def read_json(self, path_or_buffer: _Path | Sequence[_Path], **options: Any) -> Relation:
        """A relation over JSON files, of records or of one array: a path, a glob, an address, or a list of them."""
    def from_df(self, df: Any) -> Relation:
        """A relation over a DataFrame of pandas or Polars, or any other object that is a table."""
    def from_arrow(self, arrow_object: Any) -> Relation:
        """A relation over a table, batch, reader or dataset of pyarrow, or any object with `__arrow_c_stream__`."""
    def table(self, table_name: str) -> Relation:
        """A relation over a table or view of the connection. Raises grouse.UnknownTableError if there is none."""
    def view(self, table_name: str) -> Relation:
        """The same as `table`."""
    def values(self, *rows: Any) -> Relation:
        """A relation over rows of Python values: `values([1, "a"])` is one, `values((1, "a"), (2, "b"))` are two."""
    def table_function(self, name: str, parameters: Sequence[Any] | None = None) -> Relation:
        """A relation over a table function: `table_function("range", [10])`."""
    def append(self, table_name: str, df: Any, *, by_name: bool = False) -> Connection:
        """Adds the rows of a DataFrame, or of another object that is a table, to a table, by the order or the names of columns."""
    def create_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Any] | None = None,
        return_type: Any = None,
        *,
        type: str = "native",
        null_handling: str = "default",
        exception_handling: str = "default",
        side_effects: bool = False,
    ) -> Connection:
        """Makes a function of Python a scalar function of SQL on this connection: called for each row, or with arrays ("arrow")."""
    def remove_function(self, name: str) -> Connection:
        """Takes away a function that `create_function` made. Raises grouse.InvalidError if there is none."""
    def query(self, query: str, *, alias: str = "", params: Any = None) -> Relation:
        """Plans SQL, as `sql` does, and gives the relation a name for expressions."""
    def from_query(self, query: str, *, alias: str = "", params: Any = None) -> Relation:
        """The same as `query`."""
    def execute(self, query: str, parameters: Any = None) -> Connection:
        """Runs SQL up to its first rows and gives the connection, whose fetch methods give the rows."""
    def executemany(self, query: str, parameters: Iterable[Any] = ()) -> Connection:
        """Runs one statement with each of these parameters, in order. The result is the last one's."""
    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row of the newest statement, or None after the last one."""
    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """At most `size` more rows of the newest statement."""
    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows of the newest statement that are left; after them there are none."""
    def fetchnumpy(self) -> dict[str, Any]:
        """The newest statement's result as numpy arrays; see Relation.fetchnumpy. It runs anew, as for the methods below."""
    def df(self) -> Any:
        """The newest statement's result as a pandas DataFrame."""
    def fetchdf(self) -> Any:
        """The same as `df`."""
    def fetch_df(self) -> Any:
        """The same as `df`."""
    def pl(self) -> Any:
        """The newest statement's result as a polars DataFrame."""
    def arrow(self) -> Any:
        """The newest statement's result as a pyarrow Table."""
    def fetch_arrow_table(self) -> Any:
        """The same as `arrow`."""
    def to_arrow_table(self) -> Any:
        """The same as `arrow`."""
    def to_arrow_reader(self, batch_size: int = 131072) -> Any:
        """The newest statement's result as a pyarrow RecordBatchReader."""
    def fetch_record_batch(self, rows_per_batch: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
    def torch(self) -> dict[str, Any]:
        """The newest statement's result as torch tensors; see Relation.torch."""
    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Of each column of the newest statement a tuple of seven, as PEP 249 has it; None if there is no statement."""
    @property
    def rowcount(self) -> int:
        """How many rows the newest statement has changed; -1 of a query, which does not know before its end."""
    def cursor(self) -> Cursor:
        """A cursor as PEP 249 has it: on the same connection, with a result of its own."""
    def commit(self) -> Connection:
        """Does nothing: each statement is kept when it has run, since there are no transactions."""
    def begin(self) -> Connection:
        """Raises grouse.UnsupportedError: there are no transactions, and what a statement did cannot be undone."""
    def rollback(self) -> Connection:
        """Raises grouse.UnsupportedError: there are no transactions, and what a statement did cannot be undone."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class Profile:
    """What each worker of a query did when, from `Relation.profile()`. In a notebook it is drawn as a timeline."""

    @property
    def seconds(self) -> float:
        """Seconds from the statement to its last row."""
    def summary(self) -> str:
        """Sums as text: time by phase and worker, what was serial, why threads were idle."""
    def html(self) -> str:
        """One page for a browser, which needs nothing else."""
    def json(self) -> str:
        """The trace event format, which Perfetto and chrome://tracing open."""
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `path`: a page (.html) or a trace (.json)."""

@final
class Relation:
    """The lazy result of a statement: columns and types are known, rows come when they are asked for."""

    @property
    def columns(self) -> builtins.list[str]:
        """Names of the columns, in order."""
    @property
    def types(self) -> builtins.list[str]:
        """Types of the columns, in order, such as "int64", "varchar", "timestamp(6) UTC", "list(double)"."""
    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last one."""
    def fetchmany(self, size: int = 1) -> builtins.list[tuple[Any, ...]]:
        """At most `size` more rows; an empty list after the last one."""
    def fetchall(self) -> builtins.list[tuple[Any, ...]]:
        """All rows that are left; the next fetch starts over."""
    def __iter__(self) -> Rows: ...
    def df(self) -> pandas.DataFrame:
        """The result as a pandas DataFrame. Raises ImportError without pandas."""
    def pl(self) -> polars.DataFrame:
        """The result as a polars DataFrame. Raises ImportError without polars."""
    def arrow(self) -> pyarrow.Table:
        """The result as a pyarrow Table. Raises ImportError without pyarrow."""
    def to_arrow_table(self) -> pyarrow.Table:
        """The same as `arrow`."""
    def to_batches(self) -> Batches:
        """An iterator over the record batches as they are made; the result is never held as a whole."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def show(self, *, max_rows: int = 20, max_width: int | None = None) -> None:
        """Prints the first `max_rows` rows as a table of at most `max_width` characters (None: the terminal's)."""
    def explain(self, *, analyze: bool = False) -> str:
        """The plan as text; with analyze=True the query runs and the plan tells what each operator did."""
    async def arrow_async(self) -> Any:
        """The result as a pyarrow Table, awaited. A cancelled task stops its query."""
    async def df_async(self) -> Any:
        """The result as a pandas DataFrame, awaited."""
    async def pl_async(self) -> Any:
        """The result as a polars DataFrame, awaited."""
    async def fetchall_async(self) -> list[tuple[Any, ...]]:
        """All rows as a list of tuples, awaited."""
    def plot(self, kind: str | None = None) -> Plot:
        """A picture of one or two columns: bars, a line, a histogram. A notebook draws it; `save` writes SVG."""
    def profile(self) -> Profile:
        """Runs the query, without its rows, and tells what each worker did when."""
    def close(self) -> None:
        """Stops what the fetch methods run, in any thread (grouse.CancelledError there); further use raises grouse.InvalidError."""
    def execute(self) -> Self:
        """Starts the run that the fetch methods read, and waits for its first rows: what goes wrong before them is told now."""
    @property
    def _text(self) -> str: ...
    def _plan(self, text: str, tables: dict[str, Any], params: _Params | None = None) -> Relation:
        """Plans a statement of the same connection, in which `tables` are tables by their names."""
    def _rows_at_hand(self) -> int | None:
        """The number of rows where it is known, or will be when the newest iterator has read them."""
    def filter(self, filter_expr: str) -> Relation:
        """The rows for which `filter_expr`, a boolean expression, is true."""
    def project(self, *columns: str, groups: str = "") -> Relation:
        """Columns computed from the relation's."""
    def select(self, *columns: str, groups: str = "") -> Relation:
        """The same as `project`."""
    def aggregate(self, aggr_expr: str | Iterable[str], group_expr: str | Iterable[str] = "") -> Relation:
        """One row for each group. Without `group_expr` all columns that are no aggregates are keys, as GROUP BY ALL has it."""
    def group_by(self, *columns: str) -> Grouped:
        """Groups by these keys, with the result's columns to follow: `rel.group_by("k").agg("sum(x) AS s")`."""
    def order(self, order_expr: str) -> Relation:
        """The rows in order of `order_expr`, such as `"a DESC NULLS LAST, b"`."""
    def sort(self, *args: str) -> Relation:
        """The rows in order of the keys: `sort("a DESC", "b")`."""
    def limit(self, n: int, offset: int = 0) -> Relation:
        """At most `n` rows after the first `offset`; which ones is certain only in an order. A negative `n` is refused."""
    def offset(self, n: int) -> Relation:
        """The rows after the first `n`."""
    def head(self, n: int = 5) -> Relation:
        """The first `n` rows."""
    def distinct(self, on: str | Iterable[str] | None = None) -> Relation:
        """Each row once; with `on` one row for each value of these expressions."""
    def unique(self, unique_aggr: str) -> Relation:
        """Each value, or each combination of values, of the expressions once."""
    def union(self, union_rel: Relation) -> Relation:
        """The rows of both, repeated ones too, as UNION ALL."""
    def union_by_name(self, other: Relation, *, all: bool = True) -> Relation:
        """The rows of both, columns by their names: what one does not have is NULL. Without `all` each row once."""
    def except_(self, other_rel: Relation) -> Relation:
        """The rows of this one without those of the other: of a row, as many as there are more, as EXCEPT ALL."""
    def intersect(self, other_rel: Relation) -> Relation:
        """The rows that both have, each as often as both have it, as INTERSECT ALL."""
    def cross(self, other_rel: Relation) -> Relation:
        """Each row of this one with each of the other."""
    def join(self, other_rel: Relation, condition: str | Iterable[str] | None = None, how: str = "inner", suffix: str | None = None) -> Relation:
        """Rows of both that belong together."""
    def drop(self, *columns: str) -> Relation:
        """All columns but these."""
    def rename(self, **columns: str) -> Relation:
        """Other names for columns, given as old="new"."""
    def with_columns(self, **columns: str) -> Relation:
        """More columns, given as name="expression"; one that is there already is replaced in its place."""
    def select_types(self, types: Iterable[str]) -> Relation:
        """The columns of these types, given by their names in SQL or as `types` has them."""
    def select_dtypes(self, types: Iterable[str]) -> Relation:
        """The same as `select_types`."""
    def unnest(self, *columns: str) -> Relation:
        """One row for each element of the lists in these columns."""
    def unpivot(self, *columns: str, name: str = "name", value: str = "value") -> Relation:
        """Columns as rows: of each of them its name, in column `name`, and its value, in column `value`."""
    def pivot(self, column: str, values: Iterable[Any], aggregate: str) -> Relation:
        """Values of a column as columns, which hold the aggregate; the columns left are keys."""
    def sample(self, n: int | None = None, *, percent: float | None = None, seed: int | None = None, method: str | None = None) -> Relation:
        """Some rows by chance: `n` of them, or `percent` of all. The same seed draws the same rows, not those of DuckDB's."""
    def describe(self) -> Relation:
        """Statistics of each column: count, mean, stddev, min, max and median, a row each; numbers as DOUBLE, others as text."""
    def summarize(self) -> Relation:
        """What SUMMARIZE tells of each column, a row each."""
    def query(self, virtual_table_name: str, sql_query: str) -> Relation:
        """Runs SQL in which the relation is a table of that name; variables of the caller are tables in it, too."""
    def map(self, map_function: Callable[[Any], Any], *, schema: object = None) -> Relation:
        """What `map_function` makes of the relation's rows as a pandas DataFrame; it is called once, now. `schema` is not needed."""
    def materialize(self) -> Relation:
        """Runs the relation once, and gives a relation over its rows, which are in memory. Needs pyarrow."""
    def set_alias(self, alias: str) -> Relation:
        """The same rows under another name in expressions: `rel.set_alias("a").filter("a.x > 1")`."""
    @property
    def alias(self) -> str:
        """The name that expressions have for the relation: the table's, that of `set_alias`, or one made up."""
    @property
    def type(self) -> str:
        """What the relation was made by, such as "FILTER_RELATION"."""
    def __getitem__(self, name: str) -> Relation:
        """One column."""
    def __getattr__(self, name: str) -> Relation:
        """The column of this name, if no method has it."""
    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
    def any_value(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """A value of each group that is not NULL."""
    def avg(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The mean, as DOUBLE."""
    def mean(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The mean, as DOUBLE."""
    def bit_and(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The bits that all integers have."""
    def bit_or(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The bits that some integer has."""
    def bit_xor(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The bits that an odd number of integers has."""
    def bool_and(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """Whether all are true."""
    def bool_or(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """Whether some is true."""
    def count(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The number of values that are not NULL; of rows, for "*"."""
    def favg(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The mean, by a sum that loses nothing on the way."""
    def fsum(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The sum, as DOUBLE, by one that loses nothing on the way."""
    def geomean(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The geometric mean."""
    def histogram(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """How often there is each value, as a map."""
    def list(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """All values as a list, NULL among them."""
    def max(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The greatest value."""
    def median(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value in the middle, or the mean of the two there."""
    def min(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The least value."""
    def mode(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The most frequent value."""
    def product(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The product, as DOUBLE."""
    def std(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The standard deviation of a sample."""
    def stddev(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The standard deviation of a sample."""
    def stddev_pop(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The standard deviation of all there is."""
    def stddev_samp(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The standard deviation of a sample."""
    def sum(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The sum; one that does not fit its type is grouse.OverflowError."""
    def var(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The variance of a sample."""
    def var_pop(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The variance of all there is."""
    def var_samp(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The variance of a sample."""
    def variance(self, expression: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The variance of a sample."""
    def quantile(self, expression: str, q: float | builtins.list[float] = 0.5, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value below which a share `q` of all values is: one of them. Of a list of shares a list."""
    def quantile_cont(self, expression: str, q: float | builtins.list[float] = 0.5, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value below which a share `q` of all values is, between two of them if need be. Of a list of shares a list."""
    def quantile_disc(self, expression: str, q: float | builtins.list[float] = 0.5, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value below which a share `q` of all values is: one of them. Of a list of shares a list."""
    def first(self, expression: str, groups: str = "", projected_columns: str = "") -> Relation:
        """The first value, NULL or not."""
    def last(self, expression: str, groups: str = "", projected_columns: str = "") -> Relation:
        """The last value, NULL or not."""
    def arg_max(self, arg_column: str, value_column: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value of `arg_column` in the row with the greatest `value_column`."""
    def arg_min(self, arg_column: str, value_column: str, groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The value of `arg_column` in the row with the least `value_column`."""
    def string_agg(self, expression: str, sep: str = ",", groups: str = "", window_spec: str = "", projected_columns: str = "") -> Relation:
        """The values as one text, with `sep` between them."""
    def value_counts(self, expression: str, groups: str = "") -> Relation:
        """Each value with the number of its rows (0 for NULL, as `count(x)` has it); with `groups` in each group."""
    def apply(self, function_name: str, function_aggr: str, group_expr: str = "", function_parameter: str = "", projected_columns: str = "") -> Relation:
        """The aggregate of any name, of each expression of a list: `apply("quantile_cont", "a, b", function_parameter="0.5")`."""
    def row_number(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The number of the row in its partition, from 1."""
    def rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The rank of the row, with gaps after equal ones."""
    def dense_rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The rank of the row, without gaps."""
    def rank_dense(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The rank of the row, without gaps."""
    def percent_rank(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The rank from 0 to 1."""
    def cume_dist(self, window_spec: str, projected_columns: str = "") -> Relation:
        """The share of rows up to this one."""
    def first_value(self, expression: str, window_spec: str = "", projected_columns: str = "") -> Relation:
        """The first value of the window."""
    def last_value(self, expression: str, window_spec: str = "", projected_columns: str = "") -> Relation:
        """The last value of the window."""
    def lag(self, expression: str, window_spec: str, offset: int = 1, default_value: str = "NULL", ignore_nulls: bool = False, projected_columns: str = "") -> Relation:
        """The value `offset` rows before; `default_value`, an expression, where there is no such row."""
    def lead(self, expression: str, window_spec: str, offset: int = 1, default_value: str = "NULL", ignore_nulls: bool = False, projected_columns: str = "") -> Relation:
        """The value `offset` rows after; `default_value`, an expression, where there is no such row."""
    def n_tile(self, window_spec: str, num_buckets: int, projected_columns: str = "") -> Relation:
        """The number of the bucket, from 1 to `num_buckets`, that the row falls into; buckets are of equal size."""
    def nth_value(self, expression: str, window_spec: str, offset: int, ignore_nulls: bool = False, projected_columns: str = "") -> Relation:
        """The value of the `offset`-th row of the window, from 1."""
    @property
    def dtypes(self) -> builtins.list[str]:
        """The same as `types`."""
    @property
    def description(self) -> builtins.list[tuple[Any, ...]]:
        """Of each column a tuple of seven: its name, its type, and None, as PEP 249 has it."""
    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns; the rows are counted by a query."""
    def __len__(self) -> int:
        """The number of rows, counted by a query."""
    def sql_query(self) -> str:
        """One statement that means the relation. Parameters stay as they were written, variables by their names."""
    def fetchdf(self) -> Any:
        """The same as `df`."""
    def to_df(self) -> Any:
        """The same as `df`."""
    def fetch_arrow_table(self) -> Any:
        """The same as `arrow`, a pyarrow Table."""
    def to_arrow_reader(self, batch_size: int = 131072) -> Any:
        """A pyarrow RecordBatchReader over a run of its own, with at most `batch_size` rows a batch. Needs pyarrow."""
    def fetch_record_batch(self, rows_per_batch: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
    def fetch_arrow_reader(self, batch_size: int = 131072) -> Any:
        """The same as `to_arrow_reader`."""
    def iter_rows(self, batch_size: int = 1024) -> Iterator[tuple[Any, ...]]:
        """An iterator over the rows of a run of its own, as `iter` gives it. `batch_size` changes nothing."""
    def to_dicts(self) -> builtins.list[dict[str, Any]]:
        """Each row as a dict by the names of columns."""
    def fetchnumpy(self) -> dict[str, Any]:
        """A dict of numpy arrays by the names of columns; a column with NULL is a masked array. Needs numpy and pyarrow."""
    def torch(self) -> dict[str, Any]:
        """A dict of torch tensors by the names of columns, which have to be numbers or booleans without NULL. Needs torch."""
    def preview(self, limit: int = 10) -> str:
        """The first `limit` rows as a table of text."""
    def create(self, table_name: str) -> None:
        """Makes a table of the rows. Raises grouse.Error if there is one of that name."""
    def to_table(self, table_name: str) -> None:
        """The same as `create`."""
    def create_view(self, view_name: str, replace: bool = True) -> Relation:
        """Makes a view of the relation's statement, in place of one of that name if `replace`, and gives a relation over it."""
    def to_view(self, view_name: str, replace: bool = True) -> Relation:
        """The same as `create_view`."""
    def insert_into(self, table_name: str) -> None:
        """Adds the rows to a table that is there, by the order of columns."""
    def insert(self, values: Sequence[Any]) -> None:
        """Adds one row to the table that the relation is all of (`connection.table`)."""
    def update(self, set: Mapping[str, Any], *, condition: str | None = None) -> None:
        """Gives columns of the table that the relation is all of (`connection.table`) new values, where `condition` is true."""
    def to_csv(self, file_name: str | os.PathLike[str], *, sep: str | None = None, na_rep: str | None = None, header: bool | None = None, quotechar: str | None = None, escapechar: str | None = None, date_format: str | None = None, timestamp_format: str | None = None, quoting: str | int | None = None, encoding: str | None = None, compression: str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None) -> None:
        """Writes a CSV file, as COPY does with these options; with `partition_by` a folder of them."""
    def write_csv(self, file_name: str | os.PathLike[str], *, sep: str | None = None, na_rep: str | None = None, header: bool | None = None, quotechar: str | None = None, escapechar: str | None = None, date_format: str | None = None, timestamp_format: str | None = None, quoting: str | int | None = None, encoding: str | None = None, compression: str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None) -> None:
        """The same as `to_csv`."""
    def to_parquet(self, file_name: str | os.PathLike[str], *, compression: str | None = None, row_group_size: int | None = None, row_group_size_bytes: int | str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None, append: bool | None = None, filename_pattern: str | None = None, file_size_bytes: int | str | None = None) -> None:
        """Writes a Parquet file, as COPY does with these options; with `partition_by` a folder of them."""
    def write_parquet(self, file_name: str | os.PathLike[str], *, compression: str | None = None, row_group_size: int | None = None, row_group_size_bytes: int | str | None = None, overwrite: bool | None = None, per_thread_output: bool | None = None, use_tmp_file: bool | None = None, partition_by: Sequence[str] | None = None, write_partition_columns: bool | None = None, append: bool | None = None, filename_pattern: str | None = None, file_size_bytes: int | str | None = None) -> None:
        """The same as `to_parquet`."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def _repr_html_(self) -> str: ...

@final
class Rows(Iterator[tuple[Any, ...]]):
    """An iterator over rows; dropping it stops the query."""

    def __next__(self) -> tuple[Any, ...]: ...

@final
class Batches(Iterator[Any]):
    """An iterator over pyarrow.RecordBatch, or grouse.Batch without pyarrow; dropping or closing it stops the query."""

    def __next__(self) -> pyarrow.RecordBatch | Batch: ...
    def __arrow_c_schema__(self) -> object: ...
    def close(self) -> None:
        """Stops the query; there are no more batches. A thread that waits for one gets grouse.CancelledError."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@final
class Batch:
    """One record batch, for use without pyarrow."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
    @property
    def types(self) -> list[str]:
        """Types of the columns, in order."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows."""
    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

def connect(
    cluster: str | None = None,
    *,
    threads: int | None = None,
    memory_limit: _Size | None = None,
    temp_directory: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[Progress], object] | None = None,
    **options: str | int | bool | os.PathLike[str] | list[str | os.PathLike[str]] | None,
) -> Connection:
    """Makes a connection.

    cluster: address of a scheduler, such as "df://host:50050", whose cluster runs the statements; None = this process does.
    threads: 0 or None = as many as the machine offers. memory_limit: bytes, or "4GB", "512MiB", "80%", "unlimited".
    temp_directory: folder for the files of queries that need more memory, or several with ':' between them; the process may then
    have as many files open as the system's hard limit says. progress: True for a line on stderr, or a callable.
    safe: True = statements reach no file, no address and no variable of the caller, and change no option;
    allowed_directories opens folders. options: any other option of the engine by its name in SQL SET. Raises grouse.InvalidError.
    """

def default_connection() -> Connection:
    """The connection that `sql` runs on."""

def sql(text: str, params: _Params | None = None) -> Relation:
    """Plans SQL on the default connection; see Connection.sql."""
