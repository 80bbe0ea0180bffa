/** Several sources in one volume, and each of them alone. Upstream: test/e2e/common/storage/projected_*.go. */
import assert from 'node:assert/strict'
import { configMaps, secrets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { optionalReflected, reads, type Source, severalMounts, updateReflected } from './fileSources.ts'

const configMap: Source = { kind: 'configMap', projected: true }
const secret: Source = { kind: 'secret', projected: true }

export const projectedConfigMap: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Projected configMap',
  rows: ['STO-03'],
  behaviours: [
    optionalReflected(configMap, 'optional changes reflected'),
    reads(configMap, 'plain'),
    reads(configMap, 'nonRoot'),
    reads(configMap, 'defaultMode'),
    reads(configMap, 'mapped'),
    reads(configMap, 'mappedMode'),
    reads(configMap, 'mappedNonRoot'),
    severalMounts(configMap),
    updateReflected(configMap),
  ],
}

export const projectedSecret: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Projected secret',
  rows: ['STO-03'],
  behaviours: [
    optionalReflected(secret, 'optional changes reflected'),
    reads(secret, 'plain'),
    reads(secret, 'nonRootWithGroup'),
    reads(secret, 'defaultMode'),
    reads(secret, 'mapped'),
    reads(secret, 'mappedMode'),
    severalMounts(secret),
  ],
}

export const projectedCombined: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Projected volume: combined',
  rows: ['STO-03'],
  behaviours: [
    {
      name: 'secret + configmap + downward API together',
      run: async (context) => {
        await context.create(configMaps, { metadata: { name: 'settings' }, data: { color: 'blue' } })
        await context.create(secrets, { metadata: { name: 'keys' }, stringData: { key: 's3cret' } })
        const sources = [
          { downwardAPI: { items: [{ path: 'podname', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } }] } },
          { secret: { name: 'keys', items: [{ key: 'key', path: 'secret/key' }] } },
          { configMap: { name: 'settings', items: [{ key: 'color', path: 'settings/color' }] } },
        ]
        const output = await context.outputOf({
          name: 'combined',
          script: 'cd /all && for f in podname secret/key settings/color; do cat $f; echo; done',
          container: { volumeMounts: [{ name: 'all', mountPath: '/all' }] },
          spec: { volumes: [{ name: 'all', projected: { sources } }] },
        })
        assert.equal(output, 'combined\ns3cret\nblue')
      },
    },
  ],
}
