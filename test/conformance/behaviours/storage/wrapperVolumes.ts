/** Volumes made of several mounts, many at once. Upstream: test/e2e/storage/empty_dir_wrapper.go. */
import assert from 'node:assert/strict'
import { configMaps, secrets } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'

const configMapCount = 50
const podCount = 5

export const wrapperVolumes: BehaviourGroup = {
  sig: 'sig-storage',
  title: 'Wrapper volumes',
  rows: ['STO-03', 'KUB-11'],
  behaviours: [
    {
      name: 'Secret and ConfigMap volumes together',
      run: async ({ create, outputOf }) => {
        await create(secrets, { metadata: { name: 'keys' }, stringData: { key: 'of-secret' } })
        await create(configMaps, { metadata: { name: 'settings' }, data: { key: 'of-config-map' } })
        const volumes = [
          { name: 'secret', secret: { secretName: 'keys' } },
          { name: 'config', configMap: { name: 'settings' } },
        ]
        const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }))
        assert.equal(
          await outputOf({ script: 'cat /secret/key; echo; cat /config/key', container: { volumeMounts }, spec: { volumes } }),
          'of-secret\nof-config-map',
        )
      },
    },
    {
      name: '50 ConfigMap volumes × 5 pods without race',
      run: async ({ create, outputOf }) => {
        const names = Array.from({ length: configMapCount }, (_, index) => `many-${index}`)
        await Promise.all(names.map((name) => create(configMaps, { metadata: { name }, data: { key: `${name};` } })))
        const volumes = names.map((name) => ({ name, configMap: { name } }))
        const volumeMounts = names.map((name) => ({ name, mountPath: `/files/${name}` }))
        const script = 'for f in /files/*/key; do cat $f; done | tr ";" "\\n" | sort -u | wc -l'
        const outputs = await Promise.all(Array.from({ length: podCount }, () => outputOf({ script, container: { volumeMounts }, spec: { volumes } })))
        assert.deepEqual(outputs, Array(podCount).fill(String(configMapCount)))
      },
    },
  ],
}
