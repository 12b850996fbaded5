"""Statements of several threads that change one table: none is lost, and none counts twice."""

import threading

import grouse

THREADS, TIMES = 6, 15


def at_once(con, change):
    """Calls `change(cursor, thread, time)` of each thread and time; the errors."""
    errors = []

    def work(thread):
        cursor = con.cursor()
        for time in range(TIMES):
            try:
                change(cursor, thread, time)
            except grouse.Error as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def table(rows):
    con = grouse.connect(threads=4)
    con.execute("CREATE TABLE a (k INTEGER PRIMARY KEY, v BIGINT)")
    con.execute(f"INSERT INTO a SELECT i::INTEGER, 0 FROM generate_series(0, {rows - 1}) x(i)")
    return con


def test_updates_and_inserts_of_a_table_with_a_key():
    con = table(20_000)

    def change(cursor, thread, time):
        if thread % 2:
            cursor.execute(f"INSERT INTO a VALUES ({100_000 + thread * 1000 + time}, 0)")
        else:
            cursor.execute("UPDATE a SET v = v + 1 WHERE k = 5")

    assert at_once(con, change) == []
    half = THREADS // 2 * TIMES
    assert con.execute("SELECT count(*) - 20000, sum(v) FROM a").fetchall() == [(half, half)]


def test_deletes_of_the_first_row():
    con = table(200)
    assert at_once(con, lambda cursor, *_: cursor.execute("DELETE FROM a WHERE k IN (SELECT min(k) FROM a)")) == []
    assert con.execute("SELECT count(*), min(k) FROM a").fetchall() == [(200 - THREADS * TIMES, THREADS * TIMES)]


def test_columns_are_added_beside_inserts_and_updates():
    con = table(1_000)
    written = []

    def change(cursor, thread, time):
        if thread == 0:
            cursor.execute(f"ALTER TABLE a ADD COLUMN c{time} INTEGER DEFAULT {time}")
        elif thread % 2:
            key = 100_000 + thread * 1000 + time
            cursor.execute(f"INSERT INTO a (k, v) VALUES ({key}, 0)")
            written.append(key)
        else:
            cursor.execute("UPDATE a SET v = v + 1 WHERE k = 5")
            written.append(5)

    errors = at_once(con, change)
    # A statement may be refused because another one altered the table between its plan and its run; then it has written nothing.
    assert all("run it again" in error or "run this" in error for error in errors), errors
    updates = written.count(5)
    rows = con.execute("SELECT count(*) - 1000, sum(v) FROM a").fetchall()
    assert rows == [(len(written) - updates, updates)]
