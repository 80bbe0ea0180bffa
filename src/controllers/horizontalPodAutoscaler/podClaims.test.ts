import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { parseLabelSelector } from '#api/machinery/labelSelector'
import type { Frozen } from '#api/machinery/meta'
import { createPodClaims, mostClaimants } from './podClaims.ts'

const podWith = (labels: Record<string, string>) => ({ metadata: { name: 'p', namespace: 'd', labels } }) as unknown as Frozen<Pod>

function claimsOf(selectors: Readonly<Record<string, string>>) {
  const claims = createPodClaims()
  for (const [key, text] of Object.entries(selectors)) {
    claims.add(key)
    claims.set(key, parseLabelSelector(text))
  }
  return claims
}

test('AUT-01 an autoscaler claims the pods that its selector matches, whatever the form of the selector', () => {
  const claims = claimsOf({ 'd/equal': 'app=a', 'd/in': 'app in (a)', 'd/several': 'app in (a,b)', 'd/exists': 'app', 'd/other': 'app=b', 'e/equal': 'app=a' })
  assert.deepEqual(claims.claimants('d', [podWith({ app: 'a' })]), ['d/equal', 'd/exists', 'd/in', 'd/several'])
  claims.remove('d/in')
  claims.set('d/equal', parseLabelSelector('app!=a'))
  assert.deepEqual(claims.claimants('d', [podWith({ app: 'a' }), podWith({ app: 'a' })]), ['d/exists', 'd/several'])
  assert.equal(claims.size, 5)
})

test('AUT-01 of 10,000 autoscalers of the same pods a message names few, and 10,000 others are not looked at', () => {
  let matched = 0
  const counted = (text: string) => {
    const selector = parseLabelSelector(text)
    const matches = (labels: Parameters<typeof selector.matches>[0]) => ++matched > 0 && selector.matches(labels)
    return { requirements: selector.requirements, isEmpty: false, matches, toString: () => text }
  }
  const claims = createPodClaims()
  for (let at = 0; at < 10_000; at++)
    for (const [name, text] of [
      ['same', 'app=a'],
      ['other', `app=${at}`],
    ] as const) {
      claims.add(`d/${name}-${at}`)
      claims.set(`d/${name}-${at}`, counted(text))
    }
  assert.equal(claims.claimants('d', [podWith({ app: 'a' })]).length, mostClaimants)
  assert.equal(matched, mostClaimants)
})
