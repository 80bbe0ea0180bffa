/**
 * The ingress of a local cluster (L5), off unless its user wants it: follows the cluster's description, which commands change, and keeps the objects and the
 * processes of the ingress as it says. Their code is read only when it is needed.
 */
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { createWakeUp } from '#base/wakeUp'
import type { Client } from '#client/client'
import { readState } from '../../localCluster/clusterState.ts'
import type { AgentsOptions } from '../agents.ts'

export interface IngressAddonOptions extends AgentsOptions {
  readonly client: Client
  /** Calls back when the cluster's description or its certificates may have changed. */
  readonly onLook: (apply: () => Promise<void> | void) => void
}

const retryMs = 1000

export function createIngressAddon(options: IngressAddonOptions): Component {
  let wanted = options.state.ingress
  const changes = createWakeUp()
  options.onLook(async () => {
    const now = (await readState(options.paths))?.ingress
    if (now) await (await import('./ingressProcesses.ts')).writeIngressConfigs(options)
    wanted = now
    changes.ring()
  })
  return {
    name: 'ingress addon',
    async run(signal) {
      // A server that becomes the leader has read the description at its own start, which may be long ago.
      const described = await readState(options.paths)
      if (described) wanted = described.ingress
      while (!signal.aborted) {
        const now = wanted
        if (now) await serve(options, () => wanted === true, changes.wait, signal)
        else if (now === false) await untilDone(options, async () => (await import('./ingressObjects.ts')).removeIngressObjects(options.client, signal), signal)
        if (wanted === now) await changes.wait(signal)
      }
    },
  }
}

/** Until it is no longer wanted. */
async function serve(
  options: IngressAddonOptions,
  isWanted: () => boolean,
  changed: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const [{ ensureIngressObjects }, { runIngressProcesses }] = await Promise.all([import('./ingressObjects.ts'), import('./ingressProcesses.ts')])
  await untilDone(options, () => ensureIngressObjects(options.client, signal), signal)
  using scope = abortScope(signal)
  const running = runIngressProcesses(options, scope.signal)
  running.catch(() => {})
  while (isWanted() && !signal.aborted) await Promise.race([changed(signal), running])
  scope.abort()
  await running
}

async function untilDone({ tools }: IngressAddonOptions, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) return
      tools.log.error(error, 'The objects of the ingress could not be brought up to date')
      await tools.clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}
