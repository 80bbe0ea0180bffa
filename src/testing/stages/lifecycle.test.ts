import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seededRandom } from '#base/random'
import { delayOf, effectsOf, nextStage } from './lifecycle.ts'
import { templateFunctionNames } from './player.ts'
import { type CompiledStage, compileStage, parseStages, type StageSpec } from './stage.ts'
import { genericFunctions } from './templateFunctions.ts'

const nowMs = Date.UTC(2026, 0, 1)
const functions = genericFunctions(() => nowMs, nowMs)

function stage(name: string, spec: Partial<StageSpec> = {}): CompiledStage {
  const whole = { resourceRef: { apiGroup: 'v1', kind: 'Pod' }, selector: {}, ...spec }
  return compileStage({ apiVersion: 'kwok.x-k8s.io/v1alpha1', kind: 'Stage', metadata: { name }, spec: whole }, templateFunctionNames)
}

const pod = (annotations: Record<string, string> = {}, finalizers: string[] = []) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'default', labels: { app: 'web' }, annotations, finalizers },
  status: { phase: 'Running' },
})

function share(stages: readonly CompiledStage[], annotations: Record<string, string> = {}): Record<string, number> {
  const random = seededRandom(5)
  const counts: Record<string, number> = {}
  for (let draw = 0; draw < 1000; draw++) {
    const name = nextStage(stages, pod(annotations), random)?.name ?? 'none'
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

test('X2 the next Stage is drawn by weight among those that select the object', () => {
  const elsewhere = stage('elsewhere', { weight: 1000, selector: { matchLabels: { app: 'other' } } })
  const { a = 0, b = 0, ...others } = share([stage('a', { weight: 1 }), stage('b', { weight: 3 }), stage('zero'), elsewhere])
  assert.deepEqual(others, {})
  assert.ok(a > 150 && a < 350 && a + b === 1000, `${a} of 1000 for a quarter`)
  assert.deepEqual(share([elsewhere]), { none: 1000 })
  assert.deepEqual(Object.keys(share([stage('a'), stage('b')])).sort(), ['a', 'b'])
})

test('X2 an annotation sets a Stage’s weight; a value that is not a number excludes the Stage', () => {
  const weighed = stage('a', { weight: 1, weightFrom: { expressionFrom: '.metadata.annotations["w"]' } })
  assert.deepEqual(share([weighed, stage('b')], { w: '5' }), { a: 1000 })
  assert.deepEqual(share([weighed, stage('b', { weight: 1 })], { w: 'many' }), { b: 1000 })
})

const from = (expressionFrom: string) => ({ expressionFrom })
const annotated = from('.metadata.annotations["d"]')
const delays: readonly (readonly [string, StageSpec['delay'], string | undefined, readonly [number, number]])[] = [
  ['none', undefined, undefined, [0, 0]],
  ['fixed', { durationMilliseconds: 700 }, undefined, [700, 700]],
  ['a range', { durationMilliseconds: 700, jitterDurationMilliseconds: 900 }, undefined, [700, 899]],
  ['a most that is less counts instead', { durationMilliseconds: 700, jitterDurationMilliseconds: 300 }, undefined, [300, 300]],
  ['from an annotation', { durationMilliseconds: 700, durationFrom: annotated }, '2m', [120_000, 120_000]],
  ['until a time', { durationMilliseconds: 700, durationFrom: annotated }, '2026-01-01T00:00:09Z', [9_000, 9_000]],
  ['a time that has passed', { durationFrom: annotated }, '2025-01-01T00:00:09Z', [0, 0]],
  ['an annotation that says nothing', { durationMilliseconds: 700, durationFrom: annotated }, 'soon', [700, 700]],
  ['by CEL', { durationFrom: { cel: { expression: '"1s"' } } }, undefined, [1_000, 1_000]],
]
for (const [name, delay, annotation, [least, most]] of delays)
  test(`X2 how long a Stage waits: ${name}`, () => {
    const random = seededRandom(1)
    const drawn = Array.from({ length: 200 }, () =>
      delayOf(stage('a', delay ? { delay } : {}), pod(annotation === undefined ? {} : { d: annotation }), nowMs, random),
    )
    assert.ok(Math.min(...drawn) >= least && Math.max(...drawn) <= most, `${Math.min(...drawn)} to ${Math.max(...drawn)}`)
    if (most > least) assert.ok(new Set(drawn).size > 10)
  })

const path = '/metadata/finalizers'
const finalizers: readonly (readonly [string, NonNullable<NonNullable<StageSpec['next']>['finalizers']>, string[], unknown])[] = [
  ['added to none', { add: [{ value: 'a/b' }] }, [], [{ op: 'add', path, value: ['a/b'] }]],
  ['added to others', { add: [{ value: 'a/b' }] }, ['c/d'], [{ op: 'add', path, value: ['c/d', 'a/b'] }]],
  ['there already', { add: [{ value: 'a/b' }] }, ['a/b'], undefined],
  ['the last one taken away', { remove: [{ value: 'a/b' }] }, ['a/b'], [{ op: 'remove', path }]],
  ['one of two taken away', { remove: [{ value: 'a/b' }] }, ['a/b', 'c/d'], [{ op: 'add', path, value: ['c/d'] }]],
  ['all taken away', { empty: true }, ['a/b', 'c/d'], [{ op: 'remove', path }]],
  ['all taken away, one added', { empty: true, add: [{ value: 'e/f' }] }, ['a/b'], [{ op: 'add', path, value: ['e/f'] }]],
]
for (const [name, change, present, want] of finalizers)
  test(`X2 a Stage changes finalizers: ${name}`, () => {
    const [step] = stage('a', { next: { finalizers: change } }).steps
    const effects = step ? effectsOf(step, pod({}, present), functions) : []
    assert.deepEqual(effects.map((effect) => 'body' in effect && effect.body)[0], want)
  })

test('X2 patches of a Stage go under their root', () => {
  const patches = [
    { root: 'status', subresource: 'status', template: 'phase: Failed', type: 'merge' },
    { root: 'metadata', template: '- { op: add, path: /labels/x, value: {{ .metadata.name }} }', type: 'json' },
    { template: 'spec: {}' },
  ]
  const effects = stage('a', { next: { patches, delete: true } }).steps.flatMap((step) => effectsOf(step, pod(), functions))
  assert.deepEqual(effects, [
    { type: 'patch', patchType: 'merge', subresource: 'status', body: { status: { phase: 'Failed' } } },
    { type: 'patch', patchType: 'json', subresource: undefined, body: [{ op: 'add', path: '/metadata/labels/x', value: 'a' }] },
    { type: 'patch', patchType: 'strategic', subresource: undefined, body: { spec: {} } },
    { type: 'delete' },
  ])
})

const refused: readonly (readonly [string, Partial<StageSpec>, RegExp])[] = [
  ['another kind', { resourceRef: { apiGroup: 'apps/v1', kind: 'Deployment' } }, /apps\/v1 Deployment is not supported/],
  ['values for Exists', { selector: { matchExpressions: [{ key: '.a', operator: 'Exists', values: ['x'] }] } }, /takes no values/],
  ['no values for In', { selector: { matchExpressions: [{ key: '.a', operator: 'In' }] } }, /takes values/],
  ['nothing to select by', { selector: { matchExpressions: [{}] } }, /one of key, jq and cel/],
  ['more of jq', { selector: { matchExpressions: [{ key: '.a | length', operator: 'Exists' }] } }, /"length" is not supported/],
  ['bad CEL', { selector: { matchExpressions: [{ cel: { expression: 'self.' } }] } }, /cel: /],
  ['apply', { steps: [{ apply: {} }] }, /apply is not supported/],
  ['impersonation', { steps: [{ patch: { impersonation: { username: 'x' } } }] }, /impersonation is not supported/],
  ['a patch type', { steps: [{ patch: { type: 'apply' } }] }, /patch type "apply"/],
]
for (const [name, spec, message] of refused)
  test(`X2 an invalid Stage is refused by name: ${name}`, () =>
    assert.throws(
      () => stage('odd', spec),
      (error: Error) => error.message.startsWith('Stage "odd": ') && message.test(error.message),
    ))

test('X2 a file of Stages that holds something else is refused', () =>
  assert.throws(() => parseStages('apiVersion: v1\nkind: Pod'), /expected a Stage of kwok.x-k8s.io\/v1alpha1, found kind "Pod"/))
