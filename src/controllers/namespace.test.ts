/** What explains that something is still there while its namespace goes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import type { KubeObject } from '#api/machinery/meta'
import { configMaps, pods } from '#client/builtIn'
import { isUnexplained } from './namespace.ts'

const held = { metadata: { name: 'h', finalizers: ['example.com/hold'] } } as KubeObject
const plain = { metadata: { name: 'p' } } as KubeObject
const pod = (phase: string, terminationGracePeriodSeconds: number) =>
  ({ metadata: { name: 'p' }, spec: { containers: [], terminationGracePeriodSeconds }, status: { phase } }) as unknown as Pod

test('CTL-10 finalizers and grace periods explain what is left, nothing else does', () => {
  assert.equal(isUnexplained(configMaps, [plain]), true)
  assert.equal(isUnexplained(configMaps, [plain, held]), false)
  assert.equal(isUnexplained(pods, [pod('Running', 30)]), false)
  assert.equal(isUnexplained(pods, [pod('Running', 0)]), true)
  assert.equal(isUnexplained(pods, [pod('Succeeded', 30)]), true)
})
