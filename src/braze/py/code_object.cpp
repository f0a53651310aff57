// Decoding walks the bytes once. The result hangs in the code object's extra slot, which CPython frees with the code.
#include "braze/py/code_object.h"

#include <memory>

#include "braze/py/py_error.h"
#include "braze/support/check.h"

namespace braze::py {

namespace {

struct Unit {
  Opcode opcode;
  int oparg;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  int units() const { return static_cast<int>(bytes_.size() / 2); }

  /// Reads prefixes and the instruction at `at`; leaves `at` on the instruction's own unit.
  Unit read(int& at) const {
    Unit unit = raw(at);
    while (unit.opcode == Opcode::EXTENDED_ARG) {
      const int high = unit.oparg;
      unit = raw(++at);
      unit.oparg |= high << 8;
    }
    return unit;
  }

 private:
  Unit raw(int at) const {
    const auto i = static_cast<std::size_t>(2 * at);
    return {static_cast<Opcode>(bytes_[i]), bytes_[i + 1]};
  }
  std::span<const std::uint8_t> bytes_;
};

int behind(const Unit& unit, int at) { return at + 1 + opcode_caches(unit.opcode); }

Instruction read_group(const Reader& reader, int pc) {
  Instruction result{.pc = pc};
  int at = pc;
  Unit unit = reader.read(at);
  if (unit.opcode == Opcode::KW_NAMES) {
    result.kw_names = unit.oparg;
    while (is_call_prefix(unit.opcode)) {
      at = behind(unit, at);
      unit = reader.read(at);
    }
    BRAZE_CHECK(unit.opcode == Opcode::CALL, "KW_NAMES at unit {} is not followed by CALL", pc);
  }
  result.opcode = unit.opcode;
  result.oparg = unit.oparg;
  result.last = at;
  result.next = behind(unit, at);
  return result;
}

/// The exception table: groups of big-endian numbers in 6-bit pieces, bit 6 says that more follow.
class TableReader {
 public:
  explicit TableReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool is_done() const { return at_ >= bytes_.size(); }
  int number() {
    int value = bytes_[at_] & 63;
    while (bytes_[at_++] & 64) value = (value << 6) | (bytes_[at_] & 63);
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

std::span<const std::uint8_t> bytes_of(PyObject* bytes) {
  return {reinterpret_cast<const std::uint8_t*>(PyBytes_AS_STRING(bytes)),
          static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

void free_info(void* info) { delete static_cast<CodeInfo*>(info); }

Py_ssize_t extra_index() {
  static const Py_ssize_t index = _PyEval_RequestCodeExtraIndex(free_info);
  BRAZE_CHECK(index >= 0, "CPython has no free slot for data of code objects");
  return index;
}

}  // namespace

const CodeInfo& CodeInfo::of(Borrowed<PyCodeObject> code) {
  void* info = nullptr;
  check(_PyCode_GetExtra(code.object(), extra_index(), &info));
  if (info != nullptr) return *static_cast<CodeInfo*>(info);
  std::unique_ptr<CodeInfo> fresh(new CodeInfo(code));
  check(_PyCode_SetExtra(code.object(), extra_index(), fresh.get()));
  return *fresh.release();
}

CodeInfo::CodeInfo(Borrowed<PyCodeObject> code) {
  const auto bytes = Owned<>::steal(check(PyCode_GetCode(code.get())));
  decode(bytes_of(bytes.get()));
  read_handlers(bytes_of(code->co_exceptiontable));
}

void CodeInfo::decode(std::span<const std::uint8_t> bytes) {
  const Reader reader(bytes);
  instructions_.resize(static_cast<std::size_t>(reader.units()));
  for (int pc = 0; pc < reader.units(); pc = instructions_[static_cast<std::size_t>(pc)].next) {
    instructions_[static_cast<std::size_t>(pc)] = read_group(reader, pc);
    starts_.push_back(pc);
  }
}

void CodeInfo::read_handlers(std::span<const std::uint8_t> table) {
  for (TableReader reader(table); !reader.is_done();) {
    Handler h;
    h.start = reader.number();
    h.end = h.start + reader.number();
    h.target = reader.number();
    const int depth = reader.number();
    h.depth = depth >> 1;
    h.push_lasti = (depth & 1) != 0;
    handlers_.push_back(h);
  }
}

std::optional<Handler> CodeInfo::handler_at(int pc) const {
  for (const Handler& h : handlers_)
    if (pc >= h.start && pc < h.end) return h;
  return std::nullopt;
}

int CodeInfo::line_at(Borrowed<PyCodeObject> code, int pc) {
  const int line = PyCode_Addr2Line(code.get(), 2 * pc);
  return line < 0 ? 0 : line;
}

}  // namespace braze::py
