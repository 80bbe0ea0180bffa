import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandError } from '../exitCodes.ts'
import { podsOf, readLoadPlan } from './loadPlan.ts'

const whole = `
name: big
namespaces: 4
seed: 7
createRate: 30/m
fillTimeout: 5m
deployments:
  - { name: web, count: 10, replicas: 5-20, template: { spec: { schedulerName: mine, containers: [{ name: a, image: b }] } } }
  - { name: batch, count: 2, autoscaler: { min: 2, max: 50, cpuPercent: 60 } }
churn: { for: 90s, scale: 2/s, deletePod: 0.5, nodeFlap: 6/m, nodeDown: 40s }
`

test('ARC-13 a load file gives rates a second, ranges and durations, and the rest has defaults', () => {
  const plan = readLoadPlan('load.yaml', whole)
  const { deployments, ...rest } = plan
  assert.deepEqual(rest, {
    name: 'big',
    namespaces: 4,
    seed: 7,
    createRate: 0.5,
    fillTimeoutMs: 300_000,
    churn: { durationMs: 90_000, rates: { scale: 2, deletePod: 0.5, nodeFlap: 0.1 }, nodeDownMs: 40_000 },
  })
  assert.deepEqual(deployments[0]?.replicas, { least: 5, most: 20 })
  assert.equal(deployments[0]?.template.spec?.schedulerName, 'mine')
  assert.deepEqual(deployments[1]?.autoscaler, { min: 2, max: 50, cpuPercent: 60 })
  assert.equal(podsOf(plan), 10 * 20 + 2 * 50)
  const small = readLoadPlan('load.yaml', 'deployments: [{}]')
  assert.deepEqual([small.name, small.namespaces, small.createRate, small.churn.durationMs], ['load', 1, undefined, 0])
  assert.equal(small.deployments[0]?.template.spec?.containers.length, 1)
})

for (const [text, message] of [
  ['- a', /load\.yaml: the file: expected a map$/],
  ['a: [', /load\.yaml: /],
  ['{}', /deployments: expected a list with at least one entry$/],
  ['deployments: 3', /deployments: expected a list$/],
  ['deployments: [3]', /deployments\[0\]: expected a map$/],
  ['deployment: []', /deployment: unknown; the fields are name, namespaces, seed, deployments/],
  ['deployments: [{count: 0}]', /deployments\[0\]\.count: expected a whole number from 1 to 20000$/],
  ['deployments: [{count: 1e9}]', /deployments\[0\]\.count: expected a whole number/],
  ['deployments: [{replicas: 9-3}]', /replicas: expected a whole number from 0 to 100000, or two of them, such as 10-40$/],
  ['deployments: [{replicas: .nan}]', /replicas: expected/],
  ['deployments: [{count: 20000, replicas: 26}]', /520000 pods are more than 500000$/],
  ['deployments: [{}, {}]', /two entries have the name "web"$/],
  ['deployments: [{name: Web}]', /deployments\[0\]\.name: a lowercase RFC 1123 label/],
  [`deployments: [{name: ${'a'.repeat(41)}}]`, /name: expected at most 40 characters$/],
  ['deployments: [{autoscaler: {min: 5, max: 4}}]', /autoscaler\.max: expected at least min, 5$/],
  ['deployments: [{template: 3}]', /template: expected a map$/],
  ['{deployments: [{}], churn: {for: 1s}}', /churn\.for: expected a rate beside it: scale, rollOut, deletePod, nodeFlap$/],
  ['{deployments: [{}], churn: {scale: 1}}', /churn\.for: expected how long, such as 60s$/],
  ['{deployments: [{}], churn: {for: 1s, scale: 2000}}', /churn\.scale: expected a rate of at most 1000\/s, such as 2\/s or 30\/m$/],
  ['{deployments: [{}], churn: {for: 1s, scale: 0}}', /churn\.scale: expected a rate/],
  ['{deployments: [{}], churn: {for: 90, scale: 1}}', /churn\.for: expected a duration of at most 24h/],
  ['{deployments: [{}], churn: {for: 25h, scale: 1}}', /churn\.for: expected a duration of at most 24h/],
  ['{deployments: [{}], churn: {for: 1s, scal: 1, scale: 1}}', /churn\.scal: unknown/],
] as const) {
  test(`ARC-13 a load file is refused: ${text.slice(0, 60)}`, () => {
    assert.throws(
      () => readLoadPlan('load.yaml', text),
      (error) => error instanceof CommandError && error.exit === 'usage' && message.test(error.message),
    )
  })
}
