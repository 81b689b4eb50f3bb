// The part for a better processor: -DPART=name and -m flags.
#include "two_targets.h"

int PART(const char* path) { return UseEverything(path); }
