/**
 * Plans calls of ordinary functions (L1, pure): chooses the overload by the arguments at hand, runs it, charges its cost.
 * Upstream: cel-go interpreter/interpretable.go, dispatcher.go (v0.26).
 */
import type { CallCost } from '../cost/model.ts'
import type { Overload } from '../declarations.ts'
import type { CelType } from '../types.ts'
import type { Value } from '../values.ts'
import { hasType } from '../values.ts'
import type { Evaluate, Frame } from './frame.ts'
import { charge, noSuchOverload } from './frame.ts'

type Invoke = (...args: Value[]) => Value
type Test = (value: Value) => boolean

const always: Test = () => true

/** A test of a value's outermost type, the commonest written out so that they are inlined. */
function testOf(type: CelType): Test {
  switch (type.kind) {
    case 'dyn':
    case 'parameter':
      return always
    case 'int':
      return (value) => typeof value === 'number' || typeof value === 'bigint'
    case 'string':
      return (value) => typeof value === 'string'
    case 'bool':
      return (value) => typeof value === 'boolean'
    default:
      return (value) => hasType(value, type)
  }
}

const fits = ({ tests }: Candidate, args: readonly Value[]): boolean => tests.every((test, i) => test(args[i]!))

interface Candidate {
  readonly id: string
  readonly invoke: Invoke
  readonly tests: readonly Test[]
}

/** Plans a call whose arguments (receiver first) are planned. Candidates are the overloads that the checker left open. */
export function planCall(overloads: readonly Overload[], args: readonly Evaluate[], cost: CallCost): Evaluate {
  const candidates = overloads.map(
    ({ id, invoke, prepare, parameters }): Candidate => ({ id, invoke: (prepare?.() ?? invoke) as Invoke, tests: parameters.map(testOf) }),
  )
  const [only] = candidates
  if (candidates.length === 1 && typeof cost === 'number') {
    if (args.length === 1) return planUnary(only!, args[0]!, cost)
    if (args.length === 2) return planBinary(only!, args[0]!, args[1]!, cost)
  }
  return (frame) => {
    const values = args.map((arg) => arg(frame))
    const candidate = candidates.find((one) => fits(one, values))
    if (!candidate) throw noSuchOverload()
    if (typeof cost === 'object') return chargeResult(frame, cost, candidate.invoke(...values))
    charge(frame, typeof cost === 'number' ? cost : (cost(values, candidate.id) ?? 1))
    return candidate.invoke(...values)
  }
}

function chargeResult(frame: Frame, cost: { ofResult: (result: Value) => number }, result: Value): Value {
  charge(frame, cost.ofResult(result))
  return result
}

function planUnary({ invoke, tests }: Candidate, arg: Evaluate, cost: number): Evaluate {
  const test = tests[0]!
  return (frame) => {
    const value = arg(frame)
    if (!test(value)) throw noSuchOverload()
    charge(frame, cost)
    return invoke(value)
  }
}

function planBinary({ invoke, tests }: Candidate, left: Evaluate, right: Evaluate, cost: number): Evaluate {
  const [testLeft, testRight] = tests as [Test, Test]
  return (frame) => {
    const a = left(frame)
    const b = right(frame)
    if (!testLeft(a) || !testRight(b)) throw noSuchOverload()
    charge(frame, cost)
    return invoke(a, b)
  }
}
