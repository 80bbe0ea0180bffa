/** Variables in variables, commands, arguments and paths within volumes. Upstream: test/e2e/common/node/expansion.go. */
import assert from 'node:assert/strict'
import type { EnvVar } from '#api/gen/types/core.v1'
import { pods } from '#client/builtIn'
import { type BehaviourGroup, table } from '../behaviour.ts'
import { busybox, isReady, type PodInput } from '../context.ts'

const podName: EnvVar = { name: 'POD_NAME', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }
const volumes = [{ name: 'work', emptyDir: {} }]

const outputs: readonly { readonly name: string; readonly pod: PodInput; readonly output: string }[] = [
  {
    name: 'env from env',
    pod: {
      script: 'echo $FOOBAR',
      container: {
        env: [
          { name: 'FOO', value: 'foo-value' },
          { name: 'BAR', value: 'bar-value' },
          { name: 'FOOBAR', value: '$(FOO);;$(BAR);;$(ABSENT);;$$(FOO)' },
        ],
      },
    },
    output: 'foo-value;;bar-value;;$(ABSENT);;$(FOO)',
  },
  {
    name: 'args',
    pod: { container: { command: ['sh', '-c'], args: ['echo "$(VALUE)"'], env: [{ name: 'VALUE', value: 'of-args' }] } },
    output: 'of-args',
  },
  {
    name: 'command',
    pod: { container: { command: ['sh', '-c', 'VALUE=\'of the shell\'; echo "$(VALUE)"'], env: [{ name: 'VALUE', value: 'of-command' }] } },
    output: 'of-command',
  },
]

const refused: readonly { readonly name: string; readonly value: string }[] = [
  { name: 'absolute path fails', value: '/tmp' },
  { name: 'backticks fail', value: '..' },
]

export const variableExpansion: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Variable expansion',
  rows: ['KUB-18', 'KUB-11'],
  behaviours: [
    ...table(outputs, ({ name, pod, output }) => ({
      name,
      run: async ({ outputOf }) => assert.equal((await outputOf(pod)).split('\n')[0], output),
    })),
    {
      name: 'subPathExpr works',
      run: async ({ outputOf }) => {
        const volumeMounts = [
          { name: 'work', mountPath: '/inside', subPathExpr: '$(POD_NAME)' },
          { name: 'work', mountPath: '/all' },
        ]
        const output = await outputOf({
          name: 'its-name',
          script: 'touch /inside/file; find /all -type f',
          container: { env: [podName], volumeMounts },
          spec: { volumes },
        })
        assert.equal(output, '/all/its-name/file')
      },
    },
    ...table(refused, ({ name, value }) => ({
      name,
      run: async ({ createPod, waitForPod }) => {
        const volumeMounts = [{ name: 'work', mountPath: '/inside', subPathExpr: '$(WHERE)' }]
        const pod = await createPod({ script: 'exit 0', container: { env: [{ name: 'WHERE', value }], volumeMounts }, spec: { volumes } })
        const { status } = await waitForPod(
          pod.metadata.name ?? '',
          'cannot be configured',
          (seen) => seen.status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
        )
        assert.equal(status?.phase, 'Pending')
      },
    })),
    {
      name: 'failing expansion fixed later',
      seconds: 180,
      run: async ({ client, namespace, createPod, waitForPod }) => {
        const where: EnvVar = { name: 'WHERE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['where']" } } }
        const pod = await createPod({
          annotations: { where: '/absolute' },
          script: 'sleep 600',
          container: { env: [where], volumeMounts: [{ name: 'work', mountPath: '/inside', subPathExpr: '$(WHERE)/below' }] },
          spec: { volumes },
        })
        const name = pod.metadata.name ?? ''
        const waitingReason = (seen: typeof pod) => seen.status?.containerStatuses?.[0]?.state?.waiting?.reason
        await waitForPod(name, 'cannot be configured', (seen) => waitingReason(seen) === 'CreateContainerConfigError')
        await client.of(pods).patch({ namespace, name }, 'merge', { metadata: { annotations: { where: 'relative' } } })
        await waitForPod(name, 'is Ready', isReady)
      },
    },
    {
      name: 'writes through subPathExpr',
      run: async (context) => {
        const where: EnvVar = { name: 'WHERE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['where']" } } }
        const writer = {
          name: 'writer',
          image: busybox,
          command: ['sleep', '600'],
          env: [where],
          volumeMounts: [{ name: 'work', mountPath: '/inside', subPathExpr: '$(WHERE)' }],
        }
        const reader = { name: 'reader', image: busybox, command: ['sleep', '600'], volumeMounts: [{ name: 'work', mountPath: '/all' }] }
        const pod = await context.readyPod({ annotations: { where: 'some/folder' }, containers: [writer, reader], spec: { volumes } })
        const name = pod.metadata.name ?? ''
        await context.execText(name, 'echo written > /inside/file', 'writer')
        // A later change of the annotation does not move an existing mount.
        await context.client.of(pods).patch({ namespace: context.namespace, name }, 'merge', { metadata: { annotations: { where: 'elsewhere' } } })
        assert.equal(await context.execText(name, 'cat /inside/file', 'writer'), 'written')
        assert.equal(await context.execText(name, 'cat /all/some/folder/file', 'reader'), 'written')
      },
    },
  ],
}
