/** Definitions that cannot be served for a while. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import { createMemoryStore } from '#store/drivers/memory'
import { startTestApiServer } from '#testing/apiServer'
import { changedStore } from '#testing/changedStore'
import { crdPath, definition, group, plain, version } from './support.ts'

test('CRD-01 a definition that cannot be served is tried once a second, however many requests ask for it, and is served then', async () => {
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  const clock = new VirtualClock('2026-01-01T00:00:00Z', settle)
  const memory = createMemoryStore({ clock })
  const state = { isBroken: true, tries: 0 }
  const store = changedStore(memory, {
    async range(from, ...rest) {
      if (!from.startsWith(`/registry/${group}/widgets/`)) return memory.range(from, ...rest)
      state.tries++
      if (state.isBroken) throw new Error('the disk is broken')
      return memory.range(from, ...rest)
    },
  })
  const api = await startTestApiServer({ store, clock })
  const { request, isGone } = plain(api.client)
  const pass = async (ms: number) => {
    await clock.advance(ms)
    for (let turn = 0; turn < 30; turn++) await settle()
  }
  await request('POST', crdPath, definition('widgets', 'Widget', [version('v1', { type: 'object' })]))
  const widgets = `/apis/${group}/v1/namespaces/default/widgets`
  for (let asked = 0; asked < 50; asked++) assert.equal(await isGone(widgets), true)
  const first = state.tries
  assert.ok(first <= 3, `${first} tries`)
  for (let second = 0; second < 5; second++) await pass(1_000)
  assert.ok(state.tries > first && state.tries <= first + 6, `${state.tries} tries after ${first}`)
  state.isBroken = false
  await pass(1_000)
  assert.deepEqual((await request('GET', widgets)).items, [])
  await api.close()
})
