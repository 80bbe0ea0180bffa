/** ADM-01: how long plugins took, by upstream's names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Metrics } from '#base/metrics'
import { VirtualClock } from '#base/virtualClock'
import type { AdmissionAttributes, AdmissionPlugin } from './admission.ts'
import { createAdmissionChain } from './chain.ts'

const histogramOf = (lines: string[]): Metrics['histogram'] => {
  const short = (name: string) => name.replace('apiserver_admission_', '').replace('_admission_duration_seconds', '')
  return ({ name, labels }) => ({
    observe: () => assert.fail(),
    series: (given) => {
      assert.deepEqual(Object.keys(given).sort(), [...(labels ?? [])].sort())
      return { observe: (value) => lines.push([short(name), ...(labels ?? []).map((label) => given[label]), value].join(' ')) }
    },
  })
}

const attributesFor = (operation: 'CREATE' | 'DELETE') => ({ operation }) as AdmissionAttributes

function setUp(plugins: (clock: VirtualClock) => readonly AdmissionPlugin[]) {
  const lines: string[] = []
  const clock = new VirtualClock()
  const metrics: Metrics = { counter: () => assert.fail(), gauge: () => assert.fail(), histogram: histogramOf(lines), summary: histogramOf(lines) }
  return { chain: createAdmissionChain(plugins(clock), clock, metrics), lines }
}

const taking =
  (clock: VirtualClock, ms: number, then = (_: AdmissionAttributes) => {}) =>
  async (attributes: AdmissionAttributes) => {
    await clock.advance(ms)
    then(attributes)
  }

test('each plugin of the step and the step itself; not those that have no part in it', async () => {
  const { chain, lines } = setUp((clock) => [
    { name: 'A', handles: () => true, admit: taking(clock, 1000), validate: taking(clock, 500) },
    { name: 'B', handles: (operation) => operation === 'DELETE', admit: taking(clock, 4000) },
    { name: 'C', handles: () => true, admit: taking(clock, 2000) },
  ])
  await chain.admit(attributesFor('CREATE'))
  await chain.validate(attributesFor('CREATE'))
  assert.deepEqual(lines, [
    'controller A admit CREATE false 1',
    'controller C admit CREATE false 2',
    'step admit CREATE false 3',
    'step_summary admit CREATE false 3',
    'controller A validate CREATE false 0.5',
    'step validate CREATE false 0.5',
    'step_summary validate CREATE false 0.5',
  ])
})

test('a refusal ends the step', async () => {
  const refuse = () => {
    throw new Error('no')
  }
  const { chain, lines } = setUp((clock) => [
    { name: 'A', handles: () => true, admit: taking(clock, 1000) },
    { name: 'B', handles: () => true, admit: taking(clock, 2000, refuse) },
    { name: 'C', handles: () => true, admit: taking(clock, 4000) },
  ])
  await assert.rejects(chain.admit(attributesFor('DELETE')), /no/)
  assert.deepEqual(lines, [
    'controller A admit DELETE false 1',
    'controller B admit DELETE true 2',
    'step admit DELETE true 3',
    'step_summary admit DELETE true 3',
  ])
})

test('a second round belongs to the same step, and there is no third', async () => {
  const wantMore = (attributes: AdmissionAttributes) => {
    attributes.reinvocation ??= { wanted: true, isSecondRound: false, kept: new Map() }
  }
  const { chain, lines } = setUp((clock) => [{ name: 'A', handles: () => true, admit: taking(clock, 1000, wantMore), validate: taking(clock, 500) }])
  const attributes = attributesFor('CREATE')
  await chain.admit(attributes)
  await chain.validate(attributes)
  assert.deepEqual(lines, [
    'controller A admit CREATE false 1',
    'controller A admit CREATE false 1',
    'step admit CREATE false 2',
    'step_summary admit CREATE false 2',
    'controller A validate CREATE false 0.5',
    'step validate CREATE false 0.5',
    'step_summary validate CREATE false 0.5',
  ])
})
