/**
 * The budget for what a client sizes: for every kind and every numeric, list, map and string field, values at the edge of what validation allows, up to
 * what a request may carry, as an account with the role edit where that is enough. No turn of the event loop of the server is longer than 250 ms, nothing
 * stays in memory, and the pod of another account still runs. A share, chosen by a seed, is run with the other tests; `make soak` runs all of it.
 *   SKIFF_SOAK=1          everything
 *   SKIFF_BUDGET_ONLY=…   an expression for `resource field`
 *   SKIFF_BUDGET_SEED=…   another share
 *   SKIFF_BUDGET_FROM=…   leaves out so many of the first ladders of SKIFF_BUDGET_ONLY: continues where another run stopped
 *   SKIFF_BUDGET_COUNT=…  how many fields' ladders a share has
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Chance } from '../fuzz/chance.ts'
import { type BudgetCluster, budgetNamespace, startBudgetCluster } from './clusterProcess.ts'
import { type Ladder, laddersOf } from './edges.ts'
import { type BudgetField, budgetKinds, fieldsOf } from './fields.ts'
import { type Measurement, measure, type Target, targetOf } from './measure.ts'

const longestTurnMs = 250
const mostGrowth = 64 * 1024 * 1024
const shareCount = Number(process.env.SKIFF_BUDGET_COUNT ?? 40)
/** Fields of every share: a turn was longer than the budget once. */
const failedOnce = new Set([
  'pods spec.containers[].resources.limits exponent',
  'pods spec.containers[].resources.limits digits and a letter',
  'pods spec.tolerations many',
  'nodes spec.podCIDRs many, the same',
  'pods spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution many, the same',
  'pods spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution many',
  'pods spec.ephemeralContainers[].restartPolicy long',
  'pods spec.containers[].resources.claims many',
  'services spec.selector many',
  'configmaps data many',
  'clusterroles aggregationRule.clusterRoleSelectors many, the same',
])
const isSoak = process.env.SKIFF_SOAK === '1'
const only = process.env.SKIFF_BUDGET_ONLY ? new RegExp(process.env.SKIFF_BUDGET_ONLY) : undefined
const isVerbose = process.env.SKIFF_BUDGET_VERBOSE === '1'
const isDistinct = process.env.SKIFF_BUDGET_ALL !== '1'
const from = Number(process.env.SKIFF_BUDGET_FROM ?? 0)
const seed = Number(process.env.SKIFF_BUDGET_SEED ?? 17)

interface Trial {
  readonly field: BudgetField
  readonly ladder: Ladder
}

function plan(): { readonly all: Trial[]; readonly chosen: Trial[]; readonly kinds: number; readonly fields: number } {
  const kinds = budgetKinds()
  const fields = kinds.flatMap(fieldsOf).filter(({ schema }) => schema.type !== 'boolean')
  const all = fields.flatMap((field) => laddersOf(field.schema, field.name.split('.').at(-1) ?? '').map((ladder) => ({ field, ladder })))
  const wanted = only ? all.filter(({ field, ladder }) => only.test(`${field.kind.resource} ${field.name} ${ladder.name}`)) : all
  return {
    all,
    chosen: isSoak ? wanted : only ? shuffled(isDistinct ? firstOfEach(wanted) : wanted).slice(from) : share(wanted),
    kinds: kinds.length,
    fields: fields.length,
  }
}

function share(trials: readonly Trial[]): Trial[] {
  const again = trials.filter(({ field, ladder }) => failedOnce.has(`${field.kind.resource} ${field.name} ${ladder.name}`))
  assert.equal(again.length, failedOnce.size)
  // A tenant writes the kinds of a namespace; those of the cluster are left to the soak.
  return [...again, ...shuffled(firstOfEach(trials.filter(({ field }) => field.kind.isNamespaced))).slice(0, shareCount)]
}

/** One field of each definition: the others of that definition are read by the same code. */
function firstOfEach(trials: readonly Trial[]): Trial[] {
  const first = new Map<string, BudgetField>()
  return trials.filter(({ field }) => {
    const known = first.get(field.origin) ?? field
    first.set(field.origin, known)
    return known === field
  })
}

function shuffled<T>(items: readonly T[]): T[] {
  const chance = new Chance(seed)
  const rest = [...items]
  for (let at = rest.length - 1; at > 0; at--) {
    const other = chance.int(at + 1)
    ;[rest[at], rest[other]] = [rest[other] as T, rest[at] as T]
  }
  return rest
}

