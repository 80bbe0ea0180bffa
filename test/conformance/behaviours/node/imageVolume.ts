/** Images as volumes. Upstream: test/e2e/common/node/image_volume.go. */
import assert from 'node:assert/strict'
import { type ImageConfig, ociTar } from '#kubelet/images/ociTar'
import type { BehaviourGroup } from '../behaviour.ts'
import { registryFor } from '../imageRegistry.ts'

const text = (path: string, content: string): ImageConfig['files'][number] => ({ path, type: 'file', data: Buffer.from(content) })

/** An image that holds data and no programs. */
export function dataImage(name: string, content: string): Buffer {
  return ociTar({ names: [name], files: [text('data.json', content), { path: 'etc/', type: 'directory' }, text('etc/os-release', 'NAME=data\n')] })
}

export const imageVolume: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Image volume',
  rows: ['STO-19'],
  behaviours: [
    {
      name: 'pod with an image volume that is always pulled',
      run: async (context) => {
        const { registry, name, nodeName } = await registryFor(context)
        registry.put('kitten:1', dataImage('kitten', '{"file":"kitten.jpg"}'))
        const reference = `${name}/kitten:1`
        const pod = await context.readyPod({
          script: 'trap "exit 0" TERM; while true; do sleep 0.2; done',
          container: { volumeMounts: [{ name: 'volume', mountPath: '/volume' }] },
          spec: { nodeName, volumes: [{ name: 'volume', image: { reference, pullPolicy: 'Always' } }] },
        })
        const podName = pod.metadata.name ?? ''
        assert.equal(await context.execText(podName, 'cat /volume/data.json'), '{"file":"kitten.jpg"}')
        assert.equal(await context.execText(podName, 'cat /volume/etc/os-release'), 'NAME=data')
        assert.notEqual((await context.exec(podName, ['touch', '/volume/new'])).code, 0)
        assert.ok(registry.pulls('kitten:1') > 0)
      },
    },
  ],
}
