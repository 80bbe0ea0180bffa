/** Debug containers (L4): ephemeral containers, which `kubectl debug` adds to a pod, too. */
import { objectPath } from '../../../model/places.ts'
import { messageOf, write } from '../../api.ts'
import { ask } from '../../parts/confirm.tsx'
import { say } from '../../state.ts'
import type { AnyObject, TabProps } from './types.ts'

/** Those in which a program can be started: all containers, and debug containers that run. */
export function runningContainers({ spec, status }: AnyObject): string[] {
  const running = (status?.ephemeralContainerStatuses ?? []).filter(({ state }) => state?.running !== undefined)
  return [...(spec?.containers ?? []), ...running].map(({ name }) => name)
}

/** @param target the container whose processes it sees */
export async function startDebugContainer({ kind, name, object }: TabProps, target: string): Promise<void> {
  const reply = await ask({
    title: `Debug ${name.name}`,
    text: `A container is added to the pod and stays until the pod ends. It has the network of the pod, and sees the processes of ${target}.`,
    action: 'Start',
    field: { label: 'Image', value: 'busybox:1.36' },
  })
  if (!reply) return
  const used = new Set((object.spec?.ephemeralContainers ?? []).map((container) => container.name))
  const free = Array.from({ length: used.size + 1 }, (_, at) => `debugger-${at + 1}`).find((one) => !used.has(one))
  const container = { name: free, image: reply.field, stdin: true, tty: true, targetContainerName: target }
  try {
    const patch = { spec: { ephemeralContainers: [container] } }
    await write('PATCH', objectPath(kind, name, 'ephemeralcontainers'), patch, { contentType: 'application/strategic-merge-patch+json' })
    say('good', `${free} starts: choose it when it runs`)
  } catch (error) {
    say('bad', `Debug container: ${messageOf(error)}`)
  }
}