test('API-02 no field of any kind takes more than its budget of time and memory', {
  timeout: isSoak || only ? 24 * 3600_000 : 280_000,
}, async (t) => {
  const { all, chosen, kinds, fields } = plan()
  const values = all.reduce((sum, { ladder }) => sum + ladder.steps.length, 0)
  t.diagnostic(`${kinds} kinds, ${fields} fields, ${all.length} ladders, ${values} values`)
  const cluster = await startBudgetCluster()
  t.after(() => cluster.kill())
  const targets = new Map<string, Target>()
  for (const { field } of chosen.slice(0, 50)) await targetFor(cluster, targets, field)
  await fillHistories(cluster)
  const before = await cluster.heldBytes()
  const found: Measurement[] = []
  let requests = 0
  let accepted = 0
  let done = 0
  for (const { field, ladder } of chosen) {
    if (isVerbose) process.stderr.write(`${field.kind.resource} ${field.name} ${ladder.name}\n`)
    const measured = await inTime(
      measure(cluster, await targetFor(cluster, targets, field), field, ladder),
      `${field.kind.resource} ${field.name} ${ladder.name}`,
    )
    done++
    requests += measured.requests
    if (measured.accepted !== undefined) accepted++
    if (isVerbose) process.stderr.write(`${JSON.stringify(measured)}\n`)
    if (measured.turnMs > longestTurnMs) found.push(measured)
  }
  t.diagnostic(`${done} ladders sent in ${requests} requests; of ${accepted} a step was accepted`)
  await innocentPodRuns(cluster)
  const growth = (await cluster.heldBytes()) - before
  t.diagnostic(`memory held: ${Math.round(before / 1024 / 1024)} MiB before, ${Math.round(growth / 1024 / 1024)} MiB more after`)
  await cluster.stop()
  assert.deepEqual(found, [])
  // Refused objects prove nothing about what comes after validation.
  if (!only) assert.ok(accepted >= done / 4, `of ${done} ladders a step was accepted for ${accepted}`)
  assert.ok(growth < mostGrowth, `${growth} bytes stay in memory`)
})

const ladderTakesAtMostMs = 180_000

/** A turn without an end is a finding: the run stops at it, and says which value it was. */
async function inTime<T>(work: Promise<T>, name: string): Promise<T> {
  const timer = new AbortController()
  const late = delay(ladderTakesAtMostMs, undefined, { signal: timer.signal }).then(() => assert.fail(`the cluster does not answer after ${name}`))
  try {
    return await Promise.race([work, late])
  } finally {
    timer.abort()
    late.catch(() => undefined)
  }
}

async function targetFor(cluster: BudgetCluster, targets: Map<string, Target>, { kind }: BudgetField): Promise<Target> {
  const key = `${kind.group}/${kind.version}/${kind.resource}`
  const known = targets.get(key) ?? (await targetOf(cluster, kind))
  targets.set(key, known)
  return known
}

const fillingWrites = 32

/** Histories of a fixed size fill up with the first large objects and stay full: that is no growth. */
async function fillHistories(cluster: BudgetCluster): Promise<void> {
  const path = `/api/v1/namespaces/${budgetNamespace}/configmaps`
  for (let write = 0; write < fillingWrites; write++) {
    const { status, text } = await cluster.send('edit', 'POST', path, { metadata: { name: `filling-${write}` }, data: { text: 'x'.repeat(1_000_000) } })
    assert.equal(status, 201, text)
    await cluster.send('edit', 'DELETE', `${path}/filling-${write}`)
  }
}

const runsWithinMs = 60_000

/** The scheduler and the kubelets still work: a new pod is scheduled and runs. */
async function innocentPodRuns(cluster: BudgetCluster): Promise<void> {
  const path = `/api/v1/namespaces/${budgetNamespace}/pods`
  const pod = { metadata: { name: 'innocent' }, spec: { containers: [{ name: 'c', image: 'x' }], terminationGracePeriodSeconds: 0 } }
  const { status, text } = await cluster.send('edit', 'POST', path, pod)
  assert.equal(status, 201, text)
  const deadline = performance.now() + runsWithinMs
  const table = 'pods/innocent/status'
  for (;;) {
    const answer = await cluster.send('root', 'GET', `${path}?fieldSelector=metadata.name%3Dinnocent%2Cstatus.phase%3DRunning&resourceVersion=0`)
    if (answer.text.includes('"name":"innocent"')) break
    assert.ok(performance.now() < deadline, `${table} is not Running: ${answer.text}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await cluster.send('edit', 'DELETE', `${path}/innocent`, { gracePeriodSeconds: 0 })
}
