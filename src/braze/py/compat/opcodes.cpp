// Names and cache counts from the table, and the proof that the table agrees with CPython's opcode.h.
// That header's macros have the enumeration's names, so braze/py/opcode.h cannot be included here.
#include <opcode.h>

#include "braze/py/compat/version.h"

#define OPCODE(name, number, caches) static_assert(name == number);
#include BRAZE_OPCODE_TABLE
#undef OPCODE

namespace braze::py {

enum class Opcode : unsigned char;

namespace {

struct Row {
  const char* name = "?";
  int caches = 0;
};

struct Table {
  Row rows[256];
  constexpr Table() {
#define OPCODE(name, number, caches) rows[number] = {#name, caches};
#include BRAZE_OPCODE_TABLE
#undef OPCODE
  }
};

constexpr Table kTable;

}  // namespace

const char* opcode_name(Opcode opcode) noexcept { return kTable.rows[static_cast<unsigned char>(opcode)].name; }
int opcode_caches(Opcode opcode) noexcept { return kTable.rows[static_cast<unsigned char>(opcode)].caches; }

bool is_call_prefix(Opcode opcode) noexcept {
#ifdef PRECALL
  if (static_cast<int>(opcode) == PRECALL) return true;
#endif
  return static_cast<int>(opcode) == KW_NAMES;
}

}  // namespace braze::py
