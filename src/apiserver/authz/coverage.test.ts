import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PolicyRule } from '#api/gen/types/rbac.v1'
import { type Random, seededRandom } from '#base/random'
import { coverage, RulesTooComplex, uncovered } from './coverage.ts'

const text = (rules: readonly PolicyRule[]) => rules.map((rule) => JSON.stringify(rule, Object.keys(rule).sort())).sort()

/** The definition: every single permission of the product, against every rule. */
function expanded(held: readonly PolicyRule[], wanted: readonly PolicyRule[]): PolicyRule[] {
  return wanted.flatMap(singles).filter((one) => !held.some((rule) => covers(rule, one)))
}

function singles({ verbs, apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] }: PolicyRule): PolicyRule[] {
  const named = resourceNames.length > 0 ? resourceNames.map((name) => ({ resourceNames: [name] })) : [{}]
  return verbs.flatMap((verb) => [
    ...apiGroups.flatMap((group) =>
      resources.flatMap((resource) => named.map((names) => ({ apiGroups: [group], resources: [resource], ...names, verbs: [verb] }))),
    ),
    ...nonResourceURLs.map((url) => ({ nonResourceURLs: [url], verbs: [verb] })),
  ])
}

function covers(rule: PolicyRule, one: PolicyRule): boolean {
  const has = (list: readonly string[] | undefined, value: string | undefined) =>
    value === undefined || (list ?? []).some((own) => own === '*' || own === value)
  const [resource] = one.resources ?? []
  const [url] = one.nonResourceURLs ?? []
  const [name] = one.resourceNames ?? []
  const slash = resource?.indexOf('/') ?? -1
  return (
    has(rule.verbs, one.verbs[0]) &&
    has(rule.apiGroups, one.apiGroups?.[0]) &&
    (has(rule.resources, resource) || (slash >= 0 && (rule.resources ?? []).includes(`*${resource?.slice(slash)}`))) &&
    (url === undefined || (rule.nonResourceURLs ?? []).some((own) => own === url || (own.endsWith('*') && url.startsWith(own.replace(/\*+$/, ''))))) &&
    ((rule.resourceNames ?? []).length === 0 || (name !== undefined && (rule.resourceNames ?? []).includes(name)))
  )
}

const choices = {
  verbs: ['get', 'list', 'watch', '*'],
  apiGroups: ['', 'apps', '*'],
  resources: ['pods', 'pods/log', 'nodes/log', '*/log', 'a/b/c', '*/b/c', '*'],
  resourceNames: ['x', 'y', ''],
  nonResourceURLs: ['/', '/a', '/a/b', '/a/*', '/a**', '*'],
}

function someOf(random: Random, values: readonly string[], least: number): string[] {
  const count = least + Math.floor(random.next() * 3)
  return Array.from({ length: count }, () => values[Math.floor(random.next() * values.length)] as string)
}

function randomRule(random: Random): PolicyRule {
  const verbs = someOf(random, choices.verbs, 1)
  const urls = random.next() < 0.2
  if (urls) return { verbs, nonResourceURLs: someOf(random, choices.nonResourceURLs, 1) }
  const rule: PolicyRule = { verbs, apiGroups: someOf(random, choices.apiGroups, 1), resources: someOf(random, choices.resources, 1) }
  return random.next() < 0.5 ? rule : { ...rule, resourceNames: someOf(random, choices.resourceNames, 1) }
}

test('AUZ-01 coverage finds the same missing permissions as the expansion, 4,000 random sets of rules', () => {
  const random = seededRandom(7)
  const rules = (most: number) => Array.from({ length: Math.floor(random.next() * most) }, () => randomRule(random))
  let covered = 0
  for (let round = 0; round < 4_000; round++) {
    const held = rules(round % 2 === 0 ? 6 : 40)
    const wanted = rules(4)
    const want = text(expanded(held, wanted))
    if (want.length === 0) covered++
    assert.deepEqual(text(uncovered(held, wanted)), want, JSON.stringify({ held, wanted }))
  }
  // Both outcomes are common, so that neither a constant yes nor a constant no passes.
  assert.ok(covered > 800 && covered < 3_200, `${covered} covered`)
})

const many = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`)
const product = (count: number): PolicyRule => ({
  verbs: many('v', count),
  apiGroups: many('g', count),
  resources: many('r', count),
  resourceNames: many('n', count),
})

test('AUZ-01 coverage compares a product of 60 to the power of four, with one rule per verb', () => {
  const held = product(60).verbs.map((verb) => ({ ...product(60), verbs: [verb] }))
  assert.deepEqual(uncovered(held, [product(60)]), [])
  const one = { verbs: ['v3'], apiGroups: ['g4'], resources: ['r5'], resourceNames: ['n6'] }
  const allButOne = held.flatMap((rule) =>
    rule.verbs[0] === 'v3'
      ? [
          { ...rule, apiGroups: (rule.apiGroups ?? []).filter((name) => name !== 'g4') },
          { ...rule, resources: (rule.resources ?? []).filter((name) => name !== 'r5') },
          { ...rule, resourceNames: (rule.resourceNames ?? []).filter((name) => name !== 'n6') },
        ]
      : [rule],
  )
  assert.deepEqual(uncovered(allButOne, [product(60)]), [one])
})

test('AUZ-01 coverage lists a bounded number of a million million missing permissions', async () => {
  const { missing, isCutShort } = await coverage([{ ...product(1), verbs: ['*'] }], [product(1_000)])
  assert.equal(isCutShort, true)
  assert.ok(missing.length > 0 && missing.length <= 10_000)
  const long = 'x'.repeat(100_000)
  const ofLongNames = await coverage([], [{ ...product(60), resources: many(long, 60) }])
  assert.ok(ofLongNames.isCutShort && ofLongNames.missing.length < 10)
})

test('AUZ-01 coverage gives up in bounded time when other rules cover each value of every list', async () => {
  const random = seededRandom(11)
  const whole = product(400)
  const most = (list: readonly string[] | undefined) => (list ?? []).filter(() => random.next() < 0.9)
  const held = many('', 24).map(() => ({
    verbs: most(whole.verbs),
    apiGroups: most(whole.apiGroups),
    resources: most(whole.resources),
    resourceNames: most(whole.resourceNames),
  }))
  await assert.rejects(coverage(held, [whole]), RulesTooComplex)
})
