// The part of ADBC's C interface, version 1.1.0, that this package calls: names and layout are the interface's.
//
// In: a driver library. Out: its functions, each behind one that Go can call.
// Not here: Arrow's own C structures, which the Arrow package for Go has.

#ifndef GROUSE_ADBC_H
#define GROUSE_ADBC_H

#include <stddef.h>
#include <stdint.h>

struct ArrowArrayStream;
struct ArrowSchema;
struct ArrowArray;

typedef uint8_t AdbcStatusCode;

struct AdbcError {
  char* message;
  int32_t vendor_code;
  char sqlstate[5];
  void (*release)(struct AdbcError*);
  void* private_data;
  void* private_driver;
};

// A database, a connection or a statement: all three look the same.
struct AdbcHandle {
  void* private_data;
  void* private_driver;
};

typedef AdbcStatusCode (*AdbcOne)(struct AdbcHandle*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcTwo)(struct AdbcHandle*, struct AdbcHandle*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcText)(struct AdbcHandle*, const char*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcOption)(struct AdbcHandle*, const char*, const char*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcBind)(struct AdbcHandle*, struct ArrowArray*, struct ArrowSchema*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcStream)(struct AdbcHandle*, struct ArrowArrayStream*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcExecute)(struct AdbcHandle*, struct ArrowArrayStream*, int64_t*, struct AdbcError*);
typedef AdbcStatusCode (*AdbcSchema)(struct AdbcHandle*, struct ArrowSchema*, struct AdbcError*);

struct AdbcDriver {
  void* private_data;
  void* private_manager;
  AdbcStatusCode (*release)(struct AdbcDriver*, struct AdbcError*);

  AdbcOne database_init;
  AdbcOne database_new;
  AdbcOption database_set_option;
  AdbcOne database_release;

  AdbcOne connection_commit;
  void* connection_get_info;
  void* connection_get_objects;
  void* connection_get_table_schema;
  void* connection_get_table_types;
  AdbcTwo connection_init;
  AdbcOne connection_new;
  AdbcOption connection_set_option;
  void* connection_read_partition;
  AdbcOne connection_release;
  AdbcOne connection_rollback;

  AdbcBind statement_bind;
  AdbcStream statement_bind_stream;
  AdbcExecute statement_execute_query;
  void* statement_execute_partitions;
  AdbcSchema statement_get_parameter_schema;
  AdbcTwo statement_new;
  AdbcOne statement_prepare;
  AdbcOne statement_release;
  AdbcOption statement_set_option;
  AdbcText statement_set_sql_query;
  void* statement_set_substrait_plan;

  void* error_get_detail_count;
  void* error_get_detail;
  void* error_from_array_stream;
  void* database_options[7];
  AdbcOne connection_cancel;
  void* connection_options[4];
  void* connection_get_statistics;
  void* connection_get_statistic_names;
  void* connection_set_options[3];
  AdbcOne statement_cancel;
  AdbcSchema statement_execute_schema;
  void* statement_options[7];
};

static inline AdbcStatusCode call_one(AdbcOne f, struct AdbcHandle* h, struct AdbcError* e) { return f(h, e); }
static inline AdbcStatusCode call_two(AdbcTwo f, struct AdbcHandle* h, struct AdbcHandle* of, struct AdbcError* e) {
  return f(h, of, e);
}
static inline AdbcStatusCode call_text(AdbcText f, struct AdbcHandle* h, const char* text, struct AdbcError* e) {
  return f(h, text, e);
}
static inline AdbcStatusCode call_option(AdbcOption f, struct AdbcHandle* h, const char* key, const char* value,
                                         struct AdbcError* e) {
  return f(h, key, value, e);
}
static inline AdbcStatusCode call_stream(AdbcStream f, struct AdbcHandle* h, void* stream, struct AdbcError* e) {
  return f(h, (struct ArrowArrayStream*)stream, e);
}
static inline AdbcStatusCode call_execute(AdbcExecute f, struct AdbcHandle* h, void* stream, int64_t* rows,
                                          struct AdbcError* e) {
  return f(h, (struct ArrowArrayStream*)stream, rows, e);
}
static inline void release_error(struct AdbcError* e) {
  if (e->release) e->release(e);
}

// Loads a library and fills in the driver; says what went wrong, or NULL.
const char* grouse_load(const char* path, struct AdbcDriver* driver, struct AdbcError* error);

#endif
