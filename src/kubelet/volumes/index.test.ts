import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { volumePlugins } from './index.ts'

test('every volume type of the folder is in the list, under a name of its own', async () => {
  const files = (await readdir(import.meta.dirname)).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  const texts = await Promise.all(files.map((name) => readFile(`${import.meta.dirname}/${name}`, 'utf8')))
  const plugins = texts.filter((text) => /^export const \w+: VolumePlugin = /m.test(text))
  assert.equal(volumePlugins.length, plugins.length)
  assert.equal(new Set(volumePlugins.map((plugin) => plugin.name)).size, volumePlugins.length)
})

test('each volume is somebody’s, and only one’s', () => {
  const own = [{ emptyDir: {} }, { hostPath: { path: '/' } }, { configMap: {} }, { secret: {} }, { downwardAPI: {} }, { projected: {} }]
  const persistent = [{ hostPath: { path: '/' } }, { local: { path: '/' } }]
  const volumes = [
    ...own.map((source) => ({ volume: { name: 'v', ...source } })),
    ...persistent.map((source) => ({ persistentVolume: { apiVersion: 'v1', kind: 'PersistentVolume', metadata: {}, spec: source, status: {} } as const })),
  ]
  for (const source of volumes)
    assert.equal(volumePlugins.filter((plugin) => plugin.supports({ name: 'v', readOnly: false, ...source })).length, 1, JSON.stringify(source))
})
