/**
 * Reads the address ranges in use on this host (L5): those of interfaces, of routes, and of clusters of any home that have a bridge. A bridge's alias holds the
 * ranges of its cluster's pods and services, because the host has no routes to them.
 */
import { check, type Exec } from '#host/exec'
import type { ClusterRanges, TakenRange } from './ranges.ts'

/** The alias of a cluster's bridge. */
export function bridgeAlias(clusterName: string, { clusterCidr, serviceCidr }: ClusterRanges): string {
  return `skiff cluster=${clusterName} pods=${clusterCidr} services=${serviceCidr}`
}

interface ShownRoute {
  readonly dst?: string
  readonly type?: string
  readonly dev?: string
}

interface ShownLink {
  readonly ifname: string
  readonly ifalias?: string
  readonly addr_info?: readonly { readonly local: string; readonly prefixlen: number }[]
}

/** @param ownBridge the interface of the cluster that asks: its ranges are not in its own way */
export async function rangesOfHost(exec: Exec, ownBridge: string): Promise<TakenRange[]> {
  const links = JSON.parse((await check(exec, 'ip', ['-json', 'addr', 'show'])) || '[]') as ShownLink[]
  const aliases = JSON.parse((await check(exec, 'ip', ['-json', 'link', 'show', 'type', 'bridge'])) || '[]') as ShownLink[]
  const routes = [...(await routesOf(exec, '-4')), ...(await routesOf(exec, '-6'))]
  const isOther = (name: string | undefined) => name !== ownBridge
  return [
    ...aliases.filter(({ ifname }) => isOther(ifname)).flatMap(({ ifalias }) => rangesOfAlias(ifalias ?? '')),
    ...links
      .filter(({ ifname }) => isOther(ifname))
      .flatMap(({ ifname, addr_info = [] }) => addr_info.map(({ local, prefixlen }) => ({ cidr: `${local}/${prefixlen}`, by: `interface ${ifname}` }))),
    ...routes
      .filter(({ dst, dev, type = 'unicast' }) => dst !== undefined && dst !== 'default' && isOther(dev) && !localTypes.has(type))
      .map(({ dst = '', dev }) => ({
        cidr: dst.includes('/') ? dst : `${dst}/${dst.includes(':') ? 128 : 32}`,
        by: dev ? `a route through ${dev}` : 'a route',
      })),
  ]
}

/** A kernel without the family has none. */
async function routesOf(exec: Exec, family: '-4' | '-6'): Promise<ShownRoute[]> {
  const { code, stdout } = await exec.run('ip', [family, '-json', 'route', 'show', 'table', 'all'])
  if (code !== 0 && family === '-4') throw new Error(`ip route show: exit ${code}`)
  return code === 0 ? (JSON.parse(stdout || '[]') as ShownRoute[]) : []
}

/** Types of routes that the kernel adds for an interface's own addresses. */
const localTypes: ReadonlySet<string> = new Set(['local', 'broadcast', 'multicast', 'anycast'])

function rangesOfAlias(alias: string): TakenRange[] {
  const [, name, pods = '', services = ''] = /^skiff cluster=(\S+) pods=(\S+) services=(\S+)$/.exec(alias) ?? []
  if (!name) return []
  return rangesOfCluster(name, { clusterCidr: pods, serviceCidr: services })
}

/** An entry for each range. */
export function rangesOfCluster(name: string, { clusterCidr, serviceCidr }: ClusterRanges): TakenRange[] {
  return [
    ...clusterCidr.split(',').map((cidr) => ({ cidr, by: `the pods of cluster "${name}"` })),
    ...serviceCidr.split(',').map((cidr) => ({ cidr, by: `the services of cluster "${name}"` })),
  ]
}
