/** Texts of a megabyte that make patterns go back again and again: what reads them takes time in proportion to their length. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategyFor } from '#api/kinds/index'
import { isCaBundle } from '#api/kinds/webhookClientConfig'
import { parseDuration } from '#api/machinery/duration'
import { FieldPath } from '#api/machinery/fieldPath'
import { compileJsonPath } from '#api/machinery/jsonPath'
import type { KubeObject } from '#api/machinery/meta'
import { linkRewriter } from '#apiserver/backends/links'
import { seededRandom } from '#base/random'

const length = 1_000_000
const mostMs = 250

function validated(group: string, object: { kind: string; [field: string]: unknown }): void {
  const obj = { metadata: { name: 'x' }, ...object } as unknown as KubeObject
  const context = { nowMs: 0, random: seededRandom(1), user: { name: 'u', groups: [] } }
  strategyFor(group, object.kind)?.validate?.({ obj, path: FieldPath.of(), context })
}

const volume = (path: string) => ({
  ...{ kind: 'PersistentVolume', apiVersion: 'v1' },
  spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], persistentVolumeReclaimPolicy: 'Recycle', hostPath: { path } },
})

const cases: readonly (readonly [string, () => unknown])[] = [
  ['API-16 the path of a recycled volume', () => validated('', volume(`${'/.'.repeat(length / 2)}x`))],
  [
    'API-16 the authorities of an API service',
    () => {
      const caBundle = `${'='.repeat(length)}x`
      validated('apiregistration.k8s.io', {
        ...{ kind: 'APIService', metadata: { name: 'v1.x.dev' } },
        spec: { group: 'x.dev', version: 'v1', caBundle, groupPriorityMinimum: 1, versionPriority: 1, service: { name: 's', namespace: 'd' } },
      })
    },
  ],
  ['API-16 the authorities of a webhook', () => isCaBundle(Buffer.from(`-----BEGIN CERTIFICATE-----${' '.repeat(length)}!`).toString('base64'))],
  ['API-16 a duration', () => parseDuration('0'.repeat(length))],
  ['API-16 a path of a column', () => compileJsonPath(`{.items[?(@.a${' '.repeat(length)}b)]}`)],
  [
    'API-16 attributes of a page that a backend serves',
    () => linkRewriter({ prefix: '/p', backendHost: 'b', requestHost: 'r' }).write(Buffer.from(`<a ${'a'.repeat(60_000)}>`)),
  ],
]

for (const [name, work] of cases) {
  test(`${name} of ${length} characters is read within ${mostMs} ms`, () => {
    const times = [1, 2, 3].map(() => {
      const before = process.cpuUsage()
      try {
        work()
      } catch (error) {
        assert.ok(error instanceof Error)
      }
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1000
    })
    assert.ok(Math.min(...times) < mostMs, `${times.join(', ')} ms`)
  })
}
