/** A plugin from a file, named by a configuration file: the GPU example of the documentation, through the real API server. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { register } from 'tsx/esm/api'
import { pods } from '#client/builtIn'
import { decodeSchedulerConfiguration, schedulerConfigOf } from '#scheduler/config/configuration'
import { loadPluginFiles } from '#scheduler/pluginFiles'
import { startTestApiServer } from '#testing/apiServer'
import { addNode, isBound, isUnschedulable, newNode, newPod, startScheduler, untilPods } from './cluster.ts'

// As a user of an earlier Node starts the scheduler with plugins in TypeScript.
register()
const examples = path.resolve(import.meta.dirname, '../../../docs/examples/scheduler-plugin')

const configuration = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: GpuType
        weight: 10
  pluginConfig:
  - name: skiff.dev/PluginFiles
    args:
      files: [./gpuType.ts]
`

test('SCH-15 the GPU plugin of the documentation, loaded from its file, chooses by type and prefers the exact fit', async () => {
  const decoded = decodeSchedulerConfiguration(configuration)
  const config = schedulerConfigOf(decoded, await loadPluginFiles(decoded.pluginFiles, examples))
  const api = await startTestApiServer()
  const gpuNode = (name: string, type: string, count: string) => {
    const node = newNode(name, { cpu: '32', memory: '64Gi', pods: '110', 'nvidia.com/gpu': count })
    return { ...node, metadata: { name, labels: { 'example.com/gpu-type': type } } }
  }
  await addNode(api.client, gpuNode('a100-8', 'a100', '8'))
  await addNode(api.client, gpuNode('a100-2', 'a100', '2'))
  await addNode(api.client, gpuNode('t4-2', 't4', '2'))
  const scheduler = startScheduler(api.client, config)
  try {
    const gpuPod = (name: string, type: string, count: string) => {
      const pod = newPod(name)
      const resources = { requests: { 'nvidia.com/gpu': count }, limits: { 'nvidia.com/gpu': count } }
      return {
        ...pod,
        metadata: { ...pod.metadata, annotations: { 'example.com/gpu-type': type } },
        spec: { ...pod.spec, containers: [{ name: 'main', image: 'train', resources }] },
      }
    }
    await api.client.of(pods).create(gpuPod('exact', 'a100', '2'))
    const exact = await untilPods(api.client, ['exact'], isBound)
    await api.client.of(pods).create(gpuPod('small', 't4', '1'))
    const small = await untilPods(api.client, ['small'], isBound)
    await api.client.of(pods).create(gpuPod('other', 'h100', '1'))
    const other = await untilPods(api.client, ['other'], isUnschedulable)
    assert.deepEqual([exact.get('exact')?.spec.nodeName, small.get('small')?.spec.nodeName], ['a100-2', 't4-2'])
    const message = other.get('other')?.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? ''
    assert.ok(message.startsWith('0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) had no GPU of type h100.'), message)
  } finally {
    await scheduler.stop()
    await api.close()
  }
})

test('SCH-15 a plugin file that cannot be used is named', async () => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'plugin-files-'))
  try {
    await fs.writeFile(path.join(folder, 'empty.mjs'), 'export const nothing = 1\n')
    await fs.writeFile(path.join(folder, 'broken.mjs'), 'export const =\n')
    await fs.writeFile(path.join(folder, 'one.mjs'), "export const one = { name: 'One', create: () => ({ name: 'One' }) }\n")
    await assert.rejects(loadPluginFiles(['empty.mjs'], folder), /empty\.mjs exports no plugin/)
    await assert.rejects(loadPluginFiles(['broken.mjs'], folder), /broken\.mjs cannot be loaded/)
    await assert.rejects(loadPluginFiles(['missing.mjs'], folder), /missing\.mjs cannot be loaded/)
    await assert.rejects(loadPluginFiles(['one.mjs', './one.mjs'], folder), /there is a plugin One already/)
    assert.deepEqual(
      (await loadPluginFiles(['one.mjs'], folder)).map(({ name }) => name),
      ['One'],
    )
  } finally {
    await fs.rm(folder, { recursive: true })
  }
})
