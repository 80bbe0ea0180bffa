import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compilingInSteps } from './compilingInSteps.ts'
import type { CompileResult } from './environment.ts'
import { standardEnvironment } from './standardEnvironment.ts'
import { boolType } from './types.ts'

const environment = standardEnvironment.extend({ variables: { self: boolType } })
const expressions = Array.from({ length: 200 }, (_, i) => `${i} == ${i}${' && self'.repeat(100)}`)
const said = (result: CompileResult) =>
  result.ok ? [result.checked.resultType.kind, result.estimateCost().max, result.variables.has('self')] : [result.message]

/** What the work returns, and how often it paused. */
function drained<T>(steps: Generator<undefined, T>): { value: T; pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const step = steps.next()
    if (step.done) return { value: step.value, pauses }
  }
}

test('CEL-01 work that compiles much text pauses, and finds the same', () => {
  const work = () => [...expressions, 'self +', 'nobody'].map((source) => said(environment.compile(source)))
  const { value, pauses } = drained(compilingInSteps(work))
  assert.ok(pauses >= 18 && pauses < 30, `${pauses}`)
  assert.deepEqual(value, work())
})

test('CEL-01 programs can be run, their expressions were compiled before a pause', () => {
  const given = new Map([['self', true]])
  const work = () => expressions.map((source) => environment.compile(source)).map((one) => one.ok && one.program.evaluate(given).value)
  assert.deepEqual(
    drained(compilingInSteps(work)).value,
    expressions.map(() => true),
  )
})

test('CEL-01 work that asks for other expressions in each run ends', () => {
  let runs = 0
  const work = () => {
    runs++
    return expressions.map((source) => environment.compile(`${runs} == ${runs} && ${source}`).ok)
  }
  assert.ok(drained(compilingInSteps(work)).pauses <= 1)
})

test('CEL-01 work that compiles little does not pause', () => {
  assert.equal(drained(compilingInSteps(() => environment.compile('self').ok)).pauses, 0)
})
