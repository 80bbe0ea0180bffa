/** Images as volumes, beyond conformance: subpaths, refusals, newer images, and what is left behind. Upstream: test/e2e_node/image_volume.go. */
import assert from 'node:assert/strict'
import { waitingReason } from '../../../support/podStates.ts'
import type { BehaviourGroup } from '../behaviour.ts'
import { registryFor } from '../imageRegistry.ts'
import { dataImage } from '../node/imageVolume.ts'

const forever = 'trap "exit 0" TERM; while true; do sleep 0.2; done'
const volumes = (reference: string, pullPolicy = 'Always') => [{ name: 'volume', image: { reference, pullPolicy } }]

export const imageVolumes: BehaviourGroup = {
  sig: 'skiff',
  title: 'Image volumes',
  rows: ['STO-19'],
  behaviours: [
    {
      name: 'a subpath of an image is one of its folders, and a file is refused',
      run: async (context) => {
        const { registry, name, nodeName } = await registryFor(context)
        registry.put('data:1', dataImage('data', 'x'))
        const spec = { nodeName, volumes: volumes(`${name}/data:1`) }
        const mount = (subPath: string) => ({ volumeMounts: [{ name: 'volume', mountPath: '/volume', subPath }] })
        assert.equal(await context.outputOf({ script: 'ls /volume', container: mount('etc'), spec }), 'os-release')
        for (const [subPath, why] of [
          ['data.json', 'only directory subpath is supported'],
          ['nothing', 'no such file or directory'],
        ] as const) {
          const pod = await context.createPod({ script: 'exit 0', container: mount(subPath), spec })
          const seen = await context.waitForPod(pod.metadata.name ?? '', 'is refused', (now) => waitingReason(now) === 'CreateContainerError')
          assert.match(seen.status?.containerStatuses?.[0]?.state?.waiting?.message ?? '', new RegExp(`ImageVolumeMountFailed: .*${why}`))
        }
      },
    },
    {
      name: 'an image that does not exist is waited for',
      run: async (context) => {
        const { name, nodeName } = await registryFor(context)
        const container = { volumeMounts: [{ name: 'volume', mountPath: '/volume' }] }
        const pod = await context.createPod({ script: 'exit 0', container, spec: { nodeName, volumes: volumes(`${name}/none:1`) } })
        await context.waitForPod(pod.metadata.name ?? '', 'waits', (now) => ['ErrImagePull', 'ImagePullBackOff'].includes(waitingReason(now) ?? ''))
        const never = await context.createPod({ script: 'exit 0', container, spec: { nodeName, volumes: volumes(`${name}/none:1`, 'Never') } })
        await context.waitForPod(never.metadata.name ?? '', 'waits', (now) => waitingReason(now) === 'ErrImageNeverPull')
      },
    },
    {
      name: 'a container that starts again sees the newer image, and nothing stays behind',
      run: async (context) => {
        const { registry, name, nodeName } = await registryFor(context)
        registry.put('data:1', dataImage('data', 'old'))
        const pod = await context.readyPod({
          script: `cat /volume/data.json; ${forever}`,
          container: { volumeMounts: [{ name: 'volume', mountPath: '/volume' }] },
          spec: { nodeName, restartPolicy: 'Always', volumes: volumes(`${name}/data:1`) },
        })
        const podName = pod.metadata.name ?? ''
        registry.put('data:1', dataImage('data', 'new'))
        await context.exec(podName, ['sh', '-c', 'kill 1'])
        await context.waitForPod(podName, 'runs again', ({ status }) => {
          const main = status?.containerStatuses?.[0]
          return main?.restartCount === 1 && main.state?.running !== undefined
        })
        assert.equal(await context.execText(podName, 'cat /volume/data.json'), 'new')
        await context.kubectl(['delete', 'pod', podName])
        const root = `/var/lib/kubelet/pods/${pod.metadata.uid}`
        const look = {
          // Mounts, and the views in containerd's store.
          script: `until ! ls ${root} >/dev/null 2>&1; do sleep 0.2; done
            (cat /proc/1/mountinfo; nsenter -t 1 -m -- ctr -n k8s.io snapshots ls; nsenter -t 1 -m -- ctr -n k8s.io leases ls) | grep -c ${pod.metadata.uid} || true`,
          container: { securityContext: { privileged: true }, volumeMounts: [{ name: 'kubelet', mountPath: '/var/lib/kubelet' }] },
          spec: { nodeName, hostPID: true, volumes: [{ name: 'kubelet', hostPath: { path: '/var/lib/kubelet' } }] },
        }
        assert.equal(await context.outputOf(look), '0')
      },
    },
  ],
}
