/** One file or folder of a volume instead of all of it. Upstream: test/e2e/storage/subpath.go. */
import assert from 'node:assert/strict'
import type { Volume } from '#api/gen/types/core.v1'
import { configMaps, secrets } from '#client/builtIn'
import { type BehaviourGroup, table } from '../behaviour.ts'

const sources: readonly { readonly name: string; readonly volume: Omit<Volume, 'name'>; readonly content: string; readonly at?: string }[] = [
  { name: 'configmap', volume: { configMap: { name: 'source' } }, content: 'of the config map' },
  { name: 'configmap onto existing file', volume: { configMap: { name: 'source' } }, content: 'of the config map', at: '/etc/passwd' },
  {
    name: 'downward API',
    volume: { downwardAPI: { items: [{ path: 'file', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }] } },
    content: 'sub-path',
  },
  { name: 'projected', volume: { projected: { sources: [{ configMap: { name: 'source' } }] } }, content: 'of the config map' },
  { name: 'secret', volume: { secret: { secretName: 'source' } }, content: 'of the secret' },
]

export const subPath: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'subPath',
  rows: ['KUB-11'],
  behaviours: table(sources, ({ name, volume, content, at = '/mounted/file' }) => ({
    name,
    run: async ({ create, outputOf }) => {
      await create(configMaps, { metadata: { name: 'source' }, data: { file: 'of the config map', other: 'not mounted' } })
      await create(secrets, { metadata: { name: 'source' }, stringData: { file: 'of the secret' } })
      const container = { volumeMounts: [{ name: 'source', mountPath: at, subPath: 'file' }] }
      const output = await outputOf({ name: 'sub-path', script: `cat ${at}`, container, spec: { volumes: [{ name: 'source', ...volume }] } })
      assert.equal(output, content)
    },
  })),
}
