/**
 * The pod network of one node (L3): writes the CNI configuration once the node has its pod CIDR, and keeps a route to every other node's pods
 * (host gateway), also when something else takes one away. containerd reports the network ready as soon as the file is there. Upstream's counterpart: a CNI daemon such as kindnet.
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Node } from '#api/gen/types/core.v1'
import { nodeAddress } from '#api/helpers/nodes'
import type { Frozen } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import type { Component } from '#base/component'
import type { Logger } from '#base/log'
import { createWakeUp } from '#base/wakeUp'
import { nodes } from '#client/builtIn'
import type { SharedInformerFactory } from '#client/cache/sharedInformerFactory'
import { check, type Exec } from '#host/exec'
import { writeFileAtomic } from '#host/files'
import { cniConfig, parseRoutes, type Route, routeChanges, routeProtocol, wantedRoutes } from './podNetwork.ts'

export interface NetworkAgentDeps {
  readonly informers: SharedInformerFactory
  readonly clock: Clock
  readonly log: Logger
  readonly exec: Exec
}

export interface NetworkAgentConfig {
  readonly nodeName: string
  readonly cniConfigDir: string
}

const configFile = '10-skiff.conflist'
const retryMs = 1000
/** A removed route is not reported to this process; check as often as flannel does in its host-gw mode. */
const resyncMs = 10_000

export function createNetworkAgent(deps: NetworkAgentDeps, config: NetworkAgentConfig): Component {
  return { name: 'network-agent', run: (signal) => run(deps, config, signal) }
}

async function run(deps: NetworkAgentDeps, config: NetworkAgentConfig, signal: AbortSignal): Promise<void> {
  const informer = deps.informers.of(nodes)
  const changes = createWakeUp()
  const registration = informer.addHandler({ onAdd: changes.ring, onUpdate: changes.ring, onDelete: changes.ring })
  let written = ''
  try {
    await informer.synced(signal)
    while (!signal.aborted) {
      const resync = deps.clock.timer(resyncMs, changes.ring)
      await changes.wait(signal)
      resync.cancel()
      if (signal.aborted) break
      try {
        const own = informer.lister.get({ name: config.nodeName })
        written = await ensureCniConfig(own, config, written)
        await ensureRoutes(deps, wantedRoutes(informer.store.list(), config.nodeName, nodeAddress))
      } catch (error) {
        deps.log.error(error, 'Failed to set up the pod network')
        await deps.clock.sleep(retryMs, signal)
        changes.ring()
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    registration.remove()
  }
}

/** Writes the file when the pod CIDR is known and differs from what was written. */
async function ensureCniConfig(own: Frozen<Node> | undefined, config: NetworkAgentConfig, written: string): Promise<string> {
  const podCidr = own?.spec.podCIDR
  if (!podCidr || podCidr === written) return written
  await fs.mkdir(config.cniConfigDir, { recursive: true })
  await writeFileAtomic(path.join(config.cniConfigDir, configFile), `${JSON.stringify(cniConfig(podCidr), null, 2)}\n`)
  return podCidr
}

/** Compares with the kernel's own table: routes vanish when a link goes down, and an earlier run may have left some. */
async function ensureRoutes({ exec, log }: NetworkAgentDeps, wanted: readonly Route[]): Promise<void> {
  const there = parseRoutes(await check(exec, 'ip', ['-4', '-json', 'route', 'show', 'proto', String(routeProtocol)]))
  const commands = routeChanges(there, wanted)
  if (commands.length === 0) return
  log.v(2).info('Changing the routes to other nodes', { commands })
  await check(exec, 'ip', ['-force', '-batch', '-'], { input: `${commands.join('\n')}\n` })
}
