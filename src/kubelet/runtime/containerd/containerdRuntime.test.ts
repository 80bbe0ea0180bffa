import assert from 'node:assert/strict'
import { test } from 'node:test'
import { VirtualClock } from '#base/virtualClock'
import type { CriClient } from '#grpc/criClient'
import { createContainerdRuntime } from './containerdRuntime.ts'

function recording(called: string[], name: string): CriClient {
  const call = async (service: string, method: string) => {
    called.push(`${name}: ${service}/${method}`)
    return { images: [], image: null, imageRef: 'ref', imageFilesystems: [], items: [], containers: [] }
  }
  return { call: call as CriClient['call'], events: async function* () {}, close: () => {} }
}

for (const [where, own] of [
  ['a service of its own', true],
  ['the runtime', false],
] as const) {
  test(`KUB-17 images are asked of ${where}, all else of the runtime`, async () => {
    const called: string[] = []
    const client = recording(called, 'runtime')
    const runtime = createContainerdRuntime({ client, clock: new VirtualClock(), ...(own ? { imageClient: recording(called, 'images') } : {}) })
    await runtime.listImages()
    await runtime.imageStatus('busybox')
    await runtime.pullImage('busybox', undefined, {} as Parameters<typeof runtime.pullImage>[2])
    await runtime.removeImage('busybox')
    await runtime.imageFilesystem()
    await runtime.listPodSandbox(undefined)
    await runtime.listContainers(undefined)
    const images = own ? 'images' : 'runtime'
    assert.deepEqual(called, [
      ...['ListImages', 'ImageStatus', 'PullImage', 'RemoveImage', 'ImageFsInfo'].map((method) => `${images}: ImageService/${method}`),
      'runtime: RuntimeService/ListPodSandbox',
      'runtime: RuntimeService/ListContainers',
    ])
  })
}
