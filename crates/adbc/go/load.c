// Loads the driver's library.
//
// In: its path. Out: its functions.
// Invariant: the library stays loaded; its threads may outlive every database.

#include "adbc.h"

#include <dlfcn.h>
#include <string.h>

typedef AdbcStatusCode (*AdbcInit)(int, void*, struct AdbcError*);

const char* grouse_load(const char* path, struct AdbcDriver* driver, struct AdbcError* error) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  AdbcInit init = (AdbcInit)dlsym(library, "AdbcDriverGrouseInit");
  if (!init) return dlerror();
  memset(driver, 0, sizeof(*driver));
  if (init(1001000, driver, error) != 0) return error->message ? error->message : "the driver did not start";
  return NULL;
}
