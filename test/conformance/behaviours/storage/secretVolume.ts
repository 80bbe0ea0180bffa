/** A Secret as files. Upstream: test/e2e/common/storage/secrets_volume.go. */
import assert from 'node:assert/strict'
import { namespaces, secrets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { createSource, optionalReflected, reads, type Source, severalMounts, volumeOf } from './fileSources.ts'

const source: Source = { kind: 'secret', projected: false }

export const secretVolume: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Secret volume',
  rows: ['STO-03'],
  behaviours: [
    optionalReflected(source, 'optional changes reflected'),
    {
      name: 'same name in another namespace ignored',
      run: async (context) => {
        const other = context.unique('other')
        await context.client.of(namespaces).create({ metadata: { name: other }, spec: {} })
        context.cleanUp(() => context.client.of(namespaces).delete({ name: other }))
        await context.client.of(secrets).create({ metadata: { name: 'source', namespace: other }, stringData: { 'data-1': 'of the other namespace' } })
        await createSource(context, source, 'source', { 'data-1': 'value-1' })
        const output = await context.outputOf({
          script: 'cat /files/data-1',
          container: { volumeMounts: [{ name: 'files', mountPath: '/files' }] },
          spec: { volumes: [volumeOf(source, 'source')] },
        })
        assert.equal(output, 'value-1')
      },
    },
    reads(source, 'plain'),
    reads(source, 'nonRootWithGroup'),
    reads(source, 'defaultMode'),
    reads(source, 'mapped'),
    reads(source, 'mappedMode'),
    severalMounts(source),
  ],
}
