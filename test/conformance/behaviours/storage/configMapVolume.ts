/** A ConfigMap as files. Upstream: test/e2e/common/storage/configmap_volume.go. */
import assert from 'node:assert/strict'
import { configMaps } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { optionalReflected, reads, type Source, severalMounts, updateReflected, volumeOf } from './fileSources.ts'

const source: Source = { kind: 'configMap', projected: false }

export const configMapVolume: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'ConfigMap volume',
  rows: ['STO-03'],
  behaviours: [
    {
      name: 'binary data',
      run: async (context) => {
        const bytes = Buffer.from([0xde, 0xca, 0xfe, 0xba, 0xd0, 0xfe, 0xff, 0x00])
        await context.create(configMaps, { metadata: { name: 'source' }, data: { text: 'plain' }, binaryData: { bytes: bytes.toString('base64') } })
        const script = 'cat /files/text; echo; od -A n -t x1 /files/bytes'
        const output = await context.outputOf({
          script,
          container: { volumeMounts: [{ name: 'files', mountPath: '/files' }] },
          spec: { volumes: [volumeOf(source, 'source')] },
        })
        assert.equal(output.replace(/\s+/g, ' ').trim(), 'plain de ca fe ba d0 fe ff 00')
      },
    },
    optionalReflected(source, 'optional create/update/delete reflected'),
    reads(source, 'plain'),
    reads(source, 'nonRoot'),
    reads(source, 'defaultMode'),
    reads(source, 'mapped'),
    reads(source, 'mappedMode'),
    reads(source, 'mappedNonRoot'),
    severalMounts(source),
    updateReflected(source),
  ],
}
