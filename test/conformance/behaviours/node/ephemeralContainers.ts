/** Containers added to a running pod to look into it. Upstream: test/e2e/common/node/ephemeral_containers.go. */
import assert from 'node:assert/strict'
import type { Pod } from '#api/gen/types/core.v1'
import { pods } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'
import { type BehaviourContext, busybox } from '../context.ts'

/** The target container's command; the duration identifies its process. */
const main = 'sleep 654'

const debuggerNamed = (name: string) => ({
  name,
  image: busybox,
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', `echo ${name} sees $(ps -o args | grep -c '^${main}$'); sleep 600`],
  targetContainerName: 'main',
})

async function add({ client, namespace, waitForPod, eventually, logs }: BehaviourContext, pod: string, name: string, how: 'patch' | 'update') {
  const ref = { namespace, name: pod }
  if (how === 'patch') {
    await client.of(pods).patch(ref, 'strategic', { spec: { ephemeralContainers: [debuggerNamed(name)] } }, { subresource: 'ephemeralcontainers' })
  } else {
    const current = await client.of(pods).get(ref)
    const changed = { ...current, spec: { ...current.spec, ephemeralContainers: [...(current.spec.ephemeralContainers ?? []), debuggerNamed(name)] } }
    await client.of(pods).updateSubresource<Pod>(ref, 'ephemeralcontainers', changed)
  }
  await waitForPod(pod, `runs ${name}`, ({ status }) => (status?.ephemeralContainerStatuses ?? []).some((one) => one.name === name && one.state?.running))
  // It shares the processes of the container that it looks into.
  await eventually(
    `what ${name} says`,
    () => logs(pod, name),
    (text) => text === `${name} sees 1`,
  )
}

export const ephemeralContainers: BehaviourGroup = {
  sig: 'sig-node',
  title: 'Ephemeral containers',
  rows: ['KUB-21'],
  behaviours: [
    {
      name: 'start one',
      run: async (context) => {
        const pod = await context.readyPod({ container: { command: main.split(' ') } })
        await add(context, pod.metadata.name ?? '', 'debugger', 'patch')
      },
    },
    {
      name: 'add a second one by update',
      run: async (context) => {
        const pod = await context.readyPod({ container: { command: main.split(' ') } })
        const name = pod.metadata.name ?? ''
        await add(context, name, 'debugger-1', 'patch')
        await add(context, name, 'debugger-2', 'update')
        const { status } = await context.get(pods, name)
        assert.equal(status?.containerStatuses?.[0]?.restartCount, 0)
      },
    },
  ],
}
