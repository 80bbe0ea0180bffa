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

const specs: readonly (readonly [what: string, info: string | undefined, want: string | undefined])[] = [
  [
    'a pod',
    JSON.stringify({ pid: 7, runtimeSpec: { linux: { namespaces: [{ type: 'pid' }, { type: 'network', path: '/run/netns/cni-1' }] } } }),
    '/run/netns/cni-1',
  ],
  ['a pod on the network of its node', JSON.stringify({ runtimeSpec: { linux: { namespaces: [{ type: 'pid' }] } } }), undefined],
  ['a runtime that does not tell', undefined, undefined],
]
for (const [what, info, want] of specs) {
  test(`KUB-17 the network namespace of a sandbox is in the runtime's verbose answer: ${what}`, async () => {
    const requests: unknown[] = []
    const call = async (_: string, method: string, request: unknown) => {
      requests.push([method, request])
      return { info: info === undefined ? {} : { info } }
    }
    const client: CriClient = { call: call as CriClient['call'], events: async function* () {}, close: () => {} }
    const runtime = createContainerdRuntime({ client, clock: new VirtualClock() })
    assert.equal(await runtime.sandboxNetworkNamespace?.('s'), want)
    assert.deepEqual(requests, [['PodSandboxStatus', { podSandboxId: 's', verbose: true }]])
  })
}
