/**
 * Routes through a VXLAN device of each family (L3): packets between pods travel in UDP packets between the nodes' addresses, so that the nodes need not be on one
 * link. What a packet needs on its way follows from the wanted routes alone: the device's MAC address is derived from the node's address, and nothing is learned
 * or announced. Upstream's counterpart: flannel's vxlan backend.
 */
import { createHash } from 'node:crypto'
import { check, type Exec } from '#host/exec'
import type { Route } from '../podNetwork.ts'
import { type FamilyFlag, familyFlagOf, keepRoutes } from './keepRoutes.ts'
import type { RouteMode } from './routeMode.ts'

interface Tunnel {
  readonly device: string
  readonly id: number
}

/** A device carries packets over one family. */
const tunnels: Readonly<Record<FamilyFlag, Tunnel>> = { '-4': { device: 'skiff-vxlan', id: 1 }, '-6': { device: 'skiff-vxlan6', id: 2 } }
/** Linux's own default, as flannel has it. */
const port = 8472
/** Marks our routes; those of host-gw have another number. */
const routeProtocol = 108
/** An Ethernet frame of 1500 bytes without the headers of Ethernet, VXLAN, UDP and IPv6. */
const mtu = 1430

export const vxlan: RouteMode = {
  name: 'vxlan',
  podMtu: mtu,
  asInKernel: ({ cidr }) => ({ cidr, via: firstAddress(cidr) }),
  run: (deps, wanted, signal) => {
    const change = (family: FamilyFlag, routes: readonly Route[]) => {
      const own = wanted.own().find(({ cidr }) => familyFlagOf(cidr) === family)
      return changeTunnel(deps.exec, family, own, routes)
    }
    return keepRoutes(deps, wanted, change, signal)
  },
  cleanUp: async (exec) => {
    // The device's routes, neighbours and forwarding entries go with it.
    for (const { device } of Object.values(tunnels)) await exec.run('ip', ['link', 'del', device])
  },
}

async function changeTunnel(exec: Exec, family: FamilyFlag, own: Route | undefined, wanted: readonly Route[]): Promise<string[]> {
  if (own === undefined && wanted.length === 0) return []
  if (own === undefined) throw new Error(`the node has no address for its tunnel: ip ${family}`)
  const commands = await ensureDevice(exec, tunnels[family], own)
  const before = await routesOf(exec, family)
  const changes = tunnelChanges(tunnels[family].device, before, wanted)
  if (changes.forwarding.length > 0) await check(exec, 'bridge', ['-force', '-batch', '-'], { input: asBatch(changes.forwarding) })
  if (changes.routes.length > 0) await check(exec, 'ip', [family, '-force', '-batch', '-'], { input: asBatch(changes.routes) })
  return [...commands, ...changes.forwarding, ...changes.routes]
}

const asBatch = (lines: readonly string[]) => `${lines.join('\n')}\n`

/**
 * Makes the device, and again when the node's address is another than before. What the node itself sends to pods has the first address of its own range, so that
 * answers come through the tunnel.
 */
async function ensureDevice(exec: Exec, { device, id }: Tunnel, { cidr, via }: Route): Promise<string[]> {
  const { code, stdout } = await exec.run('ip', ['-json', 'link', 'show', device])
  const [link] = code === 0 ? (JSON.parse(stdout || '[]') as { address?: string }[]) : []
  if (link?.address === macOf(via)) return []
  const commands = [
    ...(link ? [`link del ${device}`] : []),
    `link add ${device} type vxlan id ${id} dstport ${port} local ${via} nolearning`,
    `link set ${device} address ${macOf(via)} mtu ${mtu} up`,
    `addr add ${firstAddress(cidr)} dev ${device}`,
  ]
  await check(exec, 'ip', ['-batch', '-'], { input: asBatch(commands) })
  return commands
}

/** Our routes, with the gateway that the kernel shows: the first address of the range. */
async function routesOf(exec: Exec, family: FamilyFlag): Promise<readonly TunnelRoute[]> {
  const { device } = tunnels[family]
  const [routes, neighbours] = await Promise.all([
    check(exec, 'ip', [family, '-json', 'route', 'show', 'proto', String(routeProtocol), 'dev', device]),
    check(exec, 'ip', [family, '-json', 'neighbour', 'show', 'dev', device, 'nud', 'permanent']),
  ])
  const macs = new Map((JSON.parse(neighbours || '[]') as { dst: string; lladdr?: string }[]).map(({ dst, lladdr }) => [dst, lladdr]))
  return (JSON.parse(routes || '[]') as { dst: string; gateway?: string }[]).map(({ dst, gateway = '' }) => ({ cidr: dst, mac: macs.get(gateway) }))
}

interface TunnelRoute {
  readonly cidr: string
  /** The address of the device of the node that it leads to; absent: the neighbour entry was removed. */
  readonly mac: string | undefined
}

/** Commands for `bridge -batch` and `ip -batch` that lead to the wanted routes. */
export function tunnelChanges(
  device: string,
  before: readonly TunnelRoute[],
  wanted: readonly Route[],
): { readonly forwarding: readonly string[]; readonly routes: readonly string[] } {
  const had = new Map(before.map(({ cidr, mac }) => [cidr, mac]))
  const isWanted = new Map(wanted.map(({ cidr, via }) => [cidr, macOf(via)]))
  const added = wanted.filter(({ cidr, via }) => had.get(cidr) !== macOf(via))
  const gone = before.filter(({ cidr, mac }) => isWanted.get(cidr) !== mac)
  return {
    forwarding: [
      ...gone.flatMap(({ mac }) => (mac ? [`fdb del ${mac} dev ${device}`] : [])),
      ...added.map(({ via }) => `fdb replace ${macOf(via)} dev ${device} dst ${via} self permanent`),
    ],
    routes: [
      ...gone.flatMap(({ cidr }) =>
        isWanted.has(cidr) ? [] : [`route del ${cidr} proto ${routeProtocol} dev ${device}`, `neighbour del ${firstAddress(cidr)} dev ${device}`],
      ),
      ...added.flatMap(({ cidr, via }) => [
        `neighbour replace ${firstAddress(cidr)} lladdr ${macOf(via)} dev ${device} nud permanent`,
        `route replace ${cidr} via ${firstAddress(cidr)} dev ${device} onlink proto ${routeProtocol}`,
      ]),
    ],
  }
}

const firstAddress = (cidr: string) => cidr.split('/')[0] ?? ''

/** A locally administered address of the device of the node with this address. */
export function macOf(address: string): string {
  const bytes = createHash('sha256').update(address).digest().subarray(0, 5)
  return ['02', ...[...bytes].map((byte) => byte.toString(16).padStart(2, '0'))].join(':')
}
