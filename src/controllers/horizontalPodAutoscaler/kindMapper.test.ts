import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { DiscoveredResource, Discovery } from '#client/discovery/discovery'
import { createKindMapper } from './kindMapper.ts'

const resourceOf = (version: string, resource: string) => ({ group: 'g', version, resource, kind: 'K' }) as DiscoveredResource
const { signal } = new AbortController()

function discoveryOf(resources: readonly DiscoveredResource[]) {
  let remembered = false
  const state = { asked: 0, resources }
  const discovery: Discovery = {
    resources: async () => {
      if (!remembered) state.asked++
      remembered = true
      return { resources: state.resources, failed: new Map() }
    },
    remembers: () => remembered,
    invalidate: () => {
      remembered = false
    },
  }
  return { state, discovery }
}

test('AUT-01 a kind is found in any version, the preferred one first, once for each resource', async () => {
  const { discovery } = discoveryOf([resourceOf('v2', 'ks'), resourceOf('v1', 'ks'), resourceOf('v1', 'others')])
  const found = await createKindMapper(discovery, new VirtualClock()).resourcesOf('g', 'K', signal)
  assert.deepEqual(
    found.map(({ version, resource }) => `${version} ${resource}`),
    ['v2 ks', 'v1 others'],
  )
})

test('AUT-01 an unknown kind asks for discovery at most once in ten seconds', async () => {
  const clock = new VirtualClock()
  const { discovery, state } = discoveryOf([])
  const mapper = createKindMapper(discovery, clock)
  const refused = () => assert.rejects(mapper.resourcesOf('g', 'K', signal), new Error('no matches for kind "K" in group "g"'))
  for (let i = 0; i < 100; i++) await refused()
  assert.equal(state.asked, 1)
  await clock.advance(10_000)
  for (let i = 0; i < 100; i++) await refused()
  assert.equal(state.asked, 2)
  state.resources = [resourceOf('v1', 'ks')]
  await clock.advance(10_000)
  assert.equal((await mapper.resourcesOf('g', 'K', signal)).length, 1)
})
