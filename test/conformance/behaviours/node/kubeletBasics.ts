/** Logs, ends, read-only file systems and hosts files. Upstream: test/e2e/common/node/{kubelet,kubelet_etc_hosts}.go. */
import assert from 'node:assert/strict'
import type { Container } from '#api/gen/types/core.v1'
import { pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { busybox } from '../context.ts'

const managed = '# Kubernetes-managed hosts file.'

export const kubeletBasics: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Kubelet basics',
  rows: ['KUB-08', 'KUB-20', 'KUB-25'],
  behaviours: [
    {
      name: 'stdout/stderr in logs',
      // The runtime reads both streams concurrently: the order of the lines is undefined.
      run: async ({ outputOf }) =>
        assert.deepEqual((await outputOf({ script: 'echo to-stdout; echo to-stderr >&2' })).split('\n').sort(), ['to-stderr', 'to-stdout']),
    },
    {
      name: 'terminated reason set',
      run: async ({ runPod }) => {
        const { status } = await runPod({ script: 'exit 1' }, 'Failed')
        const terminated = status?.containerStatuses?.[0]?.state?.terminated
        assert.equal(terminated?.exitCode, 1)
        assert.equal(terminated?.reason, 'Error')
      },
    },
    {
      name: 'always-failing pod deletable',
      run: async ({ client, createPod, namespace, waitForPod, waitUntilGone }) => {
        const pod = await createPod({ script: 'exit 1', spec: { restartPolicy: 'Always' } })
        const name = pod.metadata.name ?? ''
        await waitForPod(name, 'has failed and is started again', ({ status }) => (status?.containerStatuses?.[0]?.restartCount ?? 0) > 0)
        await client.of(pods).delete({ namespace, name })
        await waitUntilGone(pods, name)
      },
    },
    {
      name: 'read-only rootfs',
      run: async ({ runPod, logs }) => {
        const container = { securityContext: { readOnlyRootFilesystem: true } }
        const pod = await runPod({ script: 'touch /file 2>&1 || echo refused', container })
        assert.match(await logs(pod.metadata.name ?? ''), /Read-only file system\s+refused$/)
      },
    },
    {
      name: 'hostAliases',
      run: async ({ outputOf }) => {
        const hostAliases = [{ ip: '123.45.67.89', hostnames: ['foo', 'bar'] }]
        assert.match(await outputOf({ script: 'cat /etc/hosts', spec: { hostAliases } }), /^123\.45\.67\.89\s+foo\s+bar$/m)
      },
    },
    {
      name: 'managed /etc/hosts rules',
      run: async ({ readyPod, execText }) => {
        const container = (name: string, own: boolean): Container => ({
          name,
          image: busybox,
          command: ['sleep', '600'],
          volumeMounts: own ? [{ name: 'hosts', mountPath: '/etc/hosts' }] : [],
        })
        // The node's own file, mounted by the container itself, stays as it is; so does what a pod on the node's network sees.
        const volumes = [{ name: 'hosts', hostPath: { path: '/etc/hosts', type: 'File' } }]
        const containers = [container('managed', false), container('own', true)]
        const ordinary = await readyPod({ containers, spec: { volumes } })
        const onNode = await readyPod({ containers, spec: { volumes, hostNetwork: true } })
        const firstLine = (pod: typeof ordinary, name: string) => execText(pod.metadata.name ?? '', 'head -n 1 /etc/hosts', name)
        assert.equal(await firstLine(ordinary, 'managed'), managed)
        assert.notEqual(await firstLine(ordinary, 'own'), managed)
        assert.equal(await firstLine(onNode, 'managed'), `${managed.slice(0, -1)} (host network).`)
        assert.notEqual(await firstLine(onNode, 'own'), managed)
      },
    },
  ],
}
