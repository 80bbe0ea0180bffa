/**
 * + - * / % and unary minus (L1, pure), checked for overflow. Upstream: cel-go common/stdlib/standard.go, common/types/overflow.go (v0.26).
 */
import type { FunctionDeclaration } from '../declarations.ts'
import { declare, overload } from '../declarations.ts'
import { addDuration, difference, duration } from '../time.ts'
import type { CelInt, Duration, ListValue, Timestamp } from '../values.ts'
import { Double, EvaluationError, int, maxUint, Uint } from '../values.ts'

function uint(value: bigint): Uint {
  if (value < 0n || value > maxUint) throw new EvaluationError('unsigned integer overflow')
  return new Uint(value)
}

/** Runs on numbers while operands and result are safe integers, else on bigints. */
const intOperation =
  (fast: (a: number, b: number) => number, exact: (a: bigint, b: bigint) => bigint) =>
  (a: CelInt, b: CelInt): CelInt => {
    if (typeof a === 'number' && typeof b === 'number') {
      const result = fast(a, b)
      // The zero's sign is a double's affair: -0 would print and compare as 0, but has no place among integers.
      if (Number.isSafeInteger(result)) return result === 0 ? 0 : result
    }
    return int(exact(BigInt(a), BigInt(b)))
  }

export const addInts = intOperation(
  (a, b) => a + b,
  (a, b) => a + b,
)
const subtractInts = intOperation(
  (a, b) => a - b,
  (a, b) => a - b,
)
const multiplyInts = intOperation(
  (a, b) => a * b,
  (a, b) => a * b,
)
const divideInts = intOperation(
  (a, b) => Math.trunc(a / b),
  (a, b) => a / b,
)
const remainderInts = intOperation(
  (a, b) => a % b,
  (a, b) => a % b,
)

function notZero<T extends CelInt | Uint>(divisor: T, message: string): T {
  if (divisor === 0 || (divisor instanceof Uint && divisor.value === 0n)) throw new EvaluationError(message)
  return divisor
}

function joinBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length)
  joined.set(a)
  joined.set(b, a.length)
  return joined
}

export const arithmetic: readonly FunctionDeclaration[] = [
  declare(
    '_+_',
    overload('add_bytes', '(bytes, bytes) -> bytes', joinBytes),
    overload('add_double', '(double, double) -> double', (a: Double, b: Double) => new Double(a.value + b.value)),
    overload('add_duration_duration', '(duration, duration) -> duration', (a: Duration, b: Duration) => duration(a.nanos + b.nanos)),
    overload('add_duration_timestamp', '(duration, timestamp) -> timestamp', (a: Duration, b: Timestamp) => addDuration(b, a)),
    overload('add_timestamp_duration', '(timestamp, duration) -> timestamp', addDuration),
    overload('add_int64', '(int, int) -> int', addInts),
    overload('add_list', '(list(A), list(A)) -> list(A)', (a: ListValue, b: ListValue) => a.concat(b)),
    overload('add_string', '(string, string) -> string', (a: string, b: string) => a + b),
    overload('add_uint64', '(uint, uint) -> uint', (a: Uint, b: Uint) => uint(a.value + b.value)),
  ),
  declare(
    '_-_',
    overload('subtract_double', '(double, double) -> double', (a: Double, b: Double) => new Double(a.value - b.value)),
    overload('subtract_duration_duration', '(duration, duration) -> duration', (a: Duration, b: Duration) => duration(a.nanos - b.nanos)),
    overload('subtract_int64', '(int, int) -> int', subtractInts),
    overload('subtract_timestamp_duration', '(timestamp, duration) -> timestamp', (a: Timestamp, b: Duration) => addDuration(a, duration(-b.nanos))),
    overload('subtract_timestamp_timestamp', '(timestamp, timestamp) -> duration', difference),
    overload('subtract_uint64', '(uint, uint) -> uint', (a: Uint, b: Uint) => uint(a.value - b.value)),
  ),
  declare(
    '_*_',
    overload('multiply_double', '(double, double) -> double', (a: Double, b: Double) => new Double(a.value * b.value)),
    overload('multiply_int64', '(int, int) -> int', multiplyInts),
    overload('multiply_uint64', '(uint, uint) -> uint', (a: Uint, b: Uint) => uint(a.value * b.value)),
  ),
  declare(
    '_/_',
    overload('divide_double', '(double, double) -> double', (a: Double, b: Double) => new Double(a.value / b.value)),
    overload('divide_int64', '(int, int) -> int', (a: CelInt, b: CelInt) => divideInts(a, notZero(b, 'division by zero'))),
    overload('divide_uint64', '(uint, uint) -> uint', (a: Uint, b: Uint) => uint(a.value / notZero(b, 'division by zero').value)),
  ),
  declare(
    '_%_',
    overload('modulo_int64', '(int, int) -> int', (a: CelInt, b: CelInt) => remainderInts(a, notZero(b, 'modulus by zero'))),
    overload('modulo_uint64', '(uint, uint) -> uint', (a: Uint, b: Uint) => uint(a.value % notZero(b, 'modulus by zero').value)),
  ),
  declare(
    '-_',
    overload('negate_double', '(double) -> double', (a: Double) => new Double(-a.value)),
    overload('negate_int64', '(int) -> int', (a: CelInt) => subtractInts(0, a)),
  ),
]
