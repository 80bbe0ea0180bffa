/**
 * A part of a local cluster that is off unless its user wants it (L5): follows the cluster's description, which commands change, and keeps the objects and the
 * processes of the part as it says. Its code is read only when it is needed.
 */
import { abortScope } from '#base/abortScope'
import type { Component } from '#base/component'
import { createWakeUp } from '#base/wakeUp'
import type { Client } from '#client/client'
import { type ClusterState, readState } from '../localCluster/clusterState.ts'
import type { AgentsOptions } from './agentsOptions.ts'

export interface AddonOptions extends AgentsOptions {
  readonly client: Client
  /** Calls back when the cluster's description or its certificates may have changed. */
  readonly onLook: (apply: () => Promise<void> | void) => void
}

export interface Addon {
  readonly name: string
  /** False: it was wanted once, and what was made for that is removed. Undefined: it was never wanted. */
  isWanted(state: ClusterState): boolean | undefined
  /** Makes its objects. Tried again when it fails. */
  ensure(signal: AbortSignal): Promise<void>
  /** Resolves when the signal has ended it. */
  run(signal: AbortSignal): Promise<void>
  /** Removes what the cluster has of it. Tried again when it fails. */
  remove(signal: AbortSignal): Promise<void>
  /** The description or the certificates may have changed, and it is still wanted. */
  renew?(): Promise<void>
}

const retryMs = 1000

export function createAddon(options: AddonOptions, addon: Addon): Component {
  let wanted = addon.isWanted(options.state)
  const changes = createWakeUp()
  options.onLook(async () => {
    const described = await readState(options.paths)
    const now = described && addon.isWanted(described)
    if (now) await addon.renew?.()
    wanted = now
    changes.ring()
  })
  return {
    name: `${addon.name} addon`,
    async run(signal) {
      // A server that becomes the leader has read the description at its own start, which may be long ago.
      const described = await readState(options.paths)
      if (described) wanted = addon.isWanted(described)
      while (!signal.aborted) {
        const now = wanted
        if (now) await serve(options, addon, () => wanted === true, changes.wait, signal)
        else if (now === false) await untilDone(options, addon, () => addon.remove(signal), signal)
        if (wanted === now) await changes.wait(signal)
      }
    },
  }
}

/** Until it is no longer wanted. */
async function serve(
  options: AddonOptions,
  addon: Addon,
  isWanted: () => boolean,
  changed: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await untilDone(options, addon, () => addon.ensure(signal), signal)
  using scope = abortScope(signal)
  const running = addon.run(scope.signal)
  running.catch(() => {})
  while (isWanted() && !signal.aborted) await Promise.race([changed(signal), running])
  scope.abort()
  await running
}

async function untilDone({ tools }: AddonOptions, { name }: Addon, work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      return await work()
    } catch (error) {
      if (signal.aborted) return
      tools.log.error(error, 'The objects of an addon could not be brought up to date', { addon: name })
      await tools.clock.sleep(retryMs, signal).catch(() => {})
    }
  }
}
